#include "holotensor/scheme.h"

#include "holotensor/classical/classical.h"
#include "holotensor/packed.h"
#include "holotensor/refine/refine.h"

namespace hologram::holotensor {

const Scheme* find_scheme(SchemeId id) {
  switch (id) {
    case SchemeId::packed:
      return &packed_scheme();
    case SchemeId::spectral:
      return &spectral_scheme();
    case SchemeId::projection:
      return &projection_scheme();
    case SchemeId::lowrank:
      return &lowrank_scheme();
    case SchemeId::refine:
      return &refine_scheme();
    default:
      return nullptr;
  }
}

}  // namespace hologram::holotensor
