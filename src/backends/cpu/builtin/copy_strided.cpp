// copy_strided: elements from one four-dimensional layout to another.
#include <algorithm>
#include <cstring>

#include "backends/cpu/builtin/families.h"

namespace hologram::backends {
namespace {

struct Layouts {
  uint64_t dims[4];
  int64_t from_offset, from[4];
  int64_t to_offset, to[4];
};

// Words: source, target, element size, d0..d3, source offset, s0..s3, target offset, t0..t3.
Layouts layouts(const uint64_t* words) {
  Layouts result;
  for (int i = 0; i < 4; ++i) {
    result.dims[i] = words[3 + i];
    result.from[i] = static_cast<int64_t>(words[8 + i]);
    result.to[i] = static_cast<int64_t>(words[13 + i]);
  }
  result.from_offset = static_cast<int64_t>(words[7]);
  result.to_offset = static_cast<int64_t>(words[12]);
  return result;
}

Status check_reach(std::string_view what, const uint64_t* dims, int64_t offset,
                   const int64_t* strides, uint64_t elements) {
  int64_t low = offset, high = offset;
  bool fits = true;
  for (int i = 0; i < 4 && fits; ++i) {
    int64_t reach;
    fits = dims[i] < uint64_t{1} << 63 &&
           !__builtin_mul_overflow(static_cast<int64_t>(dims[i] - 1), strides[i], &reach) &&
           !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
  }
  if (fits && low >= 0 && static_cast<uint64_t>(high) < elements) return {};
  return fail(ErrorCode::out_of_range,
              "kernel 'copy_strided': reaches outside the {}'s {} elements", what, elements);
}

Status check(const uint64_t* words, const uint64_t* lengths) {
  const uint64_t size = words[2];
  if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16)
    return fail(ErrorCode::invalid_argument,
                "kernel 'copy_strided': elements of {} bytes; there are 1, 2, 4, 8 and 16", size);
  const Layouts at = layouts(words);
  for (uint64_t dim : at.dims)
    if (dim == 0) return {};
  HOLOGRAM_CHECK(check_reach("source", at.dims, at.from_offset, at.from, lengths[0] / size));
  return check_reach("target", at.dims, at.to_offset, at.to, lengths[1] / size);
}

struct Wide {
  uint64_t low, high;
};

// One plane: rows x columns. A transposing copy goes by small tiles, so that both sides stay in
// cache however far apart their rows are.
template <typename T>
void copy_plane(const T* from, T* to, uint64_t rows, uint64_t columns, int64_t from_row,
                int64_t from_column, int64_t to_row, int64_t to_column) {
  if (from_column == 1 && to_column == 1) {
    for (uint64_t r = 0; r < rows; ++r)
      std::memcpy(to + static_cast<int64_t>(r) * to_row, from + static_cast<int64_t>(r) * from_row,
                  columns * sizeof(T));
    return;
  }
  constexpr uint64_t kTile = 32;
  const bool tiled = from_column != 0 && rows > kTile && columns > kTile;
  const uint64_t row_tile = tiled ? kTile : rows, column_tile = tiled ? kTile : columns;
  for (uint64_t r0 = 0; r0 < rows; r0 += row_tile)
    for (uint64_t c0 = 0; c0 < columns; c0 += column_tile)
      for (uint64_t r = r0; r < std::min(rows, r0 + row_tile); ++r) {
        const T* source = from + static_cast<int64_t>(r) * from_row;
        T* target = to + static_cast<int64_t>(r) * to_row;
        for (uint64_t c = c0; c < std::min(columns, c0 + column_tile); ++c)
          target[static_cast<int64_t>(c) * to_column] =
              source[static_cast<int64_t>(c) * from_column];
      }
}

template <typename T>
void copy(const CpuContext& context, const Layouts& at, const void* source, void* target) {
  const T* from = static_cast<const T*>(source) + at.from_offset;
  T* to = static_cast<T*>(target) + at.to_offset;
  const auto& d = at.dims;
  // Rows of all planes together are shared out among the threads.
  const uint64_t rows = d[0] * d[1] * d[2];
  const auto body = [&](size_t begin, size_t end) {
    for (uint64_t row = begin; row < end;) {
      const uint64_t plane = row / d[2], first = row % d[2];
      const uint64_t count = std::min<uint64_t>(d[2] - first, end - row);
      const auto i = static_cast<int64_t>(plane / d[1]), j = static_cast<int64_t>(plane % d[1]);
      const auto k = static_cast<int64_t>(first);
      copy_plane(from + i * at.from[0] + j * at.from[1] + k * at.from[2],
                 to + i * at.to[0] + j * at.to[1] + k * at.to[2], count, d[3], at.from[2],
                 at.from[3], at.to[2], at.to[3]);
      row += count;
    }
  };
  constexpr uint64_t kWorthForking = 256 * 1024;  // bytes
  if (rows * d[3] * sizeof(T) < kWorthForking)
    body(0, rows);
  else
    context.parallel_for(rows, 64, body);
}

Status run(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const Layouts at = layouts(words);
  for (uint64_t dim : at.dims)
    if (dim == 0) return {};
  const void* from = reinterpret_cast<const void*>(words[0]);
  void* to = reinterpret_cast<void*>(words[1]);
  switch (words[2]) {
    case 1:
      copy<uint8_t>(context, at, from, to);
      break;
    case 2:
      copy<uint16_t>(context, at, from, to);
      break;
    case 4:
      copy<uint32_t>(context, at, from, to);
      break;
    case 8:
      copy<uint64_t>(context, at, from, to);
      break;
    default:
      copy<Wide>(context, at, from, to);
      break;
  }
  return {};
}

}  // namespace

void add_copy_builtins(BuiltinTable& table) {
  std::vector<isa::Parameter> parameters = {input("source", DType::u8), output("target", DType::u8),
                                            scalar("element_size", DType::u32)};
  for (int i = 0; i < 4; ++i) parameters.push_back(scalar(fmt::format("d{}", i), DType::i64));
  parameters.push_back(scalar("source_offset", DType::i64));
  for (int i = 0; i < 4; ++i) parameters.push_back(scalar(fmt::format("s{}", i), DType::i64));
  parameters.push_back(scalar("target_offset", DType::i64));
  for (int i = 0; i < 4; ++i) parameters.push_back(scalar(fmt::format("t{}", i), DType::i64));
  table.add("copy_strided", std::move(parameters),
            "elements of d0 x d1 x d2 x d3 from strides s to strides t", run, check);
}

}  // namespace hologram::backends
