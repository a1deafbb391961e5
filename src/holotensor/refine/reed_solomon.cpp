#include "holotensor/refine/reed_solomon.h"

#include <isa-l.h>

#include <algorithm>
#include <cstring>

namespace hologram::holotensor::refine {
namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// ISA-L takes lengths as int, and pointers that it may write through: pieces of at most 1 GiB.
void multiply(size_t size, unsigned k, unsigned rows, unsigned char* matrix,
              const std::vector<const std::byte*>& from, const std::vector<std::byte*>& to) {
  if (rows == 0) return;
  std::vector<unsigned char> tables(size_t{32} * k * rows);
  ec_init_tables(static_cast<int>(k), static_cast<int>(rows), matrix, tables.data());
  constexpr size_t kPiece = size_t{1} << 30;
  for (size_t at = 0; at < size; at += kPiece) {
    std::vector<unsigned char*> in, out;
    for (const std::byte* bytes : from) in.push_back(raw(const_cast<std::byte*>(bytes + at)));
    for (std::byte* bytes : to) out.push_back(raw(bytes + at));
    ec_encode_data(static_cast<int>(std::min(kPiece, size - at)), static_cast<int>(k),
                   static_cast<int>(rows), tables.data(), in.data(), out.data());
  }
}

// n rows of k coefficients; the first k are the identity, and every k rows are independent.
std::vector<unsigned char> generator(unsigned k, unsigned n) {
  std::vector<unsigned char> matrix(size_t{n} * k);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(n), static_cast<int>(k));
  return matrix;
}

}  // namespace

void encode_shard(std::span<const std::byte> padded, unsigned k, unsigned n, unsigned index,
                  std::span<std::byte> out) {
  const size_t size = out.size();
  if (index < k) {
    if (size > 0) std::memcpy(out.data(), padded.data() + index * size, size);
    return;
  }
  std::vector<const std::byte*> from;
  for (unsigned i = 0; i < k; ++i) from.push_back(padded.data() + i * size);
  auto matrix = generator(k, n);
  multiply(size, k, 1, matrix.data() + size_t{index} * k, from, {out.data()});
}

Result<std::vector<std::byte>> decode_shards(std::span<const Shard> shards, unsigned k, unsigned n,
                                             size_t size) {
  const size_t length = shard_size(size, k);
  if (shards.size() < k)
    return fail(ErrorCode::not_found, "{} shards of the {} that are needed", shards.size(), k);
  std::vector<const Shard*> by_index(n);
  for (const Shard& shard : shards) {
    if (shard.index >= n || shard.bytes.size() != length)
      return fail(ErrorCode::corrupt, "shard {} of {} bytes; expected {}", shard.index,
                  shard.bytes.size(), length);
    by_index[shard.index] = &shard;
  }
  // The data's own shards first: they are copied, not computed.
  std::vector<const Shard*> used;
  for (const Shard* shard : by_index)
    if (shard && used.size() < k) used.push_back(shard);
  if (used.size() < k) return fail(ErrorCode::not_found, "too few different shards");
  std::vector<std::byte> data(length * k);
  std::vector<unsigned> missing;
  for (unsigned i = 0; i < k; ++i) {
    if (!by_index[i])
      missing.push_back(i);
    else if (length > 0)
      std::memcpy(data.data() + i * length, by_index[i]->bytes.data(), length);
  }
  if (!missing.empty()) {
    const auto matrix = generator(k, n);
    std::vector<unsigned char> rows(size_t{k} * k), inverse(size_t{k} * k), wanted;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (unsigned r = 0; r < k; ++r) {
      std::memcpy(rows.data() + size_t{r} * k, matrix.data() + size_t{used[r]->index} * k, k);
      from.push_back(used[r]->bytes.data());
    }
    if (gf_invert_matrix(rows.data(), inverse.data(), static_cast<int>(k)) != 0)
      return fail(ErrorCode::internal, "a matrix of the erasure code has no inverse");
    for (const unsigned i : missing) {
      wanted.insert(wanted.end(), inverse.begin() + i * k, inverse.begin() + (i + 1) * k);
      to.push_back(data.data() + i * length);
    }
    multiply(length, k, static_cast<unsigned>(missing.size()), wanted.data(), from, to);
  }
  data.resize(size);
  return data;
}

}  // namespace hologram::holotensor::refine
