#include "holotensor/encoder.h"

#include "holotensor/fragment.h"
#include "support/hash.h"

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

}  // namespace

Result<EncodedTensor> Encoder::encode(const TensorView& tensor) const {
  const auto place = [&] { return fmt::format("tensor '{}'", tensor.name); };
  HOLOGRAM_CHECK(in_context(check_options(options_), place));
  HOLOGRAM_CHECK(validate(tensor));
  const Scheme* scheme = find_scheme(options_.scheme);
  if (!scheme)
    return fail(ErrorCode::unsupported, "scheme {} is not part of this build",
                static_cast<int>(options_.scheme));
  ThreadPool& pool = options_.pool ? *options_.pool : ThreadPool::shared();
  HOLOGRAM_TRY(auto output, in_context(scheme->encode(tensor, options_, pool), place));

  EncodedTensor encoded;
  TensorInfo& info = encoded.info;
  info.name = tensor.name;
  info.dtype = tensor.dtype;
  info.shape.assign(tensor.shape.begin(), tensor.shape.end());
  info.scheme = output.scheme.value_or(options_.scheme);
  info.distribution = output.distribution;
  info.fragment_count = static_cast<uint16_t>(output.fragments.size());
  info.min_fragments = output.min_fragments;
  info.seed = options_.seed;
  info.content_hash = hash64(tensor.bytes);
  info.parameters = std::move(output.parameters);
  info.curve = std::move(output.curve);
  for (Quality& quality : info.curve)
    quality = {stored_error(quality.nmse), stored_error(quality.max_error), quality.exact};
  info.id = identity_of(info);
  if (info.curve.size() != output.fragments.size() + 1 || info.parameters.size() > kMaxParameters)
    return fail(ErrorCode::internal, "scheme {} gave {} fragments, {} points and {} parameters",
                name_of(info.scheme), output.fragments.size(), info.curve.size(),
                info.parameters.size());
  for (auto& payload : output.fragments) {
    auto fragment =
        make_fragment(info, static_cast<uint16_t>(encoded.fragments.size()), std::move(payload));
    info.fragments.push_back(
        {.offset = 0, .size = fragment.size(), .hash = fragment_hash(fragment)});
    encoded.fragments.push_back(std::move(fragment));
  }
  return encoded;
}

}  // namespace hologram::holotensor
