#include "holotensor/scheme.h"

#include "holotensor/packed.h"

namespace hologram::holotensor {

const Scheme* find_scheme(SchemeId id) {
  switch (id) {
    case SchemeId::packed:
      return &packed_scheme();
    default:
      return nullptr;
  }
}

}  // namespace hologram::holotensor
