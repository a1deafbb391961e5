#include "onnx/tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "backends/cpu/kernels/alignment.h"
#include "onnx/pbf_reader.h"

namespace hologram::onnx {

using graph::ValueType;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {
constexpr size_t kSmall = 64 * 1024;
}

std::optional<DType> dtype_from_onnx(int64_t code) {
  static constexpr DType kTypes[] = {
      DType::f32,  DType::u8,       DType::i8,         DType::u16,       DType::i16,
      DType::i32,  DType::i64,      DType::string,     DType::boolean,   DType::f16,
      DType::f64,  DType::u32,      DType::u64,        DType::complex64, DType::complex128,
      DType::bf16, DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,    DType::f8e5m2fnuz,
      DType::u4,   DType::i4,       DType::f4e2m1,     DType::f8e8m0,    DType::u2,
      DType::i2};
  if (code < 1 || code > static_cast<int64_t>(std::size(kTypes))) return std::nullopt;
  return kTypes[code - 1];
}

namespace {

template <typename To, typename From>
Status copy_elements(const std::vector<From>& from, const Tensor& to, size_t count) {
  if (from.size() != count)
    return fail(ErrorCode::corrupt, "{} elements where the shape {} wants {}", from.size(),
                to.dims.to_string(), count);
  for (size_t i = 0; i < count; ++i) to.as<To>()[i] = static_cast<To>(from[i]);
  return {};
}

// Elements in the typed fields of the message.
Status copy_typed(const TensorProto& proto, const Tensor& tensor) {
  const size_t count = tensor.count();
  switch (tensor.dtype) {
    case DType::f32:
      return copy_elements<float>(proto.floats, tensor, count);
    case DType::complex64:
      return copy_elements<float>(proto.floats, tensor, 2 * count);
    case DType::f64:
      return copy_elements<double>(proto.doubles, tensor, count);
    case DType::complex128:
      return copy_elements<double>(proto.doubles, tensor, 2 * count);
    case DType::i64:
      return copy_elements<int64_t>(proto.longs, tensor, count);
    case DType::u64:
      return copy_elements<uint64_t>(proto.unsigned_longs, tensor, count);
    case DType::u32:
      return copy_elements<uint32_t>(proto.unsigned_longs, tensor, count);
    case DType::i32:
      return copy_elements<int32_t>(proto.ints, tensor, count);
    case DType::i16:
      return copy_elements<int16_t>(proto.ints, tensor, count);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return copy_elements<uint16_t>(proto.ints, tensor, count);
    // 8-bit types one a number; smaller ones already packed, a byte a number.
    default:
      return copy_elements<uint8_t>(proto.ints, tensor, bytes_for(tensor.dtype, count));
  }
}

// Bytes of a model that are meant as bools: all but 0 is true. Elsewhere one is 0 or 1.
Result<Tensor> with_bools(Tensor tensor) {
  if (tensor.dtype != DType::boolean ||
      std::ranges::all_of(tensor.span<uint8_t>(), [](uint8_t byte) { return byte <= 1; }))
    return tensor;
  HOLOGRAM_TRY(Tensor bools, tensor.clone());
  for (uint8_t& byte : bools.span<uint8_t>()) byte = byte != 0;
  return bools;
}

Result<uint64_t> number_of(const std::map<std::string, std::string>& map, const char* key,
                           uint64_t fallback) {
  auto found = map.find(key);
  if (found == map.end()) return fallback;
  uint64_t value = 0;
  const std::string& text = found->second;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(ErrorCode::corrupt, "external data with {} '{}'", key, text);
  return value;
}

}  // namespace

Result<Tensor> TensorReader::read_external(const TensorProto& proto, Tensor tensor) {
  auto location = proto.external_data.find("location");
  if (location == proto.external_data.end())
    return fail(ErrorCode::corrupt, "external data without a location");
  if (!folder_) return fail(ErrorCode::unsupported, "external data in a model that is not a file");
  const std::filesystem::path path = std::filesystem::path(location->second).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..")
    return fail(ErrorCode::permission_denied, "external data '{}' lies outside the model's folder",
                location->second);
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(*folder_ / path, error);
  const auto base = std::filesystem::weakly_canonical(*folder_, error);
  if (error ||
      std::mismatch(base.begin(), base.end(), real.begin(), real.end()).first != base.end())
    return fail(ErrorCode::permission_denied, "external data '{}' leads outside the model's folder",
                location->second);
  auto& file = files_[path.string()];
  if (!file) {
    HOLOGRAM_TRY(FileMap map, FileMap::open(*folder_ / path));
    file = std::make_shared<const FileMap>(std::move(map));
  }
  HOLOGRAM_TRY(const uint64_t offset, number_of(proto.external_data, "offset", 0));
  HOLOGRAM_TRY(const uint64_t length, number_of(proto.external_data, "length", tensor.bytes()));
  if (length != tensor.bytes() || offset > file->size() || length > file->size() - offset)
    return fail(ErrorCode::corrupt,
                "external data '{}': {} bytes at {} of a file of {}, for a tensor of {}",
                location->second, length, offset, file->size(), tensor.bytes());
  tensor.data = const_cast<std::byte*>(file->bytes().data()) + offset;
  tensor.owner = file;
  return tensor;
}

Result<Tensor> TensorReader::read(const TensorProto& proto) {
  auto read_it = [&]() -> Result<Tensor> {
    const auto dtype = dtype_from_onnx(proto.data_type);
    if (!dtype)
      return fail(ErrorCode::unsupported, "element type {} is not one ONNX defines",
                  proto.data_type);
    if (proto.dims.size() > kernels::kMaxRank)
      return fail(ErrorCode::unsupported, "rank {}; at most {}", proto.dims.size(),
                  kernels::kMaxRank);
    Tensor tensor{*dtype, Dims(proto.dims)};
    if (!tensor.dims.are_possible())
      return fail(ErrorCode::corrupt, "impossible shape {}", tensor.dims.to_string());
    const auto count = static_cast<uint64_t>(tensor.count());
    if (*dtype == DType::string) {
      if (proto.strings.size() != count)
        return fail(ErrorCode::corrupt, "{} strings for {}", proto.strings.size(),
                    tensor.dims.to_string());
      return Tensor::from_strings(tensor.dims, {proto.strings.begin(), proto.strings.end()});
    }
    if (proto.external) return read_external(proto, std::move(tensor));
    if (proto.raw && (!proto.raw->empty() || count == 0)) {
      if (proto.raw->size() != tensor.bytes())
        return fail(ErrorCode::corrupt, "{} bytes where {} of {} wants {}", proto.raw->size(),
                    name_of(*dtype), tensor.dims.to_string(), tensor.bytes());
      tensor.data = reinterpret_cast<std::byte*>(const_cast<char*>(proto.raw->data()));
      tensor.owner = owner_;
      // Protobuf aligns nothing. Small tensors that lie askew (biases, statistics, indices) are
      // copied; weights stay, and who reads their elements aligns them first.
      return tensor.bytes() > kSmall ? tensor : kernels::aligned(tensor);
    }
    HOLOGRAM_TRY(tensor, Tensor::allocate(*dtype, tensor.dims));
    HOLOGRAM_CHECK(copy_typed(proto, tensor));
    return tensor;
  };
  return in_context(
      [&]() -> Result<Tensor> {
        HOLOGRAM_TRY(Tensor tensor, read_it());
        return with_bools(std::move(tensor));
      }(),
      [&] { return "tensor '" + std::string(proto.name) + "'"; });
}

Result<Tensor> TensorReader::read(const SparseTensorProto& proto) {
  HOLOGRAM_TRY(Tensor values, read(proto.values));
  HOLOGRAM_TRY(Tensor indices, read(proto.indices));
  HOLOGRAM_TRY(indices, kernels::aligned(indices));
  if (proto.dims.size() > kernels::kMaxRank || values.dtype == DType::string ||
      size_of(values.dtype) == 0)
    return fail(ErrorCode::unsupported, "sparse tensor of {}", name_of(values.dtype));
  // A few bytes of a file must not ask for all of the memory.
  constexpr int64_t kMost = int64_t{1} << 28;
  const Dims dims(proto.dims);
  if (dims.are_possible() && dims.count() > kMost)
    return fail(ErrorCode::resource_exhausted, "a sparse tensor of shape {}", dims.to_string());
  HOLOGRAM_TRY(Tensor dense, Tensor::allocate(values.dtype, dims));
  std::memset(dense.data, 0, dense.bytes());
  const Dims strides = dense.dims.strides();
  const bool linear = indices.dims.rank() == 1;
  const int64_t rank = static_cast<int64_t>(dense.dims.rank()), count = values.count();
  if (indices.dtype != DType::i64 || indices.count() != (linear ? count : count * rank))
    return fail(ErrorCode::corrupt, "sparse tensor with indices {} for {} values",
                indices.dims.to_string(), count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    if (linear)
      at = indices.as<int64_t>()[i];
    else
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t index = indices.as<int64_t>()[i * rank + axis];
        if (index < 0 || index >= dense.dims[axis])
          return fail(ErrorCode::corrupt, "sparse tensor with an index out of range");
        at += index * strides[axis];
      }
    if (at < 0 || at >= dense.count())
      return fail(ErrorCode::corrupt, "sparse tensor with an index out of range");
    std::memcpy(dense.data + at * size_of(dense.dtype), values.data + i * size_of(dense.dtype),
                size_of(dense.dtype));
  }
  return dense;
}

