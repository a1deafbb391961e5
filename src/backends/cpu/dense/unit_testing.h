// What the tests of narrow products share.
#pragma once

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/testing.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {

// Each level; also without AMX, where this CPU has it.
template <typename Body>
void for_each_unit_level(const Body& body) {
  for_each_level(body);
  if (!has_bf16_tiles()) return;
  detail::allow_amx(false);
  for_each_level(body);
  detail::allow_amx(true);
}

}  // namespace hologram::backends::dense
