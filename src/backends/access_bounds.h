// AccessBounds: the array elements that a program is certain to touch, worked out once when it is
// loaded, so that a launch with an array that is too short is refused before anything runs.
//
// Covered: loads, stores and atomics outside any `if` or loop whose index is made of constants,
// scalar parameters and ids by additions and products that do not wrap. The largest such index is
// really reached, by the last thread of the last block; a refusal is never wrong. What is not
// covered is left to the program's own tests (and trapped by the interpreter).
#pragma once

#include <cstdint>
#include <vector>

#include "isa/launch.h"
#include "isa/program.h"

namespace hologram::backends {

class AccessBounds {
 public:
  explicit AccessBounds(const isa::Program& program);

  // Raises lengths_needed[p] (one a parameter, set to 0 by the caller) to the number of elements
  // that array p must have in this launch. `words` holds the scalars' bits. Never allocates.
  void require(const isa::LaunchShape& shape, const uint64_t* words,
               uint64_t* lengths_needed) const;

  bool empty() const { return accesses_.empty(); }
  // Whether the value of scalar parameter `p` can change what require() says.
  bool depends_on(uint32_t p) const;

 private:
  // More nodes than any index expression in practice; keeps require() on the stack.
  static constexpr uint32_t kMaxNodes = 64;
  static constexpr uint32_t kUnknown = ~uint32_t{0};

  struct Node {
    isa::Opcode op;  // imm, param, add, mul, mad, convert, or an id
    DType type;
    uint8_t axis = 0;
    uint32_t a = kUnknown, b = kUnknown, c = kUnknown;  // nodes
    uint32_t symbol = 0;
    uint64_t immediate = 0;
  };
  struct Access {
    uint32_t parameter;
    uint32_t node;
  };
  std::vector<Node> nodes_;
  std::vector<Access> accesses_;
};

}  // namespace hologram::backends
