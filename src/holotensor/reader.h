// Reader: opens a `.ht` file or section through any random-access bytes. Older HTNS files: htns.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "holotensor/decoder.h"
#include "holotensor/format.h"
#include "holotensor/random_access.h"
#include "support/result.h"

namespace hologram::holotensor {

// Holds the directory; fragments are read on demand. Thread-safe: const after open.
class Reader {
 public:
  static Result<Reader> open(const std::filesystem::path& path);
  // `base`: where the section begins inside the source.
  static Result<Reader> open(std::shared_ptr<RandomAccess> source, uint64_t base = 0);
  // As open(path), for bytes in memory (a section of an archive).
  static Result<Reader> from_memory(SharedBytes bytes) { return open(memory_source(bytes)); }

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // not_found names the nearest tensor.
  Result<const TensorInfo*> find(std::string_view name) const;
  // The whole fragment as stored; not yet checked (add_fragment does that).
  Result<SharedBytes> read_fragment(const TensorInfo& info, uint16_t index) const;

  // Reads as many fragments as the target needs and no more. A target that the file cannot reach is
  // an error; damaged fragments are replaced by further ones where the distribution allows it.
  Result<Decoder> decode_to_quality(const TensorInfo& info, const QualityTarget& target,
                                    ThreadPool* pool = nullptr) const;

  uint64_t file_size() const { return file_size_; }
  // Bytes of the file that are no fragments: header and directory.
  uint64_t overhead() const { return overhead_; }

 private:
  std::shared_ptr<RandomAccess> source_;
  uint64_t base_ = 0;
  uint64_t file_size_ = 0;
  uint64_t overhead_ = 0;
  std::vector<TensorInfo> tensors_;
};

struct DecodedTensor {
  TensorInfo info;
  Quality quality;
  uint64_t bytes_read = 0;
  std::vector<std::byte> bytes;  // of `type`
  DType type = DType::f32;
};
// Every tensor of a file, one after another; memory holds one at a time. `type` empty: its own.
Status decode_each_to_quality(const std::filesystem::path& path, const QualityTarget& target,
                              const std::function<Status(DecodedTensor)>& tensor,
                              std::optional<DType> type = std::nullopt);
// The file's only tensor, or the one called `name`.
Result<DecodedTensor> decode_to_quality(const std::filesystem::path& path,
                                        const QualityTarget& target, std::string_view name = {},
                                        std::optional<DType> type = std::nullopt);

}  // namespace hologram::holotensor
