#include "backends/cpu/dense/movement.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/transpose.h"

namespace hologram::backends::dense {
namespace {

// A permutation with dimensions of size 1 removed and those that stay neighbours merged; in the
// output's order: size, stride in x and stride in y (in elements).
struct Permutation {
  size_t rank = 0;
  size_t size[kMaxPermuteRank], from[kMaxPermuteRank], to[kMaxPermuteRank];

  Permutation(std::span<const size_t> dims, std::span<const size_t> order) {
    size_t strides[kMaxPermuteRank], stride = 1;
    for (size_t d = dims.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= dims[d];
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t d = order[i];
      if (dims[d] == 1) continue;
      if (rank > 0 && from[rank - 1] == strides[d] * dims[d]) {
        size[rank - 1] *= dims[d];
        from[rank - 1] = strides[d];
      } else {
        size[rank] = dims[d];
        from[rank++] = strides[d];
      }
    }
    stride = 1;
    for (size_t i = rank; i-- > 0;) {
      to[i] = stride;
      stride *= size[i];
    }
  }
};

template <typename T>
void transpose_plain(size_t rows, size_t columns, const T* from, size_t from_stride, T* to,
                     size_t to_stride) {
  for (size_t j = 0; j < columns; ++j)
    for (size_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

void transpose_any(size_t bytes, size_t rows, size_t columns, const std::byte* from,
                   size_t from_stride, std::byte* to, size_t to_stride) {
  const auto run = [&]<typename T>(T) {
    transpose_plain(rows, columns, reinterpret_cast<const T*>(from), from_stride,
                    reinterpret_cast<T*>(to), to_stride);
  };
  switch (bytes) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return transpose_block(rows, columns, reinterpret_cast<const float*>(from), from_stride,
                             reinterpret_cast<float*>(to), to_stride);
    default:
      return run(uint64_t{});
  }
}

}  // namespace

void permute(std::span<const size_t> dims, std::span<const size_t> order, size_t bytes,
             const void* x, void* y, ThreadPool& pool) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  size_t total = 1;
  for (size_t d : dims) total *= d;
  if (total == 0) return;
  const Permutation p(dims, order);
  const unsigned threads = total * bytes < 65536 ? 1 : 0;
  if (p.rank == 0 || p.rank == 1) {
    std::memcpy(to, from, total * bytes);
    return;
  }
  // The offsets of the index `n` over the dimensions that are not in `skip`.
  const size_t last = p.rank - 1;
  size_t contiguous = last;  // the output's dimension along which x is contiguous
  for (size_t i = 0; i < p.rank; ++i)
    if (p.from[i] == 1) contiguous = i;
  const auto offsets = [&](size_t n, size_t& at, size_t& place) {
    at = place = 0;
    for (size_t i = last; i-- > 0;) {
      if (i == contiguous) continue;
      at += n % p.size[i] * p.from[i];
      place += n % p.size[i] * p.to[i];
      n /= p.size[i];
    }
  };
  if (contiguous == last && p.from[last] == 1) {
    const size_t run = p.size[last] * bytes, runs = total / p.size[last];
    const auto body = [&](size_t begin, size_t end) {
      for (size_t n = begin; n < end; ++n) {
        size_t at, place;
        offsets(n, at, place);
        std::memcpy(to + place * bytes, from + at * bytes, run);
      }
    };
    pool.parallel_for(runs, std::max<size_t>(1, 16384 / run), body, Schedule::dynamic, threads);
    return;
  }
  // Matrices: rows along the output's last dimension, columns along x's contiguous one.
  constexpr size_t kBlock = 64;
  const size_t rows = p.size[last], columns = p.size[contiguous];
  const size_t down = (rows + kBlock - 1) / kBlock, across = (columns + kBlock - 1) / kBlock;
  const size_t matrices = total / rows / columns;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      size_t at, place;
      offsets(job / down / across, at, place);
      const size_t i = job / across % down * kBlock, j = job % across * kBlock;
      transpose_any(bytes, std::min(kBlock, rows - i), std::min(kBlock, columns - j),
                    from + (at + i * p.from[last] + j) * bytes, p.from[last],
                    to + (place + j * p.to[contiguous] + i) * bytes, p.to[contiguous]);
    }
  };
  pool.parallel_for(matrices * down * across, 1, body, Schedule::dynamic, threads);
}

void copy_runs(size_t count, size_t bytes, const void* x, size_t x_stride, void* y, size_t y_stride,
               ThreadPool& pool) {
  if (count * bytes == 0) return;
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  // A single long run is cut, so that threads share it.
  constexpr size_t kPiece = 64 * 1024;
  const size_t pieces = (bytes + kPiece - 1) / kPiece;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t run = job / pieces, first = job % pieces * kPiece;
      std::memcpy(to + run * y_stride + first, from + run * x_stride + first,
                  std::min(kPiece, bytes - first));
    }
  };
  pool.parallel_for(count * pieces, std::max<size_t>(1, kPiece / bytes), body, Schedule::dynamic,
                    count * bytes < 4 * kPiece ? 1 : 0);
}

bool gather_rows(size_t outer, size_t rows, size_t row_bytes, const void* x,
                 std::span<const int64_t> indices, void* y, ThreadPool& pool) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  const size_t count = indices.size();
  for (int64_t index : indices)
    if (index < -static_cast<int64_t>(rows) || index >= static_cast<int64_t>(rows)) return false;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const int64_t index = indices[job % count];
      const size_t row =
          static_cast<size_t>(index < 0 ? index + static_cast<int64_t>(rows) : index);
      std::memcpy(to + job * row_bytes, from + (job / count * rows + row) * row_bytes, row_bytes);
    }
  };
  pool.parallel_for(outer * count, std::max<size_t>(1, 16384 / std::max<size_t>(row_bytes, 1)),
                    body, Schedule::dynamic, outer * count * row_bytes < 262144 ? 1 : 0);
  return true;
}

}  // namespace hologram::backends::dense
