#include <algorithm>

#include "holotensor/first_failure.h"
#include "holotensor/refine/chunks.h"
#include "holotensor/refine/reed_solomon.h"
#include "holotensor/refine/refine.h"

namespace hologram::holotensor::refine {
namespace {

class RefineDecoder final : public SchemeDecoder {
 public:
  RefineDecoder(const TensorInfo& info, Parameters parameters)
      : info_(info),
        parameters_(std::move(parameters)),
        elements_(info.elements()),
        block_elements_(block_elements(parameters_.model.format)),
        blocks_((elements_ + block_elements_ - 1) / block_elements_),
        payloads_(info.fragment_count),
        open_(parameters_.tiers.size()) {}

  Status add(uint16_t index, SharedBytes payload) override {
    if (info_.distribution == Distribution::any) return add_shards(index, payload);
    HOLOGRAM_TRY(auto run, parse_run(payload.view, chunk_limit()));
    payloads_[index] = std::move(payload);
    if (runs_.size() <= index) runs_.resize(index + size_t{1});
    runs_[index] = std::move(run);
    while (prefix_ < runs_.size() && payloads_[prefix_].view.data()) ++prefix_;
    return {};
  }

  uint16_t usable() const override {
    if (info_.distribution == Distribution::ordered) return prefix_;
    return received_ < info_.min_fragments ? 0 : received_;
  }

  uint64_t part_elements() const override { return block_elements_; }

  Status reconstruct(DType type, std::span<std::byte> out, ThreadPool& pool) const override {
    return reconstruct_part(type, 0, out, pool);
  }

  Status reconstruct_part(DType type, uint64_t first, std::span<std::byte> out,
                          ThreadPool& pool) const override {
    // Chunks follow each other without a gap, so the number of first chunks says all.
    std::vector<std::span<const std::byte>> chunks;
    const size_t runs = info_.distribution == Distribution::ordered ? prefix_ : runs_.size();
    for (size_t i = 0; i < runs; ++i) {
      if (runs_[i].first != chunks.size())
        return fail(ErrorCode::corrupt, "fragments that do not follow each other");
      chunks.insert(chunks.end(), runs_[i].chunks.begin(), runs_[i].chunks.end());
    }
    const size_t width = size_of(type);
    const size_t first_block = first / block_elements_;
    const size_t blocks = (out.size() / width + block_elements_ - 1) / block_elements_;
    FirstFailure failure;
    pool.parallel_for(
        blocks, std::clamp<size_t>(blocks / (size_t{4} * pool.size()), 1, 64),
        [&](size_t begin, size_t end) {
          Block block;
          for (size_t b = begin; b < end; ++b) {
            const size_t at = b * block_elements_ * width;
            const auto to = out.subspan(at, std::min(block_elements_ * width, out.size() - at));
            if (!failure.ok(
                    decode_block(block, chunks, first_block + b, to.size() / width, type, to)))
              return;
          }
        },
        Schedule::dynamic);
    return failure.status();
  }

 private:
  uint64_t chunk_limit() const { return blocks_ * parameters_.model.layers(); }

  Status decode_block(Block& block, std::span<const std::span<const std::byte>> chunks, size_t b,
                      size_t count, DType type, std::span<std::byte> out) const {
    block.reset(parameters_.model, static_cast<unsigned>(count));
    for (size_t chunk = b; chunk < chunks.size(); chunk += blocks_)
      HOLOGRAM_CHECK(block.decode(chunks[chunk]));
    return block.store(type, out);
  }

  Status add_shards(uint16_t index, const SharedBytes& payload) {
    size_t need = 0;
    for (const Tier& tier : parameters_.tiers) need += shard_size(tier.bytes, tier.k);
    if (payload.view.size() != need)
      return fail(ErrorCode::corrupt, "a fragment of {} bytes; its tiers need {}",
                  payload.view.size(), need);
    // A tier is recovered once, as soon as there are enough shards, and they are dropped then;
    // those of tiers that are still open are kept.
    const auto shard_of = [&](size_t tier_index) {
      size_t offset = 0;
      for (size_t i = 0; i < tier_index; ++i)
        offset += shard_size(parameters_.tiers[i].bytes, parameters_.tiers[i].k);
      const Tier& tier = parameters_.tiers[tier_index];
      return payload.view.subspan(offset, shard_size(tier.bytes, tier.k));
    };
    const size_t next = runs_.size();
    if (next < parameters_.tiers.size() && parameters_.tiers[next].k <= received_ + 1u)
      HOLOGRAM_CHECK(recover(next, {index, shard_of(next)}));
    for (size_t t = runs_.size(); t < parameters_.tiers.size(); ++t)
      open_[t].push_back({index, {shard_of(t).begin(), shard_of(t).end()}});
    ++received_;
    return {};
  }

  Status recover(size_t tier_index, Shard last) {
    const Tier& tier = parameters_.tiers[tier_index];
    std::vector<Shard> shards{last};
    for (const KeptShard& kept : open_[tier_index]) shards.push_back({kept.index, kept.bytes});
    HOLOGRAM_TRY(auto bytes, decode_shards(shards, tier.k, info_.fragment_count, tier.bytes));
    auto kept = SharedBytes::owned(std::move(bytes));
    HOLOGRAM_TRY(auto run, parse_run(kept.view, chunk_limit()));
    recovered_.push_back(std::move(kept));
    runs_.push_back(std::move(run));
    open_[tier_index] = {};
    return {};
  }

  struct KeptShard {
    unsigned index;
    std::vector<std::byte> bytes;
  };

  const TensorInfo& info_;
  Parameters parameters_;
  uint64_t elements_;
  uint64_t block_elements_;
  uint64_t blocks_;
  std::vector<SharedBytes> payloads_;  // `ordered`, by fragment; a null view for those not in
  std::vector<std::vector<KeptShard>> open_;  // `any`, by tier: shards that are not enough yet
  std::vector<SharedBytes> recovered_;        // `any`: the runs of the tiers
  std::vector<ChunkRun> runs_;                // by fragment, or by tier
  uint16_t prefix_ = 0;                       // `ordered`: fragments 0 .. prefix-1 are in
  uint16_t received_ = 0;                     // `any`
};

}  // namespace

Result<std::unique_ptr<SchemeDecoder>> make_decoder(const TensorInfo& info) {
  HOLOGRAM_TRY(auto parameters, parse_parameters(info));
  return std::make_unique<RefineDecoder>(info, std::move(parameters));
}

}  // namespace hologram::holotensor::refine
