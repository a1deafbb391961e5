// FusionReport: which nodes became one and which stayed apart, for `hologram compile --explain`.
// Every pass that fuses appends to it.
#pragma once

#include <string>
#include <vector>

namespace hologram::graph {

struct FusionReport {
  struct Group {
    std::string name;       // of the node that is left
    std::string operators;  // "Conv, Relu", in order
    std::string shape;      // of its result
  };
  struct Apart {
    std::string name, op;  // of a node that could have been fused
    std::string reason;    // why it was not: one clause
  };
  std::vector<Group> fused;
  std::vector<Apart> apart;
};

}  // namespace hologram::graph