Result<ValueType> read_type(const TypeProto& proto) {
  switch (proto.kind) {
    case TypeProto::Kind::none:
      return ValueType{};
    case TypeProto::Kind::tensor: {
      const auto dtype = dtype_from_onnx(proto.element);
      if (!dtype)
        return fail(ErrorCode::unsupported, "element type {} is not one ONNX defines",
                    proto.element);
      ValueType type = ValueType::tensor(*dtype);
      if (!proto.shape) return type;
      if (proto.shape->size() > kernels::kMaxRank)
        return fail(ErrorCode::unsupported, "rank {}; at most {}", proto.shape->size(),
                    kernels::kMaxRank);
      std::vector<Dim> dims;
      Dims numbers;
      for (const DimProto& dim : *proto.shape) {
        if (dim.value && *dim.value > 0) numbers.push_back(*dim.value);
        if (dim.value && *dim.value >= 0)
          dims.emplace_back(*dim.value);
        else
          dims.emplace_back(std::string(dim.symbol.empty() ? "?" : dim.symbol));
      }
      type.shape = Shape(std::move(dims));
      if (!numbers.are_possible())
        return fail(ErrorCode::corrupt, "impossible shape {}", type.shape->to_string());
      return type;
    }
    case TypeProto::Kind::sequence:
    case TypeProto::Kind::optional: {
      if (proto.inner.size() != 1)
        return fail(ErrorCode::corrupt, "a sequence or optional without an element type");
      HOLOGRAM_TRY(ValueType element, read_type(proto.inner[0]));
      if (!element.is_known())
        return fail(ErrorCode::corrupt, "a sequence or optional without an element type");
      return proto.kind == TypeProto::Kind::sequence ? ValueType::sequence(std::move(element))
                                                     : ValueType::optional(std::move(element));
    }
    default:
      return fail(
          ErrorCode::unsupported,
          "maps, sparse tensors and opaque types; supported: tensors, sequences, optionals");
  }
}

