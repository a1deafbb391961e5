// AccessBounds: the array elements that a program is certain to touch, worked out once when it is
// loaded, so that a launch with an array that is too short is refused before anything runs.
//
// Covered: loads, stores and atomics whose index is made of constants, scalar parameters, ids and
// loop counters by additions and products that do not wrap, outside any region or inside
//   - `if i < n` (and its other spellings, joined by `and`), i an id and n the same in all threads;
//   - what follows `if i >= n: return`;
//   - counted loops whose bounds are the same in all threads and which nothing leaves early.
// The largest such index is really reached, by the last thread that the tests let pass; a refusal
// is never wrong. What is not covered is left to the program's own tests (and trapped by the
// interpreter).
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

  bool empty() const { return contexts_.empty(); }
  // Whether the value of scalar parameter `p` can change what require() says.
  bool depends_on(uint32_t p) const;

 private:
  // More nodes than any index expression in practice; keeps require() on the stack.
  static constexpr uint32_t kMaxNodes = 64;
  static constexpr uint32_t kUnknown = ~uint32_t{0};

  struct Node {
    isa::Opcode op;  // imm, param, add, mul, mad, mov, convert, an id, or for_begin (a counter)
    DType type;
    uint8_t axis = 0;
    uint32_t a = kUnknown, b = kUnknown, c = kUnknown;  // nodes
    uint32_t symbol = 0;
    uint64_t immediate = 0;
    bool uniform = false;  // the same in all threads of a launch
  };
  // The id `node` is below `bound`, or at most.
  struct Guard {
    uint32_t node, bound;
    bool inclusive;
    bool operator==(const Guard&) const = default;
  };
  struct Access {
    uint32_t parameter;
    uint32_t node;
  };
  // Accesses behind the same tests and loops.
  struct Context {
    std::vector<Guard> guards;
    std::vector<uint32_t> loops;  // counters, each of at least one turn
    std::vector<uint32_t> nodes;  // what is needed, bounds first
    std::vector<Access> accesses;
  };
  class Reader;

  // The value of each of the context's nodes in its last thread; false where none gets there.
  struct Values;
  bool evaluate(const Context& context, const isa::LaunchShape& shape, const uint64_t* words,
                Values& values) const;

  std::vector<Node> nodes_;
  std::vector<Context> contexts_;
};

}  // namespace hologram::backends
