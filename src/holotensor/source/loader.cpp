#include "holotensor/source/loader.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <tuple>

namespace hologram::holotensor {
namespace {

using Clock = std::chrono::steady_clock;

// One tensor being loaded. `mutex` guards the decoder; the rest belongs to the loading thread.
struct Entry {
  size_t tensor = 0;
  const TensorInfo* info = nullptr;
  mutable std::mutex mutex;
  std::optional<FaultTolerantDecoder> decoder;
  size_t wanted = 0;  // fragments, counted as the curve counts them
  size_t wanted_first = 0;
  std::vector<unsigned> attempts;
  std::string last_error;

  size_t received() const { return decoder->decoder().received(); }
  bool has(uint16_t i) const { return decoder->decoder().has(i); }

  bool done() const {
    if (info->distribution == Distribution::any) return received() >= wanted;
    for (uint16_t i = 0; i < wanted; ++i) {
      if (!has(i)) return false;
    }
    return true;
  }

  // What to ask for next, at most so often each.
  std::vector<uint16_t> missing(unsigned most_attempts) const {
    std::vector<uint16_t> list;
    const size_t end = info->distribution == Distribution::any ? info->fragment_count : wanted;
    for (uint16_t i = 0; i < end; ++i) {
      if (!has(i) && attempts[i] < most_attempts) list.push_back(i);
    }
    if (info->distribution == Distribution::any) {
      std::ranges::stable_sort(list, {}, [&](uint16_t i) { return attempts[i]; });
      list.resize(std::min(list.size(), wanted - std::min(wanted, received())));
    }
    return list;
  }
};

}  // namespace

struct Loader::Impl {
  std::unique_ptr<FragmentSource> source;
  LoadOptions options;
  std::deque<Entry> entries;  // a deque: entries hold mutexes and do not move
  CancelToken cancel;
  std::thread thread;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable ended;
  LoadProgress progress;
  std::optional<Status> result;
  Clock::time_point began = Clock::now();

