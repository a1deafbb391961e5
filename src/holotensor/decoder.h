// Decoder: fragments into a tensor, as they come.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "holotensor/fragment.h"
#include "holotensor/scheme.h"
#include "support/function_ref.h"
#include "support/result.h"

namespace hologram::holotensor {

enum class Added { accepted, duplicate };

using TakeBytes = FunctionRef<Status(std::span<const std::byte>)>;

// One tensor. Not thread-safe; movable. The result depends on the set of fragments only, not on
// their order or on the thread count.
class Decoder {
 public:
  static Result<Decoder> create(TensorInfo info, ThreadPool* pool = nullptr);

  // A whole fragment (header and payload). Refused without effect: damaged ones (corrupt), those of
  // another tensor or encoding (invalid_argument). The bytes are kept, not copied.
  Result<Added> add_fragment(SharedBytes fragment);

  bool can_reconstruct() const;
  bool has(uint16_t index) const { return index < present_.size() && present_[index]; }
  uint16_t received() const;
  // From the header's measured curve, for the fragments received.
  Quality quality() const;

  // f32, f16, bf16 or the tensor's own type. An exact reconstruction into the own type is checked
  // against the content hash: a mismatch is `corrupt`, never a wrong tensor.
  Status reconstruct(DType type, std::span<std::byte> out) const;
  Result<std::vector<std::byte>> reconstruct(DType type) const;
  Result<std::vector<std::byte>> reconstruct() const { return reconstruct(info().dtype); }
  // In pieces, from the first byte to the last; with `refine`, memory holds one piece. The hash is
  // known last: on error, what was taken is not to be used.
  Status reconstruct(DType type, TakeBytes take) const;

  const TensorInfo& info() const { return *info_; }

 private:
  Decoder() = default;
  Status check_ready(DType type) const;
  std::shared_ptr<const TensorInfo> info_;
  std::unique_ptr<SchemeDecoder> scheme_;
  std::vector<bool> present_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace hologram::holotensor
