// Writer: many tensors into one `.ht` file, at most one of them in memory at a time.
//
// The directory comes first in the file but is known last, so fragments go to a nameless spool file
// beside the result and are copied behind the directory by finish().
#pragma once

#include <filesystem>
#include <vector>

#include "holotensor/encoder.h"
#include "support/result.h"

namespace hologram::holotensor {

// Not thread-safe; movable. Without finish() nothing is left behind.
class Writer {
 public:
  static Result<Writer> create(const std::filesystem::path& path);
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  // Names must differ. A tensor whose content is in the file already costs a line of the directory.
  Status add(EncodedTensor tensor);
  // The same of a tensor that is encoded here, a fragment at a time.
  Result<TensorInfo> add(const Encoder& encoder, const TensorView& tensor);
  // Returns the size of the file.
  Result<uint64_t> finish();

  const std::vector<TensorInfo>& tensors() const { return tensors_; }

 private:
  Writer() = default;
  // Tells whether the content is in the spool already; if so, `info` gets its places.
  bool share(TensorInfo& info) const;
  std::filesystem::path path_;
  int spool_ = -1;
  uint64_t spooled_ = 0;
  std::vector<TensorInfo> tensors_;  // offsets are in the spool until finish()
};

// The same bytes in memory, for sections and tests.
Result<std::vector<std::byte>> write_to_memory(std::vector<EncodedTensor> tensors);

}  // namespace hologram::holotensor
