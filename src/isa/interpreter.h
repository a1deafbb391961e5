// The reference interpreter: the meaning of the ISA. Every other target is tested against it.
//
// All threads of a block move in lockstep: an instruction is done by every active thread, in thread
// order (x fastest), before the next one begins. Programs without barriers, group reductions and
// shared memory cannot tell, and run many blocks at a time. Blocks run in parallel on the process's
// thread pool unless the program has atomics on global arrays; then they run in order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "isa/launch.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

struct InterpreterOptions {
  bool parallel = true;
  // Instructions one group of threads may execute, 0: no limit. timeout when passed; for programs
  // from strangers, whose loops need not end.
  uint64_t max_steps = 0;
};

// A program decoded for running. Immutable; run() may be called from several threads.
class Interpreter {
 public:
  // Verifies and decodes. Keeps its own copy of what it needs.
  static Result<Interpreter> create(const Program& program);
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

  // Runs the whole grid. `trap` names the thread, the block and the instruction with its text;
  // arrays then hold what was stored so far.
  Status run(const LaunchShape& shape, std::span<const Argument> arguments,
             const InterpreterOptions& options = {}) const;

 private:
  struct Impl;
  explicit Interpreter(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// create() and run().
Status interpret(const Program& program, const LaunchShape& shape,
                 std::span<const Argument> arguments, const InterpreterOptions& options = {});

}  // namespace hologram::isa
