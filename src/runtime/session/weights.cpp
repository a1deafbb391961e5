#include "runtime/session/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>

#include "holotensor/format.h"
#include "holotensor/policy/hot_reload.h"

namespace hologram::runtime {

using holotensor::HotReload;
using holotensor::HotTensor;
using holotensor::Quality;
using holotensor::TensorInfo;

Result<WeightQuality> WeightQuality::parse(std::string_view text) {
  if (text == "exact") return WeightQuality{};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error == std::errc{} && std::isfinite(value) && value > 0) {
    if (unit.empty() && value <= 1) return WeightQuality{Kind::fraction, value};
    if (unit == "%" && value <= 100) return WeightQuality{Kind::fraction, value / 100};
    if (unit == "dB" || unit == "db") return WeightQuality{Kind::decibels, value};
    if ((unit == "fragments" || unit == "fragment") && value == std::floor(value))
      return WeightQuality{Kind::fragments, value};
  }
  return fail(ErrorCode::invalid_argument,
              "'{}' is no quality; write 0.5 or 50% (of the bytes), 4fragments, 20dB or exact",
              text);
}

namespace {

// How many fragments of a tensor the quality asks for.
Result<size_t> fragments_of(const TensorInfo& info, const WeightQuality& quality, uint64_t bytes) {
  const size_t all = info.fragment_count;
  switch (quality.kind) {
    case WeightQuality::Kind::exact:
      return all;
    case WeightQuality::Kind::fragments:
      return std::clamp<size_t>(static_cast<size_t>(std::min(quality.value, 65535.0)),
                                info.min_fragments, all);
    case WeightQuality::Kind::decibels: {
      const auto target = holotensor::QualityTarget::snr_db(quality.value);
      const size_t count = holotensor::fragments_for(info.curve, target);
      if (count <= all) return std::max<size_t>(count, info.min_fragments);
      return fail(ErrorCode::unsupported,
                  "tensor '{}' was stored at {:.1f} dB; {:.1f} dB were asked for", info.name,
                  info.curve.back().snr_db(), quality.value);
    }
    case WeightQuality::Kind::fraction:
      break;
  }
  const auto limit = static_cast<uint64_t>(quality.value * static_cast<double>(bytes));
  const auto inside = [&](const holotensor::FragmentEntry& f) {
    return f.offset + f.size <= limit;
  };
  const auto count = static_cast<size_t>(std::ranges::find_if_not(info.fragments, inside) -
                                         info.fragments.begin());
  if (count >= info.min_fragments) return count;
  const auto& needed = info.fragments[info.min_fragments - 1];
  return fail(ErrorCode::invalid_argument,
              "{:.1f}% of the weights' bytes are too few: tensor '{}' can be had from {:.1f}% on",
              100 * quality.value, info.name,
              100 * static_cast<double>(needed.offset + needed.size) / static_cast<double>(bytes));
}

// What the plan takes a tensor for is what the directory says it is.
Status check_constants(const archive::Model& model, const std::vector<TensorInfo>& tensors) {
  if (!model.constants()) return {};
  for (const archive::Constant* constant : *model.constants()) {
    if (constant->tensor() < 0) continue;
    const auto index = static_cast<size_t>(constant->tensor());
    if (index >= tensors.size() ||
        static_cast<uint8_t>(tensors[index].dtype) != constant->dtype() ||
        tensors[index].source_bytes() != constant->size())
      return fail(ErrorCode::corrupt, "the plan is wrong: a constant that the weights do not hold");
  }
  return {};
}

}  // namespace

struct Weights::Impl {
  std::shared_ptr<const void> owner;  // of the section's bytes
  Published published;
  std::vector<TensorInfo> tensors;
  uint64_t all_bytes = 0, overhead = 0;  // of the section

  // Guards what follows, which only the loading thread changes.
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<HotTensor> newest;    // as they come
  size_t missing = 0;               // tensors without a first version
  size_t pending = 0;               // improvements since the last set
  std::vector<HotTensor> versions;  // of the current set
  std::shared_ptr<const WeightSet> current;
  uint64_t version = 0;
  bool finished = false;

  std::unique_ptr<HotReload> reload;  // last: its thread uses the rest and ends first

  // How many fragments a version was made of, at least.
  size_t fragments_in(size_t tensor, const Quality& quality) const {
    const auto& curve = tensors[tensor].curve;
    return static_cast<size_t>(std::ranges::find(curve, quality) - curve.begin());
  }

  // On the loading thread. The tensor that is worst gets its next fragment first, so that after as
  // many improvements as there are tensors the set is better as a whole.
  void improved(size_t tensor, const HotTensor& version) {
    {
      std::lock_guard lock(mutex);
      missing -= newest[tensor] == nullptr;
      newest[tensor] = version;
      ++pending;
    }
    if (missing == 0 && (!current || pending >= tensors.size())) publish();
  }

