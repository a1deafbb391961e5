// How far Hologram's results are from the peer's on the same inputs.
#pragma once

#include <span>
#include <vector>

#include "bench/peers/onnx_runtime.h"
#include "runtime/session/session.h"

namespace hologram::peers {

// The peer's tensors in the order of the session's inputs. Copies the data.
Result<std::vector<kernels::Value>> to_values(const runtime::Session& session,
                                              std::span<const PeerTensor> inputs);

struct OutputError {
  double max = 0, rms = 0;  // of the range of the peer's output; of 1 where that is a single number
  double range = 0;         // of the peer's output; not finite where it holds NaN or infinities
  double magnitude = 0;     // of the peer's largest finite element
};

// Other types or shapes are an error; anything but f32 must be equal, and counts as 1 where it is
// not. NaN and infinities must be where the peer has them.
Result<OutputError> difference(const kernels::Value& ours, const PeerTensor& theirs);
// The same between two runs of the peer.
Result<OutputError> difference(const PeerTensor& a, const PeerTensor& b);
// The worst over all outputs.
Result<OutputError> difference(std::span<const kernels::Value> ours,
                               std::span<const PeerTensor> theirs);

}  // namespace hologram::peers
