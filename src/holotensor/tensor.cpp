#include "holotensor/tensor.h"

#include "holotensor/byte_io.h"
#include "support/hash.h"

namespace hologram::holotensor {

Result<uint64_t> element_count(std::span<const int64_t> shape, DType dtype) {
  const uint64_t bits = bits_of(dtype);
  if (bits == 0)
    return fail(ErrorCode::unsupported, "tensors of {} have no fixed size and cannot be encoded",
                name_of(dtype));
  if (shape.size() > kMaxRank)
    return fail(ErrorCode::invalid_argument, "rank {} is above the limit of {}", shape.size(),
                kMaxRank);
  uint64_t count = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return fail(ErrorCode::invalid_argument, "dimension {} is negative", dim);
    empty |= dim == 0;
    // 2^56 bytes: what a fragment's size field holds.
    if (dim != 0 && __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return fail(ErrorCode::invalid_argument, "the shape has more than 2^64 elements");
    if (count > (uint64_t{1} << 59) / bits * 8)
      return fail(ErrorCode::invalid_argument, "a tensor of {} {} elements is too large", count,
                  name_of(dtype));
  }
  return empty ? 0 : count;
}

Result<std::span<const std::byte>> TensorView::read(uint64_t offset, size_t size,
                                                    std::vector<std::byte>& scratch) const {
  if (!stored) return bytes.subspan(offset, size);
  if (scratch.size() < size) scratch.resize(size);
  const auto out = std::span(scratch).first(size);
  HOLOGRAM_CHECK(stored->read(offset, out));
  return std::span<const std::byte>(out);
}

Status validate(const TensorView& tensor) {
  HOLOGRAM_TRY(const uint64_t count, element_count(tensor.shape, tensor.dtype));
  const uint64_t need = bytes_for(tensor.dtype, count);
  if (tensor.byte_count() != need)
    return fail(ErrorCode::shape_mismatch,
                "tensor '{}' has {} bytes, but its shape and type {} need {}", tensor.name,
                tensor.byte_count(), name_of(tensor.dtype), need);
  if (tensor.name.size() > kMaxName)
    return fail(ErrorCode::invalid_argument, "a tensor's name has {} bytes; the limit is {}",
                tensor.name.size(), kMaxName);
  return {};
}

std::string_view name_of(SchemeId scheme) {
  switch (scheme) {
    case SchemeId::packed:
      return "packed";
    case SchemeId::refine:
      return "refine";
    case SchemeId::spectral:
      return "spectral";
    case SchemeId::projection:
      return "projection";
    case SchemeId::lowrank:
      return "lowrank";
  }
  return "unknown";
}

Result<SchemeId> scheme_from_name(std::string_view name) {
  for (const auto id : {SchemeId::packed, SchemeId::refine, SchemeId::spectral,
                        SchemeId::projection, SchemeId::lowrank})
    if (name_of(id) == name) return id;
  return fail(ErrorCode::invalid_argument,
              "no scheme named '{}'; there are packed, refine, spectral, projection and lowrank",
              name);
}

uint64_t TensorInfo::elements() const {
  uint64_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<uint64_t>(dim);
  return count;
}

uint64_t TensorInfo::source_bytes() const { return bytes_for(dtype, elements()); }

uint64_t TensorInfo::stored_bytes() const {
  uint64_t total = 0;
  for (const FragmentEntry& fragment : fragments) total += fragment.size;
  return total;
}

uint64_t identity_of(const TensorInfo& info) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.put(static_cast<uint8_t>(info.dtype));
  out.varint(info.shape.size());
  for (const int64_t dim : info.shape) out.put(dim);
  out.put(static_cast<uint8_t>(info.scheme));
  out.put(static_cast<uint8_t>(info.distribution));
  out.put(info.fragment_count);
  out.put(info.min_fragments);
  out.put(info.seed);
  out.put(info.content_hash);
  out.bytes(info.parameters);
  return hash64(bytes);
}

}  // namespace hologram::holotensor
