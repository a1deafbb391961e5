#include <zstd.h>

#include <algorithm>
#include <cmath>

#include "holotensor/fragment.h"
#include "holotensor/packed.h"
#include "holotensor/refine/analysis.h"
#include "holotensor/refine/reed_solomon.h"
#include "holotensor/refine/refine.h"

namespace hologram::holotensor::refine {
namespace {

// Fragments smaller than this are mostly header.
constexpr size_t kSmallestFragment = 4096;

Result<SchemeOutput> use_packed(const TensorView& tensor, const EncoderOptions& options,
                                ThreadPool& pool) {
  TensorView view = tensor;
  std::vector<std::byte> loaded;
  HOLOGRAM_TRY(view.bytes, tensor.read(0, tensor.byte_count(), loaded));
  view.stored = nullptr;
  HOLOGRAM_TRY(auto output, packed_scheme().encode(view, options, pool));
  output.scheme = SchemeId::packed;
  return output;
}

size_t zstd_size(std::span<const std::byte> bytes, int level, std::vector<std::byte>& scratch) {
  scratch.resize(ZSTD_compressBound(bytes.size()));
  const size_t size =
      ZSTD_compress(scratch.data(), scratch.size(), bytes.data(), bytes.size(), level);
  return ZSTD_isError(size) ? bytes.size() : size;
}

// Whether plain compression may store the tensor in fewer than `limit` bytes: judged on samples,
// because the strongest level reads a few MB a second.
Result<bool> may_pack_better(const TensorView& tensor, double limit) {
  constexpr size_t kPiece = 64 << 10;
  std::vector<std::byte> scratch, read;
  const size_t total = tensor.byte_count();
  // A level without entropy coding shrinks only what repeats; weights do not.
  const size_t long_size = std::clamp<size_t>(total / 16, 1 << 20, 4 << 20);
  HOLOGRAM_TRY(const auto long_piece, tensor.read(0, std::min(long_size, total), read));
  if (zstd_size(long_piece, -5, scratch) < long_piece.size() * 98 / 100) return true;
  size_t sampled = 0, compressed = 0;
  const size_t pieces = std::min<size_t>(4, (total + kPiece - 1) / kPiece);
  for (size_t i = 0; i < pieces; ++i) {
    const size_t at = total / pieces * i;
    HOLOGRAM_TRY(const auto piece, tensor.read(at, std::min(kPiece, total - at), read));
    sampled += piece.size();
    compressed += zstd_size(piece, 3, scratch);
  }
  const double packed_ratio = static_cast<double>(compressed) / static_cast<double>(sampled);
  return packed_ratio * static_cast<double>(total) < limit;
}

// The end of the longest prefix of the chunks, from `first` on, that costs at most `budget` bytes.
size_t cut_for_bytes(const ChunkList& chunks, size_t first, double budget) {
  size_t cut = first;
  for (double used = 0; cut < chunks.count(); ++cut) {
    used += static_cast<double>(chunks.stored_size(cut));
    if (used > budget) break;
  }
  return cut;
}

Result<SchemeOutput> in_order(const Analysis& analysis,
                              const std::shared_ptr<const ChunkList>& list, size_t end,
                              unsigned fragments, ThreadPool& pool) {
  const ChunkList& chunks = *list;
  double total = 0;
  for (size_t i = 0; i < end; ++i) total += static_cast<double>(chunks.stored_size(i));
  const double most = std::max(1.0, std::floor(total / kSmallestFragment));
  fragments = static_cast<unsigned>(std::min<double>(fragments, most));
  // Equal shares, cut between chunks.
  std::vector<size_t> cuts{0};
  double used = 0;
  for (size_t i = 0; i < end; ++i) {
    used += static_cast<double>(chunks.stored_size(i));
    if (cuts.size() < fragments && used * fragments >= total * static_cast<double>(cuts.size()))
      cuts.push_back(i + 1);
  }
  if (cuts.back() != end || cuts.size() == 1) cuts.push_back(end);
  SchemeOutput output;
  HOLOGRAM_TRY(output.curve, measure_cuts(analysis, chunks, cuts, pool));
  output.made = cuts.size() - 1;
  output.make = [list, cuts](size_t i) { return list->run(cuts[i], cuts[i + 1]); };
  output.parameters =
      write_parameters({analysis.model, analysis.elements, {}}, Distribution::ordered);
  return output;
}

// Fragment `index` of n: a shard of each tier, whose chunks cuts[k - 1] .. cuts[k] it protects.
std::vector<std::byte> shards_of(const ChunkList& chunks, std::span<const Tier> tiers,
                                 std::span<const size_t> cuts, unsigned n, unsigned index) {
  size_t total = 0;
  for (const Tier& tier : tiers) total += shard_size(tier.bytes, tier.k);
  std::vector<std::byte> fragment;
  fragment.reserve(total + kFragmentHeaderSize);  // which comes in front later
  fragment.resize(total);
  size_t at = 0;
  for (const Tier& tier : tiers) {
    const size_t size = shard_size(tier.bytes, tier.k);
    auto run = chunks.run(cuts[tier.k - 1], cuts[tier.k]);
    run.resize(size * tier.k);
    encode_shard(run, tier.k, n, index, std::span(fragment).subspan(at, size));
    at += size;
  }
  return fragment;
}

// Priority encoding: what any k fragments must decode costs 1/k of its size in each fragment.
Result<SchemeOutput> by_priority(const Analysis& analysis,
                                 const std::shared_ptr<const ChunkList>& list,
                                 const EncoderOptions& options, ThreadPool& pool) {
  const ChunkList& chunks = *list;
  const unsigned n = options.fragments, least = options.min_fragments;
  if (n > kMaxShards || least < 1 || least > n)
    return fail(ErrorCode::invalid_argument,
                "any {} of {} fragments; `any` takes 1 <= min_fragments <= fragments <= {}", least,
                n, kMaxShards);
  if (!options.any_snr_db.empty() && options.any_snr_db.size() != n - least)
    return fail(ErrorCode::invalid_argument,
                "{} qualities for the {} numbers of fragments from {} to {}",
                options.any_snr_db.size(), n - least, least, n - 1);
  std::vector<double> nmse;
  for (unsigned k = least; k < n; ++k) {
    const double decibels =
        options.any_snr_db.empty() ? 16.0 + 6.0 * (k - least) : options.any_snr_db[k - least];
    nmse.push_back(std::pow(10.0, -decibels / 10));
  }
  const bool to_target = options.target && !options.target->exact;
  if (to_target) nmse.push_back(options.target->max_nmse);
  HOLOGRAM_TRY(std::vector<size_t> ends, cuts_for(analysis, chunks, nmse, pool));
  if (!to_target) ends.push_back(chunks.count());
  for (size_t i = 1; i < ends.size(); ++i) ends[i] = std::max(ends[i], ends[i - 1]);

  Parameters parameters{analysis.model, analysis.elements, {}};
  SchemeOutput output;
  output.distribution = Distribution::any;
  output.min_fragments = static_cast<uint16_t>(least);
  double budget = options.target_bits
                      ? *options.target_bits * static_cast<double>(analysis.elements) / 8 -
                            n * (kFragmentHeaderSize + 16.0)
                      : HUGE_VAL;
  std::vector<size_t> cuts(least, 0);  // 0 .. least-1 fragments give nothing
  size_t begin = 0;
  for (unsigned k = least; k <= n; ++k) {
    const double share = static_cast<double>(n) / k;
    const size_t end =
        std::max(begin, std::min(ends[k - least], cut_for_bytes(chunks, begin, budget / share)));
    const size_t bytes = chunks.run_size(begin, end);
    budget -= share * static_cast<double>(bytes);
    parameters.tiers.push_back({k, bytes});
    begin = end;
    cuts.push_back(begin);
  }
  HOLOGRAM_TRY(output.curve, measure_cuts(analysis, chunks, cuts, pool));
  output.parameters = write_parameters(parameters, Distribution::any);
  output.made = n;
  output.make = [list, tiers = parameters.tiers, cuts, n](size_t i) {
    return shards_of(*list, tiers, cuts, n, static_cast<unsigned>(i));
  };
  return output;
}

}  // namespace

Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions& options,
                            ThreadPool& pool) {
  HOLOGRAM_CHECK(validate(tensor));
  HOLOGRAM_TRY(const uint64_t elements, element_count(tensor.shape, tensor.dtype));
  const auto format = format_of(tensor.dtype);
  if (!format || elements == 0) return use_packed(tensor, options, pool);
  HOLOGRAM_TRY(const Analysis analysis, analyse(*format, tensor, elements, pool));
  HOLOGRAM_TRY(ChunkList encoded, encode_chunks(analysis, pool));
  const auto list = std::make_shared<const ChunkList>(std::move(encoded));
  const ChunkList& chunks = *list;
  if (options.distribution == Distribution::any) return by_priority(analysis, list, options, pool);

  size_t end = chunks.count();
  if (options.target && !options.target->exact) {
    HOLOGRAM_TRY(const auto cuts, cuts_for(analysis, chunks, {&options.target->max_nmse, 1}, pool));
    end = cuts[0];
  } else if (options.target_bits) {
    end = cut_for_bytes(chunks, 0,
                        *options.target_bits * static_cast<double>(elements) / 8 -
                            options.fragments * (kFragmentHeaderSize + 8.0));
  } else {
    size_t refined = 0;
    for (const BlockChunks& block : chunks.blocks) refined += block.bytes.size();
    // Small types come close to their entropy by any coder: there, a stream that can be cut is
    // worth a few percent.
    const double limit = static_cast<double>(refined) * (format->bytes == 1 ? 0.95 : 1.0);
    HOLOGRAM_TRY(const bool try_packed, may_pack_better(tensor, limit));
    if (try_packed) {
      HOLOGRAM_TRY(auto packed, use_packed(tensor, options, pool));
      if (static_cast<double>(packed.fragments[0].size()) < limit) return packed;
    }
  }
  if (end == 0)
    return fail(ErrorCode::invalid_argument, "the target size leaves no room for the first layer");
  return in_order(analysis, list, end, options.fragments, pool);
}

}  // namespace hologram::holotensor::refine
