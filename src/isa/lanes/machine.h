// Machine: the registers, shared memory and active lanes of one group of threads in lockstep.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "isa/lanes/decoded.h"
#include "support/aligned.h"
#include "support/result.h"

namespace hologram::isa {

// Used by one thread at a time; borrows the decoded program and the launch.
class Machine {
 public:
  static Result<Machine> create(const Decoded& decoded, const LaneLaunch& launch);
  Status run_group(uint64_t group);

 private:
  // Why a lane does not run on: until the end of its loop's body, until the loop's end, for good.
  enum Parked : uint8_t { kRunning, kContinued, kBroken, kReturned };

  Machine(const Decoded& decoded, const LaneLaunch& launch);
  void place_threads(uint64_t first_thread);
  // Runs instructions [at, end) for `lanes`, which may all be parked when it returns.
  Status run(uint32_t at, uint32_t end, Lanes lanes);
  Status run_if(uint32_t at, const Lanes& lanes);
  Status run_for(uint32_t at, const Lanes& lanes);
  Status run_loop(uint32_t at, const Lanes& lanes);
  Status run_memory(uint32_t at, const Lanes& lanes);
  void run_id(const Instruction& instruction, const Lanes& lanes);
  // Those of `from` that still run, in `to`; the two may be one list.
  Lanes still_running(const Lanes& from, uint32_t* to) const;
  // Lanes that went on to the next iteration run again; in `running`, in place.
  uint32_t resume(uint32_t* running, uint32_t count);
  // Lanes that left a loop run again behind it.
  void release(const Lanes& lanes);
  // Iterations count as well as instructions, or empty loops would pass every limit.
  Status count_step();
  Lanes lanes_of(const uint32_t* index, uint32_t count) const {
    return {index, count, count == size_};
  }
  std::byte* register_data(Register r) {
    return r.valid() ? registers_.data() + offsets_[r.index] : nullptr;
  }
  LaneRegisters registers_of(const Instruction& instruction) {
    return {register_data(instruction.dst), register_data(instruction.a),
            register_data(instruction.b), register_data(instruction.c)};
  }
  LaneMemory memory_of(const Instruction& instruction) const;
  uint64_t lane_value(Register r, uint32_t lane);
  Error trap(uint32_t at, uint32_t lane);
  std::string trap_reason(const Instruction& instruction, uint32_t lane);

  const Decoded* decoded_;
  const LaneLaunch* launch_;
  uint32_t size_ = 0;   // lanes of this group
  uint64_t steps_ = 0;  // instructions this group has executed
  SharedLayout layout_;
  std::vector<uint64_t> offsets_;  // register -> where its lanes start in registers_
  AlignedBytes registers_;
  AlignedBytes shared_;
  AlignedBytes bounds_;            // of fors: end and step a depth
  std::vector<uint64_t> indices_;  // widened, of the memory access being run
  std::vector<uint64_t> reduced_;  // scratch of group reductions
  std::vector<uint8_t> parked_;    // lane -> Parked
  std::vector<uint32_t> all_;      // 0, 1, 2, ...
  std::vector<uint32_t> lists_;    // a stack of lists of lanes
  uint32_t* next_list_ = nullptr;
  std::array<std::vector<uint32_t>, 3> thread_;  // axis -> lane -> thread id
  std::array<std::vector<uint32_t>, 3> block_;   // axis -> lane -> block id
};

}  // namespace hologram::isa