  Result<Entry*> find(std::string_view name);
  Status add_entries();
  void run();
  Status load();
  std::vector<FragmentRequest> plan(std::vector<Entry*>& owners);
  void deliver(Entry& entry, uint16_t fragment, Result<SharedBytes> bytes);
  Status verdict() const;
};

Result<Entry*> Loader::Impl::find(std::string_view name) {
  for (Entry& entry : entries) {
    if (entry.info->name == name) return &entry;
  }
  return fail(ErrorCode::not_found, "tensor '{}' is not among those being loaded from {}", name,
              source->name());
}

Status Loader::Impl::add_entries() {
  const auto& infos = source->tensors();
  for (const std::string& name : options.tensors) {
    if (std::ranges::find(infos, name, &TensorInfo::name) == infos.end()) {
      return fail(ErrorCode::not_found, "{} has no tensor '{}'", source->name(), name);
    }
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    const TensorInfo& info = infos[i];
    if (!options.tensors.empty() &&
        std::ranges::find(options.tensors, info.name) == options.tensors.end()) {
      continue;
    }
    HOLOGRAM_TRY(auto decoder, FaultTolerantDecoder::create(info, {}, options.pool));
    Entry& entry = entries.emplace_back();
    entry.tensor = i;
    entry.info = &info;
    entry.decoder.emplace(std::move(decoder));
    entry.attempts.resize(info.fragment_count);
    // At least what makes a tensor at all, even where zeros would be good enough.
    const auto possible = [&](size_t count) {
      return std::clamp<size_t>(count, info.min_fragments, info.fragment_count);
    };
    const auto needed = [&](const QualityTarget& target) {
      return possible(fragments_for(info.curve, target));
    };
    entry.wanted = info.fragment_count;
    if (options.fragments_for) {
      entry.wanted = possible(options.fragments_for(info));
    } else if (options.target) {
      entry.wanted = needed(*options.target);
    }
    if (options.first_fragments_for) {
      entry.wanted_first = std::min(entry.wanted, possible(options.first_fragments_for(info)));
    } else if (options.first) {
      entry.wanted_first = std::min(entry.wanted, needed(*options.first));
    }
    progress.fragments_wanted += entry.wanted;
    for (size_t f = 0; f < entry.wanted; ++f) progress.bytes_wanted += info.fragments[f].size;
  }
  progress.tensors = entries.size();
  return {};
}

std::vector<FragmentRequest> Loader::Impl::plan(std::vector<Entry*>& owners) {
  struct Wish {
    bool later;
    double snr_db;  // without it: the tensor that is worst comes first, as in the file
    uint16_t fragment;
    Entry* entry;
  };
  std::vector<Wish> wishes;
  for (Entry& entry : entries) {
    if (entry.done()) continue;
    for (const uint16_t fragment : entry.missing(1 + options.retries)) {
      // Without the first ones there is nothing, even where zeros would do.
      const bool essential = fragment < entry.info->min_fragments;
      const double reached = essential ? -HUGE_VAL : entry.info->curve[fragment].snr_db();
      wishes.push_back({fragment >= entry.wanted_first, reached, fragment, &entry});
    }
  }
  std::ranges::stable_sort(wishes, {},
                           [](const Wish& w) { return std::tuple(w.later, w.snr_db, w.fragment); });
  std::vector<FragmentRequest> requests;
  for (const Wish& wish : wishes) {
    requests.push_back({wish.entry->tensor, wish.fragment});
    owners.push_back(wish.entry);
  }
  return requests;
}

void Loader::Impl::deliver(Entry& entry, uint16_t fragment, Result<SharedBytes> bytes) {
  ++entry.attempts[fragment];
  const uint64_t size = bytes ? bytes->view.size() : 0;
  bool good = false, improved = false;
  Quality quality;
  {
    std::lock_guard lock(entry.mutex);
    const bool could = entry.decoder->decoder().can_reconstruct();
    const Quality before = entry.decoder->quality();
    if (!bytes) entry.last_error = bytes.error().to_string();
    const auto validation = bytes ? entry.decoder->add(fragment, *std::move(bytes))
                                  : entry.decoder->add_missing(fragment);
    good = validation && (*validation == Validation::valid || *validation == Validation::duplicate);
    if (!good && entry.last_error.empty()) {
      entry.last_error = fmt::format("fragment {} is damaged", fragment);
    }
    quality = entry.decoder->quality();
    improved = entry.decoder->decoder().can_reconstruct() && (!could || !(quality == before));
  }
  LoadProgress now;
  {
    std::lock_guard lock(mutex);
    if (good) {
      ++progress.fragments_loaded;
      progress.bytes_loaded += size;
      if (entry.done()) ++progress.tensors_done;
    } else {
      ++progress.fragments_failed;
    }
    progress.elapsed = Clock::now() - began;
    now = progress;
  }
  if (improved && options.on_improved) options.on_improved(entry.tensor, quality);
  if (options.on_progress) options.on_progress(now);
}

Status Loader::Impl::load() {
  for (;;) {
    HOLOGRAM_CHECK(cancel.check());
    std::vector<Entry*> owners;
    const auto requests = plan(owners);
    if (requests.empty()) return verdict();
    HOLOGRAM_CHECK(source->fetch(requests, cancel, [&](size_t i, Result<SharedBytes> bytes) {
      deliver(*owners[i], requests[i].fragment, std::move(bytes));
    }));
  }
}

Status Loader::Impl::verdict() const {
  size_t short_of = 0;
  const Entry* worst = nullptr;
  for (const Entry& entry : entries) {
    if (entry.done()) continue;
    ++short_of;
    if (!worst) worst = &entry;
  }
  if (worst) {
    return fail(ErrorCode::corrupt,
                "{} of {} tensors from {} did not get the fragments they need; '{}' has {} of {} "
                "(last error: {})",
                short_of, entries.size(), source->name(), worst->info->name, worst->received(),
                worst->wanted, worst->last_error);
  }
  if (!options.target || options.fragments_for) return {};
  for (const Entry& entry : entries) {
    const Quality& best = entry.info->curve[entry.wanted];
    if (options.target->met_by(best)) continue;
    return fail(ErrorCode::unsupported,
                "{}: tensor '{}' was stored with an NMSE of {:.3g} and cannot reach the target",
                source->name(), entry.info->name, best.nmse);
  }
  return {};
}

void Loader::Impl::run() {
  Status status = load();
  LoadProgress last;
  {
    std::lock_guard lock(mutex);
    progress.elapsed = Clock::now() - began;
    progress.finished = true;
    last = progress;
  }
  if (options.on_progress) options.on_progress(last);
  std::lock_guard lock(mutex);
  result = std::move(status);
  ended.notify_all();
}

Result<std::unique_ptr<Loader>> Loader::start(std::unique_ptr<FragmentSource> source,
                                              LoadOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->source = std::move(source);
  impl->options = std::move(options);
  HOLOGRAM_CHECK(impl->add_entries());
  Impl* raw = impl.get();
  std::unique_ptr<Loader> loader(new Loader(std::move(impl)));
  raw->thread = std::thread([raw] { raw->run(); });
  return loader;
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Loader::~Loader() {
  cancel();
  if (impl_->thread.joinable()) impl_->thread.join();
}

Status Loader::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->ended.wait(lock, [&] { return impl_->result.has_value(); });
  return *impl_->result;
}

bool Loader::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(impl_->mutex);
  return impl_->ended.wait_for(lock, time, [&] { return impl_->result.has_value(); });
}

void Loader::cancel() { impl_->cancel.cancel(); }

LoadProgress Loader::progress() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->progress;
}

const std::vector<TensorInfo>& Loader::tensors() const { return impl_->source->tensors(); }

Result<Loader::Loaded> Loader::get(std::string_view name, std::optional<DType> type) const {
  HOLOGRAM_TRY(Entry * entry, impl_->find(name));
  Loaded loaded{.type = type.value_or(entry->info->dtype)};
  std::lock_guard lock(entry->mutex);
  loaded.quality = entry->decoder->quality();
  HOLOGRAM_TRY(loaded.bytes, entry->decoder->decoder().reconstruct(loaded.type));
  return loaded;
}

Result<Quality> Loader::get_into(size_t tensor, DType type, std::span<std::byte> out) const {
  for (const Entry& entry : impl_->entries) {
    if (entry.tensor != tensor) continue;
    std::lock_guard lock(entry.mutex);
    HOLOGRAM_CHECK(entry.decoder->decoder().reconstruct(type, out));
    return entry.decoder->quality();
  }
  return fail(ErrorCode::not_found, "tensor number {} is not being loaded", tensor);
}

Result<Quality> Loader::quality(std::string_view name) const {
  HOLOGRAM_TRY(Entry * entry, impl_->find(name));
  std::lock_guard lock(entry->mutex);
  return entry->decoder->quality();
}

Result<FaultStatistics> Loader::statistics(std::string_view name) const {
  HOLOGRAM_TRY(Entry * entry, impl_->find(name));
  std::lock_guard lock(entry->mutex);
  return entry->decoder->statistics();
}

}  // namespace hologram::holotensor
