#include "holotensor/refine/refine.h"

#include "holotensor/byte_io.h"
#include "holotensor/refine/reed_solomon.h"

namespace hologram::holotensor {
namespace refine {

std::vector<std::byte> write_parameters(const Parameters& parameters, Distribution distribution) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  const TensorModel& model = parameters.model;
  out.put(uint8_t{1});
  out.put(static_cast<int16_t>(model.largest));
  out.put(static_cast<uint8_t>(model.plane_layers));
  const unsigned depths = parameters.elements < kFewElements ? 0 : kCentroidDepths;
  for (unsigned d = 0; d < depths; ++d)
    for (unsigned m = 0; m < kCentroids; ++m)
      out.put(static_cast<uint8_t>(model.centroid[d][m] * 256));
  if (distribution == Distribution::ordered) return bytes;
  out.varint(parameters.tiers.size());
  for (const Tier& tier : parameters.tiers) {
    out.varint(tier.k);
    out.varint(tier.bytes);
  }
  return bytes;
}

Result<Parameters> parse_parameters(const TensorInfo& info) {
  const auto bad = [&] {
    return fail(ErrorCode::corrupt, "tensor '{}': refine parameters that make no sense", info.name);
  };
  const auto format = format_of(info.dtype);
  if (!format)
    return fail(ErrorCode::corrupt, "tensor '{}': refine does not store {}", info.name,
                name_of(info.dtype));
  Parameters parameters;
  TensorModel& model = parameters.model;
  ByteReader in(info.parameters);
  const uint8_t version = in.get<uint8_t>();
  if (in.ok() && version != 1)
    return fail(ErrorCode::unsupported, "tensor '{}': refine version {}; this build reads 1",
                info.name, version);
  model.format = *format;
  model.largest = in.get<int16_t>();
  model.plane_layers = in.get<uint8_t>();
  parameters.elements = info.elements();
  const unsigned depths = parameters.elements < kFewElements ? 0 : kCentroidDepths;
  for (unsigned d = 0; d < depths; ++d)
    for (unsigned m = 0; m < kCentroids; ++m)
      model.centroid[d][m] = static_cast<float>(in.get<uint8_t>()) / 256;
  const int low = format->integer ? -2 : -149, high = format->integer ? 4 : 124;
  if (!in.ok() || model.largest < low || model.largest > high || model.plane_layers == 0 ||
      model.plane_layers > kMaxClass + kMaxPlanes)
    return bad();
  if (info.distribution == Distribution::any) {
    const uint64_t count = in.varint();
    if (count > kMaxShards) return bad();
    unsigned before = info.min_fragments - 1u;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t k = in.varint(), bytes = in.varint();
      if (k <= before || k > info.fragment_count || bytes > (uint64_t{1} << 56)) return bad();
      parameters.tiers.push_back({static_cast<unsigned>(k), bytes});
      before = static_cast<unsigned>(k);
    }
    if (info.fragment_count > kMaxShards || parameters.tiers.empty()) return bad();
  }
  if (!in.done()) return bad();
  return parameters;
}

}  // namespace refine

namespace {

class RefineScheme final : public Scheme {
 public:
  SchemeId id() const override { return SchemeId::refine; }
  bool reads_stored() const override { return true; }
  Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions& options,
                              ThreadPool& pool) const override {
    return refine::encode(tensor, options, pool);
  }
};

}  // namespace

const Scheme& refine_scheme() {
  static const RefineScheme scheme;
  return scheme;
}

}  // namespace hologram::holotensor
