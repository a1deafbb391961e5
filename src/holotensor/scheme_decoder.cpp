#include "holotensor/classical/classical.h"
#include "holotensor/packed.h"
#include "holotensor/refine/refine.h"
#include "holotensor/scheme.h"

namespace hologram::holotensor {

Result<std::unique_ptr<SchemeDecoder>> make_scheme_decoder(const TensorInfo& info) {
  switch (info.scheme) {
    case SchemeId::packed:
      return packed_decoder(info);
    case SchemeId::spectral:
      return spectral_decoder(info);
    case SchemeId::projection:
      return projection_decoder(info);
    case SchemeId::lowrank:
      return lowrank_decoder(info);
    case SchemeId::refine:
      return refine::make_decoder(info);
    default:
      return fail(ErrorCode::unsupported, "tensor '{}' uses scheme {}, which this build lacks",
                  info.name, static_cast<int>(info.scheme));
  }
}

}  // namespace hologram::holotensor