namespace {

Result<Value> read_value(std::string_view bytes, const ValueType& type, TensorReader& reader) {
  if (type.kind == ValueType::Kind::tensor) {
    HOLOGRAM_TRY(const Tensor view, reader.read(read_tensor_proto(bytes)));
    HOLOGRAM_TRY(Tensor tensor, kernels::aligned(view));
    return Value(std::move(tensor));
  }
  // SequenceProto and OptionalProto: name 1, kind 2, tensor 3, sparse 4, sequence 5, map 6,
  // optional 7.
  protozero::pbf_reader m(bytes.data(), bytes.size());
  std::vector<Value> elements;
  while (m.next()) {
    if (m.tag() >= 3 && m.tag() <= 7) {
      const auto part = m.get_view();
      HOLOGRAM_TRY(Value element, read_value({part.data(), part.size()}, *type.element, reader));
      elements.push_back(std::move(element));
    } else {
      m.skip();
    }
  }
  if (type.kind == ValueType::Kind::sequence) return Value(std::move(elements));
  return elements.empty() ? Value() : std::move(elements[0]);
}

}  // namespace

Result<Value> read_value_file(const std::filesystem::path& path, const ValueType& type) {
  HOLOGRAM_TRY(FileMap map, FileMap::open(path));
  auto owner = std::make_shared<FileMap>(std::move(map));
  TensorReader reader(owner, path.parent_path());
  const std::string_view bytes(reinterpret_cast<const char*>(owner->bytes().data()), owner->size());
  try {
    return in_context(read_value(bytes, type, reader), [&] { return path.string(); });
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::corrupt, "{}: malformed protobuf: {}", path.string(), e.what());
  }
}

}  // namespace hologram::onnx
