#include "holotensor/safetensors.h"

#include <algorithm>
#define JSON_NO_IO 1  // no iostreams in the runtime
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "holotensor/byte_io.h"
#include "holotensor/tensor.h"

namespace hologram::holotensor {
namespace {

struct TypeName {
  DType type;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {
    {DType::boolean, "BOOL"},   {DType::i8, "I8"},
    {DType::i16, "I16"},        {DType::i32, "I32"},
    {DType::i64, "I64"},        {DType::u8, "U8"},
    {DType::u16, "U16"},        {DType::u32, "U32"},
    {DType::u64, "U64"},        {DType::f16, "F16"},
    {DType::bf16, "BF16"},      {DType::f32, "F32"},
    {DType::f64, "F64"},        {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"}, {DType::f8e8m0, "F8_E8M0"},
    {DType::f4e2m1, "F4"},      {DType::complex64, "C64"},
};

// Builds the entries while the JSON is read: what does not have the form of a header stops it.
// The methods' names and signatures are those that nlohmann's SAX parser calls.
class HeaderHandler {
 public:
  using Json = nlohmann::json;

  std::vector<SafetensorsEntry> entries;
  SafetensorsMetadata metadata;
  std::string error;

  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(Json::number_integer_t) { return refuse("a negative number"); }
  bool number_float(Json::number_float_t, const Json::string_t&) { return refuse("a fraction"); }
  bool binary(Json::binary_t&) { return refuse("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (place_ == Place::shape) {
      if (value > uint64_t{INT64_MAX}) return refuse("a dimension that is too large");
      if (entry_.shape.size() >= kMaxRank) return refuse("too many dimensions");
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_.size() >= 2) return refuse("more than two offsets");
      offsets_.push_back(value);
      return true;
    }
    return refuse("a number");
  }

  bool string(Json::string_t& value) {
    if (place_ == Place::metadata) {
      metadata[key_] = value;
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype" || has_type_) return refuse("a text");
    const auto type = dtype_from_safetensors(value);
    if (!type) return refuse(type.error().message());
    entry_.dtype = *type;
    has_type_ = true;
    return true;
  }

  bool start_object(size_t) {
    if (place_ == Place::outside) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) return refuse("an object");
    if (key_ == "__metadata__") {
      place_ = Place::metadata;
      return true;
    }
    place_ = Place::tensor;
    entry_ = {.name = key_};
    has_type_ = has_shape_ = has_offsets_ = false;
    offsets_.clear();
    return true;
  }

  bool key(Json::string_t& value) {
    if (place_ == Place::top && value.size() > kMaxName) return refuse("a name that is too long");
    key_ = value;
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      if (!has_type_ || !has_shape_ || !has_offsets_ || offsets_.size() != 2 ||
          offsets_[1] < offsets_[0]) {
        key_ = entry_.name;
        return refuse("an entry without a whole dtype, shape and data_offsets");
      }
      entry_.offset = offsets_[0];
      entry_.size = offsets_[1] - offsets_[0];
      entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::top ? Place::done : Place::top;
    return true;
  }

  bool start_array(size_t) {
    if (place_ == Place::tensor && key_ == "shape" && !has_shape_) {
      has_shape_ = true;
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::tensor && key_ == "data_offsets" && !has_offsets_) {
      has_offsets_ = true;
      place_ = Place::offsets;
      return true;
    }
    return refuse("a list");
  }
  bool end_array() {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& what) {
    error = fmt::format("byte {}: {}", position, what.what());
    return false;
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets, done };

  bool refuse(std::string_view what) {
    error = fmt::format("{} at '{}'", what, key_);
    return false;
  }

  Place place_ = Place::outside;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  bool has_type_ = false, has_shape_ = false, has_offsets_ = false;
};

// Offsets must cover the data exactly, one tensor behind the other.
Status check_layout(std::vector<SafetensorsEntry>& entries, uint64_t data_begin,
                    uint64_t file_size) {
  std::ranges::stable_sort(entries, {}, [](const SafetensorsEntry& entry) {
    return std::pair(entry.offset, entry.size);
  });
  std::unordered_set<std::string_view> names;
  uint64_t next = 0;
  for (SafetensorsEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      return fail(ErrorCode::corrupt, "two tensors are named '{}'", entry.name);
    }
    HOLOGRAM_TRY(const uint64_t count,
                 in_context(element_count(entry.shape, entry.dtype), [&] { return entry.name; }));
    if (bytes_for(entry.dtype, count) != entry.size) {
      return fail(ErrorCode::corrupt, "tensor '{}' has {} bytes, but its shape needs {}",
                  entry.name, entry.size, bytes_for(entry.dtype, count));
    }
    if (entry.offset != next) {
      return fail(ErrorCode::corrupt, "tensor '{}' begins at {} and not at {}: a gap or an overlap",
                  entry.name, entry.offset, next);
    }
    if (entry.size > file_size - data_begin - next) {
      return fail(ErrorCode::corrupt, "the file ends inside tensor '{}'", entry.name);
    }
    next += entry.size;
    entry.offset += data_begin;
  }
  if (next != file_size - data_begin) {
    return fail(ErrorCode::corrupt, "{} bytes at the end belong to no tensor",
                file_size - data_begin - next);
  }
  return {};
}

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<DType> dtype_from_safetensors(std::string_view name) {
  for (const TypeName& known : kTypeNames) {
    if (known.name == name) return known.type;
  }
  return fail(ErrorCode::unsupported, "element type '{}' is not known", name);
}

Result<std::string_view> safetensors_name(DType type) {
  for (const TypeName& known : kTypeNames) {
    if (known.type == type) return known.name;
  }
  return fail(ErrorCode::unsupported,
              "safetensors has no element type {}; it has bool, i8-i64, u8-u64, f16, bf16, f32, "
              "f64, fp8 and complex64",
              hologram::name_of(type));
}

Result<SafetensorsReader> SafetensorsReader::open(const std::filesystem::path& path) {
  HOLOGRAM_TRY(auto source, open_file(path));
  return in_context(open(std::move(source)), [&] { return path.string(); });
}

Result<SafetensorsReader> SafetensorsReader::open(std::shared_ptr<RandomAccess> source) {
  const uint64_t file_size = source->size();
  std::byte head[8];
  if (file_size < sizeof head) {
    return fail(ErrorCode::corrupt, "{} bytes are too few for a safetensors file", file_size);
  }
  HOLOGRAM_CHECK(source->read(0, head));
  const uint64_t header_size = load<uint64_t>(head);
  if (header_size > kMaxSafetensorsHeader || header_size > file_size - sizeof head) {
    return fail(ErrorCode::corrupt,
                "not a safetensors file: a header of {} bytes in a file of {} (at most {})",
                header_size, file_size, kMaxSafetensorsHeader);
  }
  std::vector<std::byte> text(header_size);
  HOLOGRAM_CHECK(source->read(sizeof head, text));
  if (text.empty() || text[0] != std::byte{'{'}) {
    return fail(ErrorCode::corrupt, "not a safetensors file: the header does not begin with {{");
  }
  HeaderHandler handler;
  const auto* begin = reinterpret_cast<const char*>(text.data());
  if (!nlohmann::json::sax_parse(begin, begin + text.size(), &handler)) {
    return fail(ErrorCode::corrupt, "the header is no safetensors header: {}", handler.error);
  }
  SafetensorsReader reader;
  reader.source_ = std::move(source);
  reader.tensors_ = std::move(handler.entries);
  reader.metadata_ = std::move(handler.metadata);
  HOLOGRAM_CHECK(check_layout(reader.tensors_, sizeof head + header_size, file_size));
  return reader;
}

Result<std::vector<std::byte>> SafetensorsReader::read(const SafetensorsEntry& entry) const {
  std::vector<std::byte> bytes(entry.size);
  HOLOGRAM_CHECK(read(entry, 0, bytes));
  return bytes;
}

Status SafetensorsReader::read(const SafetensorsEntry& entry, uint64_t offset,
                               std::span<std::byte> out) const {
  if (offset > entry.size || out.size() > entry.size - offset)
    return fail(ErrorCode::out_of_range, "{} bytes at {} of tensor '{}', which has {}", out.size(),
                offset, entry.name, entry.size);
  return in_context(source_->read(entry.offset + offset, out),
                    [&] { return "tensor '" + entry.name + "'"; });
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    std::vector<SafetensorsEntry> entries,
                                                    const SafetensorsMetadata& metadata) {
  std::string header = "{";
  const auto separate = [&] {
    if (header.size() > 1) header += ',';
  };
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata) {
      pairs += fmt::format("{}{}:{}", pairs.empty() ? "" : ",", json_text(key), json_text(value));
    }
    header += fmt::format("\"__metadata__\":{{{}}}", pairs);
  }
  uint64_t offset = 0;
  std::unordered_set<std::string_view> names;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == "__metadata__" || !names.insert(entry.name).second) {
      return fail(ErrorCode::already_exists, "the tensor name '{}' is taken", entry.name);
    }
    HOLOGRAM_TRY(const auto type, in_context(safetensors_name(entry.dtype),
                                             [&] { return "tensor '" + entry.name + "'"; }));
    HOLOGRAM_TRY(const uint64_t count, element_count(entry.shape, entry.dtype));
    const uint64_t size = bytes_for(entry.dtype, count);
    separate();
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          json_text(entry.name), type, fmt::join(entry.shape, ","), offset,
                          offset + size);
    offset += size;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data begins aligned
  if (header.size() > kMaxSafetensorsHeader) {
    return fail(ErrorCode::unsupported, "a safetensors header of {} bytes; at most {} are allowed",
                header.size(), kMaxSafetensorsHeader);
  }
  HOLOGRAM_TRY(auto file, FileWriter::create(path));
  const uint64_t size = header.size();
  HOLOGRAM_CHECK(file.write(std::as_bytes(std::span(&size, 1))));
  HOLOGRAM_CHECK(file.write(std::as_bytes(std::span(header))));
  return SafetensorsWriter(std::move(file), offset);
}

Status SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_) {
    return fail(ErrorCode::out_of_range, "{} bytes are more than the {} that are missing",
                bytes.size(), missing_);
  }
  HOLOGRAM_CHECK(file_.write(bytes));
  missing_ -= bytes.size();
  return {};
}

Status SafetensorsWriter::finish() {
  if (missing_ != 0) {
    return fail(ErrorCode::invalid_argument, "{} bytes of tensors were not written", missing_);
  }
  return file_.commit();
}

}  // namespace hologram::holotensor
