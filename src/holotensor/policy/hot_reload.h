// HotReload: tensors that can be used as soon as a first quality is there, and get better while
// they are used.
//
// Every improvement is a new version, made in memory that no reader sees, and then published by
// exchanging one pointer. A reader holds the version it took for as long as it wants: its values
// never change and never mix. Memory of versions that nobody holds any more is used for the next
// one, so a tensor that is read briefly takes two buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "holotensor/source/fragment_source.h"
#include "holotensor/source/loader.h"
#include "support/aligned.h"
#include "support/result.h"

namespace hologram::holotensor {

// One state of a tensor; never changes.
struct HotVersion {
  uint64_t number = 0;  // 1, 2, ...
  Quality quality;
  DType type = DType::f32;
  AlignedBytes memory;  // 64-byte aligned; the values of the tensor as `type`

  std::span<const std::byte> bytes() const { return memory.bytes(); }
  template <typename T>
  std::span<const T> as() const {
    return memory.as<T>();
  }
};
using HotTensor = std::shared_ptr<const HotVersion>;

struct HotReloadOptions {
  // A tensor is ready, and read() gives it, from this quality on.
  QualityTarget first = QualityTarget::snr_db(16);
  // The same by how many fragments, instead of `first`; null: not used.
  std::function<size_t(const TensorInfo&)> first_fragments_for = nullptr;
  // Where improving ends; empty: with the last fragment.
  std::optional<QualityTarget> target;
  // The same by how many fragments, instead of `target`; null: not used.
  std::function<size_t(const TensorInfo&)> fragments_for = nullptr;
  // Tensors whose first quality cannot be had, because fragments are damaged or missing, become
  // ready at the end with the best there is.
  bool best_effort = false;
  // Which tensors; empty: all.
  std::vector<std::string> tensors;
  // What tensors are reconstructed into; empty: their own types.
  std::optional<DType> type;
  // Both on the loading thread: after each published version (a place in tensors()), and when
  // nothing gets better any more.
  std::function<void(size_t tensor, const HotTensor&)> on_version = nullptr;
  std::function<void()> on_finished = nullptr;
  ThreadPool* pool = nullptr;
};

// Every method is safe from any thread.
class HotReload {
 public:
  // Begins to load at once. Fails on names that the source does not have.
  static Result<std::unique_ptr<HotReload>> start(std::unique_ptr<FragmentSource> source,
                                                  HotReloadOptions options = {});
  // Cancels and waits. Versions that readers hold stay valid.
  ~HotReload();

  // Until every tensor is ready. Fails when loading ended before, with its reason.
  Status wait_ready();
  // Until nothing gets better any more.
  Status wait_complete();
  bool ready() const;
  void cancel();

  // The newest version; null until the tensor is ready. Never waits for loading or decoding.
  // not_found for a name that is not being loaded.
  Result<HotTensor> read(std::string_view name) const;
  // The same by the tensor's place in tensors().
  HotTensor read(size_t tensor) const;
  const std::vector<TensorInfo>& tensors() const;
  LoadProgress progress() const;

 private:
  struct Impl;
  explicit HotReload(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::holotensor
