#include "holotensor/policy/hot_reload.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace hologram::holotensor {
namespace {

// Buffers of versions that nobody holds any more. Outlives the HotReload: the last reader of a
// version brings its buffer back here.
class BufferPool {
 public:
  AlignedBytes take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    AlignedBytes buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give(AlignedBytes buffer) {
    std::lock_guard lock(mutex_);
    if (!closed_ && free_.empty()) free_.push_back(std::move(buffer));
  }
  // Nothing better will come: keep nothing.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<AlignedBytes> free_;
  bool closed_ = false;
};

struct Slot {
  size_t tensor = 0;
  const TensorInfo* info = nullptr;
  DType type = DType::f32;
  QualityTarget first;
  std::shared_ptr<BufferPool> pool = std::make_shared<BufferPool>();
  uint64_t versions = 0;     // the loading thread's
  mutable std::mutex mutex;  // held for the copy of a pointer
  HotTensor current;

  HotTensor read() const {
    std::lock_guard lock(mutex);
    return current;
  }
};

}  // namespace

struct HotReload::Impl {
  HotReloadOptions options;
  std::deque<Slot> slots;
  // Set before loading can call back, and never changed.
  Loader* loader = nullptr;
  std::unique_ptr<Loader> owned_loader;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool loader_known = false;
  size_t not_ready = 0;
  bool finished = false;
  std::optional<Error> failure;  // a version that could not be made

  Slot* slot_of(size_t tensor) {
    const auto found = std::ranges::find(slots, tensor, &Slot::tensor);
    return found == slots.end() ? nullptr : &*found;
  }

  // On the loading thread.
  void improved(size_t tensor, const Quality& quality) {
    Slot* slot = slot_of(tensor);
    if (!slot || !slot->first.met_by(quality)) return;
    wait_for_loader();
    if (const Status status = publish(*slot); !status) {
      std::lock_guard lock(mutex);
      if (!failure) failure = status.error();
      changed.notify_all();
    }
  }

  // Loading may begin before start() has returned.
  void wait_for_loader() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return loader_known; });
  }

  // On the loading thread, at its end.
  void ended() {
    if (options.best_effort) {
      wait_for_loader();
      for (Slot& slot : slots) {
        // Where even the first fragments are not there it fails, and the tensor stays not ready.
        if (!slot.read()) (void)publish(slot);
      }
    }
    {
      std::lock_guard lock(mutex);
      finished = true;
      for (Slot& slot : slots) slot.pool->close();
      changed.notify_all();
    }
    if (options.on_finished) options.on_finished();
  }

  Status publish(Slot& slot) {
    const uint64_t size = bytes_for(slot.type, slot.info->elements());
    AlignedBytes memory = slot.pool->take();
    if (memory.size() != size) {
      HOLOGRAM_TRY(memory, AlignedBytes::allocate(size));
    }
    HOLOGRAM_TRY(const Quality quality, loader->get_into(slot.tensor, slot.type, memory.bytes()));
    auto* version = new HotVersion{++slot.versions, quality, slot.type, std::move(memory)};
    HotTensor next(version, [pool = slot.pool](const HotVersion* old) {
      pool->give(std::move(const_cast<HotVersion*>(old)->memory));
      delete old;
    });
    HotTensor previous = next;
    {
      std::lock_guard lock(slot.mutex);
      slot.current.swap(previous);
    }
    if (!previous) {
      std::lock_guard lock(mutex);
      --not_ready;
      changed.notify_all();
    }
    previous.reset();  // outside of every lock: it may free memory
    if (options.on_version) options.on_version(slot.tensor, next);
    return {};
  }
};

HotReload::HotReload(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HotReload>> HotReload::start(std::unique_ptr<FragmentSource> source,
                                                    HotReloadOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  const HotReloadOptions& given = impl->options;
  const auto& infos = source->tensors();
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!given.tensors.empty() &&
        std::ranges::find(given.tensors, infos[i].name) == given.tensors.end()) {
      continue;
    }
    Slot& slot = impl->slots.emplace_back();
    slot.tensor = i;
    slot.info = &infos[i];
    slot.type = given.type.value_or(infos[i].dtype);
    slot.first = given.first;
    if (given.first_fragments_for) {
      const size_t count = std::clamp<size_t>(given.first_fragments_for(infos[i]),
                                              infos[i].min_fragments, infos[i].fragment_count);
      slot.first = {.max_nmse = infos[i].curve[count].nmse, .exact = infos[i].curve[count].exact};
    }
  }
  impl->not_ready = impl->slots.size();
  Impl* raw = impl.get();
  std::unique_ptr<HotReload> reload(new HotReload(std::move(impl)));
  LoadOptions load{.target = given.target,
                   .fragments_for = given.fragments_for,
                   .tensors = given.tensors,
                   .first = given.first,
                   .first_fragments_for = given.first_fragments_for,
                   .pool = given.pool};
  load.on_improved = [raw](size_t tensor, const Quality& quality) {
    raw->improved(tensor, quality);
  };
  load.on_progress = [raw](const LoadProgress& progress) {
    if (progress.finished) raw->ended();
  };
  HOLOGRAM_TRY(raw->owned_loader, Loader::start(std::move(source), std::move(load)));
  std::lock_guard lock(raw->mutex);
  raw->loader = raw->owned_loader.get();
  raw->loader_known = true;
  raw->changed.notify_all();
  return reload;
}

HotReload::~HotReload() {
  // The loader's thread uses the rest of Impl: it ends first.
  impl_->owned_loader.reset();
}

Status HotReload::wait_ready() {
  {
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock,
                        [&] { return impl_->not_ready == 0 || impl_->finished || impl_->failure; });
    if (impl_->not_ready == 0) return {};
    if (impl_->failure) return std::unexpected(*impl_->failure);
  }
  HOLOGRAM_CHECK(impl_->owned_loader->wait());
  return fail(ErrorCode::unsupported,
              "every fragment is there, and some tensors are still below the first quality");
}

Status HotReload::wait_complete() {
  const Status loaded = impl_->owned_loader->wait();
  std::lock_guard lock(impl_->mutex);
  if (impl_->failure) return std::unexpected(*impl_->failure);
  return loaded;
}

bool HotReload::ready() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->not_ready == 0;
}

void HotReload::cancel() { impl_->owned_loader->cancel(); }

Result<HotTensor> HotReload::read(std::string_view name) const {
  for (const Slot& slot : impl_->slots) {
    if (slot.info->name == name) return slot.read();
  }
  return fail(ErrorCode::not_found, "tensor '{}' is not being loaded", name);
}

HotTensor HotReload::read(size_t tensor) const {
  const Slot* slot = impl_->slot_of(tensor);
  return slot ? slot->read() : nullptr;
}

const std::vector<TensorInfo>& HotReload::tensors() const { return impl_->owned_loader->tensors(); }

LoadProgress HotReload::progress() const { return impl_->owned_loader->progress(); }

}  // namespace hologram::holotensor
