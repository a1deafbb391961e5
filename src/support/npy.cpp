#include "support/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "support/file.h"

namespace hologram {
namespace {

struct Descr {
  std::string_view code;  // without the byte order
  DType type;
};
constexpr Descr kDescrs[] = {
    {"b1", DType::boolean}, {"i1", DType::i8},        {"i2", DType::i16},
    {"i4", DType::i32},     {"i8", DType::i64},       {"u1", DType::u8},
    {"u2", DType::u16},     {"u4", DType::u32},       {"u8", DType::u64},
    {"f2", DType::f16},     {"f4", DType::f32},       {"f8", DType::f64},
    {"V2", DType::bf16},    {"c8", DType::complex64}, {"c16", DType::complex128},
};

// The value behind 'key': in the header's dictionary, up to where it ends.
std::optional<std::string_view> find_value(std::string_view header, std::string_view key) {
  size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find(':', at);
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  const char first = header[at];
  const size_t end = first == '\''  ? header.find('\'', at + 1) + 1
                     : first == '(' ? header.find(')', at) + 1
                                    : header.find_first_of(",}", at);
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  return header.substr(at, end - at);
}

std::unexpected<Error> bad(std::string_view what) {
  return fail(ErrorCode::corrupt, "not a readable .npy file: {}", what);
}

Result<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (item.empty() && text.empty()) break;  // "(3,)"
    int64_t value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc() || end != item.data() + item.size() || value < 0)
      return bad(fmt::format("'{}' is not a dimension", item));
    shape.push_back(value);
  }
  return shape;
}

// Fortran order to C order: the same array with its axes reversed, then transposed back.
std::vector<std::byte> to_c_order(std::span<const std::byte> data, std::span<const int64_t> shape,
                                  size_t size) {
  std::vector<std::byte> result(data.size());
  std::vector<int64_t> index(shape.size(), 0);
  const size_t count = data.size() / size;
  for (size_t out = 0; out < count; ++out) {
    size_t from = 0;
    for (size_t axis = shape.size(); axis-- > 0;)
      from = from * static_cast<size_t>(shape[axis]) + static_cast<size_t>(index[axis]);
    std::memcpy(result.data() + out * size, data.data() + from * size, size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

uint64_t NpyArray::element_count() const {
  uint64_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<uint64_t>(dim);
  return count;
}

Result<NpyArray> parse_npy(std::span<const std::byte> file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (file.size() < 10 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return bad("it does not begin with NumPy's mark");
  const int version = static_cast<int>(file[6]);
  if (version < 1 || version > 3) return bad(fmt::format("version {} is not known", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (file.size() < 8 + length_bytes) return bad("it is cut off in the header");
  size_t header_size = 0;
  for (size_t i = length_bytes; i-- > 0;)
    header_size = header_size << 8 | static_cast<size_t>(file[8 + i]);
  const size_t start = 8 + length_bytes;
  if (header_size > file.size() - start) return bad("it is cut off in the header");
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + start, header_size);

  const auto descr = find_value(header, "descr");
  const auto order = find_value(header, "fortran_order");
  const auto shape = find_value(header, "shape");
  if (!descr || !order || !shape || descr->size() < 4 || shape->front() != '(')
    return bad("its header lacks descr, fortran_order or shape");
  NpyArray array;
  HOLOGRAM_TRY(array.shape, parse_shape(*shape));
  const char byte_order = (*descr)[1];
  const std::string_view code = descr->substr(2, descr->size() - 3);
  const auto found = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                  [&](const Descr& d) { return d.code == code; });
  if (found == std::end(kDescrs))
    return fail(
        ErrorCode::unsupported,
        "the .npy element type {} is not supported: save as bool, int, uint, float or complex",
        *descr);
  array.type = found->type;

  const size_t size = size_of(array.type);
  uint64_t count = 1;
  for (const int64_t dim : array.shape)
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return bad("its shape is too large");
  const std::span<const std::byte> body = file.subspan(start + header_size);
  if (count > body.size() / size || body.size() != count * size)
    return bad(fmt::format("its shape needs {} elements of {} bytes, {} bytes are there", count,
                           size, body.size()));
  if (order->starts_with("True") && array.shape.size() > 1) {
    array.data = to_c_order(body, array.shape, size);
  } else {
    array.data.assign(body.begin(), body.end());
  }
  if (byte_order == '>') {
    const bool complex = array.type == DType::complex64 || array.type == DType::complex128;
    const size_t word = complex ? size / 2 : size;
    for (size_t i = 0; i + word <= array.data.size(); i += word)
      std::reverse(array.data.begin() + static_cast<ptrdiff_t>(i),
                   array.data.begin() + static_cast<ptrdiff_t>(i + word));
  }
  return array;
}

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const FileMap map, FileMap::open(path));
  return in_context(parse_npy(map.bytes()), [&] { return path.string(); });
}

Result<std::vector<std::byte>> format_npy(DType type, std::span<const int64_t> shape,
                                          std::span<const std::byte> data) {
  const auto found = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                  [&](const Descr& d) { return d.type == type; });
  if (found == std::end(kDescrs))
    return fail(ErrorCode::unsupported, "NumPy has no element type {}: convert the tensor first",
                name_of(type));
  std::string dims;
  for (const int64_t dim : shape) dims += fmt::format("{},", dim);
  if (shape.size() > 1) dims.pop_back();
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   size_of(type) == 1 ? '|' : '<', found->code, dims);
  // Padded so that the elements begin at a multiple of 64; the last character is a new line.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string start = "\x93NUMPY";
  start += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  start += header;
  std::vector<std::byte> file(start.size() + data.size());
  std::memcpy(file.data(), start.data(), start.size());
  if (!data.empty()) std::memcpy(file.data() + start.size(), data.data(), data.size());
  return file;
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  HOLOGRAM_TRY(const std::vector<std::byte> file, format_npy(array.type, array.shape, array.data));
  return write_file(path, file);
}

}  // namespace hologram