  // On the loading thread.
  void publish() {
    if (pending == 0) return;
    auto set = std::make_shared<WeightSet>();
    for (size_t i = 0; i < newest.size(); ++i) {
      const HotTensor& from = newest[i];
      // Kernels never write to an input.
      set->tensors.push_back({from->type, {}, const_cast<std::byte*>(from->bytes().data()), from});
    }
    std::shared_ptr<const WeightSet> last = std::move(set);
    std::vector<HotTensor> last_versions = newest;
    {
      std::lock_guard lock(mutex);
      current.swap(last);
      versions.swap(last_versions);
      ++version;
      pending = 0;
      changed.notify_all();
    }
    published(current);
  }  // the previous set ends here, outside of the lock: it may free memory

  // On the loading thread.
  void ended() {
    if (missing == 0) publish();
    std::lock_guard lock(mutex);
    finished = true;
    changed.notify_all();
  }
};

Weights::Weights(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Weights::~Weights() = default;

Result<std::unique_ptr<Weights>> Weights::open(const archive::Archive& archive,
                                               const WeightOptions& options, Published published) {
  const auto place = [] { return std::string("the archive's weights"); };
  HOLOGRAM_TRY(
      auto source,
      in_context(holotensor::section_fragments({archive.weights(), archive.owner()}), place));
  HOLOGRAM_TRY(const auto header, holotensor::parse_header(archive.weights()));
  auto impl = std::make_unique<Impl>();
  Impl* raw = impl.get();
  raw->owner = archive.owner();
  raw->published = std::move(published);
  raw->tensors = source->tensors();
  raw->all_bytes = header.file_size;
  raw->overhead = holotensor::kFileHeaderSize + header.directory_stored;
  raw->newest.resize(raw->tensors.size());
  raw->missing = raw->tensors.size();
  if (raw->tensors.empty()) return fail(ErrorCode::corrupt, "the archive's weights hold no tensor");
  HOLOGRAM_CHECK(check_constants(archive.model(), raw->tensors));
  std::vector<size_t> first;
  for (const TensorInfo& info : raw->tensors) {
    HOLOGRAM_TRY(const size_t count, fragments_of(info, options.quality, raw->all_bytes));
    first.push_back(count);
  }
  const auto count_of = [&all = raw->tensors, first](const TensorInfo& info) {
    const auto same = [&](const TensorInfo& other) { return other.name == info.name; };
    return first[static_cast<size_t>(std::ranges::find_if(all, same) - all.begin())];
  };
  holotensor::HotReloadOptions loading{.first_fragments_for = count_of, .best_effort = true};
  if (!options.improve) loading.fragments_for = count_of;
  loading.on_version = [raw](size_t tensor, const HotTensor& v) { raw->improved(tensor, v); };
  loading.on_finished = [raw] { raw->ended(); };
  HOLOGRAM_TRY(raw->reload, HotReload::start(std::move(source), std::move(loading)));
  bool ready;
  {
    std::unique_lock lock(raw->mutex);
    raw->changed.wait(lock, [&] { return raw->current || raw->finished; });
    ready = raw->current != nullptr;
  }
  if (!ready) {
    HOLOGRAM_CHECK(in_context(raw->reload->wait_ready(), place));
    return fail(ErrorCode::internal, "the archive's weights are ready and were not published");
  }
  std::unique_ptr<Weights> weights(new Weights(std::move(impl)));
  const WeightStatus status = weights->status();
  const bool exact = options.quality.kind == WeightQuality::Kind::exact;
  if ((exact && !status.exact) || (options.quality.kind == WeightQuality::Kind::decibels &&
                                   status.snr_db < options.quality.value))
    return fail(
        ErrorCode::corrupt,
        "the archive's weights are damaged or cut off: tensor '{}' can be had at {:.1f} dB; "
        "open it at a lower quality",
        status.worst_tensor, status.snr_db);
  return weights;
}

std::shared_ptr<const WeightSet> Weights::current() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->current;
}

WeightStatus Weights::status() const {
  std::lock_guard lock(impl_->mutex);
  WeightStatus status{.version = impl_->version,
                      .bytes = impl_->overhead,
                      .all_bytes = impl_->all_bytes,
                      .tensors = impl_->tensors.size(),
                      .improving = !impl_->finished};
  std::set<uint64_t> counted;  // equal tensors share their fragments
  double worst = -1;
  for (size_t i = 0; i < impl_->tensors.size(); ++i) {
    const TensorInfo& info = impl_->tensors[i];
    const Quality& quality = impl_->versions[i]->quality;
    const size_t used = quality.exact ? info.fragment_count : impl_->fragments_in(i, quality);
    for (size_t f = 0; f < used; ++f)
      if (counted.insert(info.fragments[f].offset).second) status.bytes += info.fragments[f].size;
    status.exact_tensors += quality.exact;
    if (quality.exact || quality.nmse <= worst) continue;
    worst = quality.nmse;
    status.worst_tensor = info.name;
    status.snr_db = quality.snr_db();
  }
  status.exact = status.exact_tensors == status.tensors;
  if (status.exact) status.snr_db = HUGE_VAL;
  return status;
}

Status Weights::wait() const { return impl_->reload->wait_complete(); }

}  // namespace hologram::runtime
