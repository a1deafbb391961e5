// Session: opens a compiled model (.holo) and runs it.
//
//   auto session = hologram::Session::open("model.holo");
//   if (!session) return report(session.error());
//   auto results = session->run(inputs);      // Result<std::vector<hologram::host::Value>>
//
// Link hologram::session. See docs/runtime.md, and examples/session for a whole program.
#pragma once

#include "runtime/session/session.h"

namespace hologram {
using archive::OpenOptions;
using runtime::BoundShapes;
using runtime::PortInfo;
using runtime::Session;
using runtime::StepTime;
using runtime::WeightOptions;
using runtime::WeightQuality;
using runtime::WeightStatus;

// What sessions take and give: dense tensors in memory of this process, sequences of them, or
// nothing. (hologram::Tensor is the Executor's, on any backend.)
namespace host {
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
}  // namespace host
}  // namespace hologram
