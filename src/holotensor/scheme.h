// Scheme: one way of turning a tensor into fragments; SchemeDecoder: and back.
//
// A scheme sees payloads only. Headers, checksums, compression, identity and files are common to
// all (fragment.h, format.h). Schemes are stateless and may be used from many threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "holotensor/tensor.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

struct EncoderOptions {
  SchemeId scheme = SchemeId::refine;
  Distribution distribution = Distribution::ordered;
  // At most; small tensors get fewer, so that headers do not outweigh what they head.
  uint16_t fragments = 8;
  uint64_t seed = 0;
  // At most one of the two. Without either the result is exact where the scheme can be.
  std::optional<double> target_bits;    // bits a weight, all fragments together
  std::optional<QualityTarget> target;  // stop when all fragments together reach it
  // `any` only: the signal-to-noise ratio in dB that any k fragments must give, for each k from
  // min_fragments to fragments-1. Empty: 16 dB at min_fragments and 6 dB more a fragment.
  std::vector<double> any_snr_db;
  uint16_t min_fragments = 3;  // `any` only
  ThreadPool* pool = nullptr;  // null: ThreadPool::shared(). Never changes a bit of the result.
};

struct SchemeOutput {
  std::vector<std::vector<std::byte>> fragments;  // raw payloads
  // Instead of them: `made` payloads, each made when it is asked for, so that a large tensor is not
  // in memory twice. Thread-safe.
  std::function<std::vector<std::byte>(size_t)> make;
  size_t made = 0;

  size_t count() const { return make ? made : fragments.size(); }
  // Each payload once.
  std::vector<std::byte> take(size_t i) { return make ? make(i) : std::move(fragments[i]); }

  std::vector<std::byte> parameters;  // at most kMaxParameters
  QualityCurve curve;                 // fragments.size() + 1 measured points
  uint16_t min_fragments = 1;
  Distribution distribution = Distribution::ordered;
  // Set when another scheme stores this tensor better (refine gives way to packed).
  std::optional<SchemeId> scheme;
};

// Collects payloads of one tensor. Not thread-safe; one owner at a time.
class SchemeDecoder {
 public:
  virtual ~SchemeDecoder() = default;
  // A payload whose checksum was right, which does not make it well-formed: every count and range
  // in it is checked. Each index is added at most once. On error nothing has changed.
  virtual Status add(uint16_t index, SharedBytes payload) = 0;
  // The index into the quality curve that the payloads so far are worth: for `ordered` the length
  // of the unbroken prefix, for `any` their number; 0 when nothing can be reconstructed.
  virtual uint16_t usable() const = 0;
  // Writes the best reconstruction as f32, f16, bf16, or the tensor's own type; `out` is exactly
  // bytes_for(type, elements). Where the curve says exact, the own type gets the exact bits.
  virtual Status reconstruct(DType type, std::span<std::byte> out, ThreadPool& pool) const = 0;
  // Elements that can be reconstructed without the others, as reconstruct_part() does from any
  // multiple of them; 0: only all together.
  virtual uint64_t part_elements() const { return 0; }
  virtual Status reconstruct_part(DType, uint64_t /*first*/, std::span<std::byte> /*out*/,
                                  ThreadPool&) const {
    return fail(ErrorCode::internal, "a scheme without parts");
  }
};

class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual SchemeId id() const = 0;
  // `tensor` is in memory, unless the scheme reads_stored().
  virtual Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions& options,
                                      ThreadPool& pool) const = 0;
  virtual bool reads_stored() const { return false; }
};

// The scheme of an id; null for one this build does not have.
const Scheme* find_scheme(SchemeId id);

// `info` outlives the decoder. Its parameters may be hostile. Apart from Scheme, so that a program
// that only reads has no encoder in it.
Result<std::unique_ptr<SchemeDecoder>> make_scheme_decoder(const TensorInfo& info);

}  // namespace hologram::holotensor
