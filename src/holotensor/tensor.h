// TensorView and TensorInfo: a tensor to encode, and all that a file says about an encoded one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holotensor/quality.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::holotensor {

// The bytes of a tensor that are not in memory. Thread-safe.
class TensorBytes {
 public:
  virtual ~TensorBytes() = default;
  virtual uint64_t size() const = 0;
  virtual Status read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// Borrowed: contiguous elements in row-major order.
struct TensorView {
  std::string_view name;
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
  // Where the bytes are instead, so that a large tensor is encoded without being in memory.
  const TensorBytes* stored = nullptr;

  uint64_t byte_count() const { return stored ? stored->size() : bytes.size(); }
  // Bytes [offset, offset + size), which are there: in place, or read into `scratch`.
  Result<std::span<const std::byte>> read(uint64_t offset, size_t size,
                                          std::vector<std::byte>& scratch) const;
};

// Number of elements; fails on negative dimensions and where bytes_for(dtype, count) overflows.
Result<uint64_t> element_count(std::span<const int64_t> shape, DType dtype);
// Fails unless `bytes` is exactly what dtype and shape need.
Status validate(const TensorView& tensor);

// The numbers are written into files: append, never renumber.
enum class SchemeId : uint8_t {
  packed = 0,      // the source bytes, compressed: one fragment, all or nothing; any element type
  refine = 1,      // embedded planes, entropy coded (the default)
  spectral = 2,    // 2-D DCT
  projection = 3,  // structured random projections, least squares
  lowrank = 4,     // randomised SVD with an optional exact residual
};
std::string_view name_of(SchemeId scheme);
Result<SchemeId> scheme_from_name(std::string_view name);

// How layers are dealt over fragments.
enum class Distribution : uint8_t {
  ordered = 0,  // no redundancy; the fragments 0..k-1 decode
  any = 1,      // any k fragments decode
};

// Where a fragment lies in its file, and how to know it.
struct FragmentEntry {
  uint64_t offset = 0;  // of its 32-byte header, from the start of the file (or section)
  uint64_t size = 0;    // header and stored payload
  uint64_t hash = 0;    // the fragment's own XXH3-64
};

// All a decoder needs besides fragments. Comes from an encoder, or from a file's directory.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  SchemeId scheme = SchemeId::refine;
  Distribution distribution = Distribution::ordered;
  uint16_t fragment_count = 0;
  uint16_t min_fragments = 0;  // fewer give nothing better than zeros
  uint64_t seed = 0;
  uint64_t content_hash = 0;  // XXH3-64 of the source bytes
  uint64_t id = 0;            // names this encoding of this tensor; every fragment carries it
  std::vector<std::byte> parameters;     // the scheme's own, at most kMaxParameters
  QualityCurve curve;                    // fragment_count + 1 points
  std::vector<FragmentEntry> fragments;  // fragment_count entries

  uint64_t elements() const;      // checked when the info was made
  uint64_t source_bytes() const;  // bytes_for(dtype, elements())
  uint64_t stored_bytes() const;  // all fragments with their headers
};
inline constexpr size_t kMaxParameters = 1 << 20;
inline constexpr size_t kMaxFragments = 4096;
inline constexpr size_t kMaxRank = 255;
inline constexpr size_t kMaxName = 4096;

// The id of an encoding: a hash of every field but the name. Equal tensors, equally encoded, have
// equal fragments whatever they are called.
uint64_t identity_of(const TensorInfo& info);

// Bytes that stay valid while `owner` lives: a map, a vector, or nothing for borrowed memory.
struct SharedBytes {
  std::span<const std::byte> view;
  std::shared_ptr<const void> owner;

  static SharedBytes borrowed(std::span<const std::byte> view) { return {view, nullptr}; }
  static SharedBytes owned(std::vector<std::byte> bytes) {
    auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return {{kept->data(), kept->size()}, kept};
  }
};

}  // namespace hologram::holotensor
