#include "holotensor/encoder.h"

#include <algorithm>

#include "holotensor/fragment.h"
#include "holotensor/stream_hash.h"

namespace hologram::holotensor {
namespace {

Status check_options(const EncoderOptions& options) {
  if (options.fragments == 0 || options.fragments > kMaxFragments)
    return fail(ErrorCode::invalid_argument, "{} fragments; from 1 to {} are possible",
                options.fragments, kMaxFragments);
  if (options.target_bits && options.target)
    return fail(ErrorCode::invalid_argument, "a target size and a target error exclude each other");
  if (options.target_bits && !(*options.target_bits > 0))
    return fail(ErrorCode::invalid_argument, "a target of {} bits a weight", *options.target_bits);
  return {};
}

// Large enough that reading is not slow, small enough not to count.
constexpr size_t kReadAtOnce = 1 << 20;

Result<uint64_t> content_hash(const TensorView& tensor) {
  StreamHash hash;
  std::vector<std::byte> scratch;
  for (uint64_t at = 0; at < tensor.byte_count();) {
    const size_t size = std::min<uint64_t>(kReadAtOnce, tensor.byte_count() - at);
    HOLOGRAM_TRY(const auto piece, tensor.read(at, size, scratch));
    hash.add(piece);
    at += size;
  }
  return hash.digest();
}

struct Prepared {
  TensorInfo info;  // without its fragments
  SchemeOutput output;
};

Result<Prepared> prepare(const TensorView& tensor, const EncoderOptions& options,
                         ThreadPool& pool) {
  const auto place = [&] { return fmt::format("tensor '{}'", tensor.name); };
  HOLOGRAM_CHECK(in_context(check_options(options), place));
  HOLOGRAM_CHECK(validate(tensor));
  const Scheme* scheme = find_scheme(options.scheme);
  if (!scheme)
    return fail(ErrorCode::unsupported, "scheme {} is not part of this build",
                static_cast<int>(options.scheme));
  TensorView view = tensor;
  std::vector<std::byte> loaded;
  if (tensor.stored && !scheme->reads_stored()) {
    HOLOGRAM_TRY(view.bytes, tensor.read(0, tensor.byte_count(), loaded));
    view.stored = nullptr;
  }
  Prepared prepared;
  HOLOGRAM_TRY(prepared.output, in_context(scheme->encode(view, options, pool), place));
  SchemeOutput& output = prepared.output;
  TensorInfo& info = prepared.info;
  info.name = tensor.name;
  info.dtype = tensor.dtype;
  info.shape.assign(tensor.shape.begin(), tensor.shape.end());
  info.scheme = output.scheme.value_or(options.scheme);
  info.distribution = output.distribution;
  info.fragment_count = static_cast<uint16_t>(output.count());
  info.min_fragments = output.min_fragments;
  info.seed = options.seed;
  HOLOGRAM_TRY(info.content_hash, in_context(content_hash(view), place));
  info.parameters = std::move(output.parameters);
  info.curve = std::move(output.curve);
  for (Quality& quality : info.curve)
    quality = {stored_error(quality.nmse), stored_error(quality.max_error), quality.exact};
  info.id = identity_of(info);
  if (info.curve.size() != output.count() + 1 || info.parameters.size() > kMaxParameters)
    return fail(ErrorCode::internal, "scheme {} gave {} fragments, {} points and {} parameters",
                name_of(info.scheme), output.count(), info.curve.size(), info.parameters.size());
  return prepared;
}

FragmentEntry entry_of(std::span<const std::byte> fragment) {
  return {.offset = 0, .size = fragment.size(), .hash = fragment_hash(fragment)};
}

}  // namespace

Result<EncodedTensor> Encoder::encode(const TensorView& tensor) const {
  ThreadPool& pool = options_.pool ? *options_.pool : ThreadPool::shared();
  HOLOGRAM_TRY(auto prepared, prepare(tensor, options_, pool));
  EncodedTensor encoded{.info = std::move(prepared.info)};
  encoded.fragments.resize(prepared.output.count());
  pool.parallel_for(encoded.fragments.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      encoded.fragments[i] =
          make_fragment(encoded.info, static_cast<uint16_t>(i), prepared.output.take(i));
  });
  for (const auto& fragment : encoded.fragments)
    encoded.info.fragments.push_back(entry_of(fragment));
  return encoded;
}

Result<TensorInfo> Encoder::encode(const TensorView& tensor, TakeFragment take) const {
  ThreadPool& pool = options_.pool ? *options_.pool : ThreadPool::shared();
  HOLOGRAM_TRY(auto prepared, prepare(tensor, options_, pool));
  TensorInfo& info = prepared.info;
  for (size_t i = 0; i < prepared.output.count(); ++i) {
    auto fragment = make_fragment(info, static_cast<uint16_t>(i), prepared.output.take(i));
    info.fragments.push_back(entry_of(fragment));
    HOLOGRAM_CHECK(take(std::move(fragment)));
  }
  return std::move(info);
}

}  // namespace hologram::holotensor
