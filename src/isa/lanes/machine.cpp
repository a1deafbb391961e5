#include "isa/lanes/machine.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "isa/lanes/apply.h"
#include "isa/text.h"

namespace hologram::isa {
namespace {

// Shared memory is undefined at the start of a block; a pattern shows programs that forget.
constexpr int kUndefinedByte = 0xa5;

template <typename T>
void fill(std::byte* dst, uint64_t bits, const Lanes& lanes) {
  const T value = static_cast<T>(bits);
  T* const out = as<T>(dst);
  for_each_lane(lanes, [=](uint32_t i) { out[i] = value; });
}

void broadcast(std::byte* dst, DType type, uint64_t bits, const Lanes& lanes) {
  switch (size_of(type)) {
    case 1:
      return fill<uint8_t>(dst, bits, lanes);
    case 2:
      return fill<uint16_t>(dst, bits, lanes);
    case 4:
      return fill<uint32_t>(dst, bits, lanes);
    default:
      return fill<uint64_t>(dst, bits, lanes);
  }
}

}  // namespace

Machine::Machine(const Decoded& decoded, const LaneLaunch& launch)
    : decoded_(&decoded), launch_(&launch), layout_(shared_layout(decoded.program)) {
  const uint32_t size = launch.group_size;
  indices_.resize(size);
  reduced_.resize(size);
  parked_.resize(size);
  all_.resize(size);
  std::iota(all_.begin(), all_.end(), 0u);
  // A region holds one list of its own and one of the range inside it; the body holds one.
  lists_.resize((2 * uint64_t{decoded.depth} + 1) * size);
  for (int axis = 0; axis < 3; ++axis) {
    thread_[axis].resize(size);
    block_[axis].resize(size);
  }
}

Result<Machine> Machine::create(const Decoded& decoded, const LaneLaunch& launch) {
  Machine machine(decoded, launch);
  uint64_t bytes = 0;
  for (DType type : decoded.program.registers) {
    machine.offsets_.push_back(bytes);
    bytes += align_up(size_of(type) * uint64_t{launch.group_size}, kAlignment);
  }
  HOLOGRAM_TRY(machine.registers_, AlignedBytes::allocate(bytes));
  HOLOGRAM_TRY(machine.bounds_,
               AlignedBytes::allocate(decoded.for_depth * 2 * 8 * uint64_t{launch.group_size}));
  HOLOGRAM_TRY(machine.shared_,
               AlignedBytes::allocate(machine.layout_.fixed_bytes + launch.shape.shared_bytes));
  return machine;
}

// Gives the lanes their places in the grid, from launch order: blocks x fastest, and in each its
// threads x fastest.
void Machine::place_threads(uint64_t first_thread) {
  const LaunchShape& shape = launch_->shape;
  uint64_t block = first_thread / shape.block_threads();
  uint64_t thread = first_thread % shape.block_threads();
  std::array<uint32_t, 3> in_grid{}, in_block{};
  for (int axis = 0; axis < 3; ++axis) {
    in_grid[axis] = static_cast<uint32_t>(block % shape.grid[axis]);
    block /= shape.grid[axis];
    in_block[axis] = static_cast<uint32_t>(thread % shape.block[axis]);
    thread /= shape.block[axis];
  }
  const auto count_on = [](std::array<uint32_t, 3>& place, const std::array<uint32_t, 3>& limit) {
    for (int axis = 0; axis < 3; ++axis) {
      if (++place[axis] < limit[axis]) return true;
      place[axis] = 0;
    }
    return false;
  };
  for (uint32_t i = 0; i < size_; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      block_[axis][i] = in_grid[axis];
      thread_[axis][i] = in_block[axis];
    }
    if (!count_on(in_block, shape.block)) count_on(in_grid, shape.grid);
  }
}

Status Machine::run_group(uint64_t group) {
  const uint64_t first = group * launch_->group_size;
  size_ = static_cast<uint32_t>(std::min<uint64_t>(launch_->group_size, launch_->threads - first));
  place_threads(first);
  if (shared_.size() != 0) std::memset(shared_.data(), kUndefinedByte, shared_.size());
  std::fill(parked_.begin(), parked_.end(), uint8_t{kRunning});
  steps_ = 0;
  next_list_ = lists_.data();
  return run(0, static_cast<uint32_t>(decoded_->steps.size()), lanes_of(all_.data(), size_));
}

Status Machine::run(uint32_t at, uint32_t end, Lanes lanes) {
  uint32_t* const own = next_list_;
  next_list_ += size_;
  for (; at < end && lanes.count != 0; ++at) {
    HOLOGRAM_CHECK(count_step());
    const DecodedInstruction& step = decoded_->steps[at];
    const Instruction& instruction = decoded_->program.body[at];
    const LaneRegisters registers = registers_of(instruction);
    switch (step.step) {
      case Step::kernel:
        if (const uint32_t lane = step.kernel(registers, lanes); lane != kNoLane)
          return std::unexpected(trap(at, lane));
        break;
      case Step::memory:
        HOLOGRAM_CHECK(run_memory(at, lanes));
        break;
      case Step::immediate:
        broadcast(registers.dst, instruction.type, instruction.immediate, lanes);
        break;
      case Step::parameter:
        broadcast(registers.dst, instruction.type, launch_->arguments[instruction.symbol].bits,
                  lanes);
        break;
      case Step::length:
        broadcast(registers.dst, DType::u64, launch_->arguments[instruction.symbol].count, lanes);
        break;
      case Step::id:
        run_id(instruction, lanes);
        break;
      case Step::group:
        if (lanes.count != size_)
          return fail(ErrorCode::internal, "kernel '{}': instruction {}: threads are missing",
                      decoded_->program.name, at);
        step.group(registers.dst, registers.a, reinterpret_cast<std::byte*>(reduced_.data()),
                   size_);
        break;
      case Step::nothing:
      case Step::end:
        break;
      case Step::if_begin:
      case Step::for_begin:
      case Step::loop_begin: {
        HOLOGRAM_CHECK(step.step == Step::if_begin    ? run_if(at, lanes)
                       : step.step == Step::for_begin ? run_for(at, lanes)
                                                      : run_loop(at, lanes));
        if (step.leaves) lanes = still_running(lanes, own);
        at = step.end;
        break;
      }
      case Step::jump: {
        const Parked state = instruction.op == Opcode::break_      ? kBroken
                             : instruction.op == Opcode::continue_ ? kContinued
                                                                   : kReturned;
        for_each_lane(lanes, [&](uint32_t i) { parked_[i] = state; });
        lanes.count = 0;
        break;
      }
    }
  }
  next_list_ = own;
  return {};
}

Lanes Machine::still_running(const Lanes& from, uint32_t* to) const {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < from.count; ++k)
    if (parked_[from.index[k]] == kRunning) to[kept++] = from.index[k];
  return lanes_of(to, kept);
}

uint32_t Machine::resume(uint32_t* running, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t lane = running[k];
    if (parked_[lane] > kContinued) continue;
    parked_[lane] = kRunning;
    running[kept++] = lane;
  }
  return kept;
}

Status Machine::run_if(uint32_t at, const Lanes& lanes) {
  const DecodedInstruction& step = decoded_->steps[at];
  const bool* const condition = as<bool>(register_data(decoded_->program.body[at].a));
  // Lanes that take the first part, then the others, each in order.
  uint32_t* const list = next_list_;
  next_list_ += size_;
  uint32_t taken = 0;
  for (uint32_t k = 0; k < lanes.count; ++k)
    if (condition[lanes.index[k]]) list[taken++] = lanes.index[k];
  uint32_t all = taken;
  if (step.otherwise != step.end)
    for (uint32_t k = 0; k < lanes.count; ++k)
      if (!condition[lanes.index[k]]) list[all++] = lanes.index[k];
  HOLOGRAM_CHECK(run(at + 1, step.otherwise, lanes_of(list, taken)));
  HOLOGRAM_CHECK(run(step.otherwise + 1, step.end, lanes_of(list + taken, all - taken)));
  next_list_ = list;
  return {};
}

Status Machine::run_for(uint32_t at, const Lanes& lanes) {
  const DecodedInstruction& step = decoded_->steps[at];
  const Instruction& instruction = decoded_->program.body[at];
  LaneRegisters registers = registers_of(instruction);
  // The body may assign the registers the bounds came from.
  const uint64_t bytes = size_of(instruction.type) * uint64_t{size_};
  std::byte* const bounds = bounds_.data() + step.bounds_depth * 16 * uint64_t{launch_->group_size};
  std::memcpy(bounds, registers.b, bytes);
  std::memcpy(bounds + bytes, registers.c, bytes);
  registers.b = bounds;
  registers.c = bounds + bytes;

  uint32_t* const running = next_list_;
  next_list_ += size_;
  uint32_t trapped = kNoLane;
  uint32_t count = step.counted.begin(registers, lanes, running, &trapped);
  if (trapped != kNoLane) return std::unexpected(trap(at, trapped));
  while (count != 0) {
    HOLOGRAM_CHECK(count_step());
    HOLOGRAM_CHECK(run(at + 1, step.end, lanes_of(running, count)));
    if (step.leaves) count = resume(running, count);
    count = step.counted.next(registers, running, count);
  }
  if (step.leaves) release(lanes);
  next_list_ = running;
  return {};
}

void Machine::release(const Lanes& lanes) {
  for_each_lane(lanes, [&](uint32_t i) {
    if (parked_[i] == kBroken) parked_[i] = kRunning;
  });
}

Status Machine::count_step() {
  if (++steps_ <= launch_->max_steps || launch_->max_steps == 0) return {};
  return fail(ErrorCode::timeout, "kernel '{}': more than {} instructions", decoded_->program.name,
              launch_->max_steps);
}

Status Machine::run_loop(uint32_t at, const Lanes& lanes) {
  const DecodedInstruction& step = decoded_->steps[at];
  uint32_t* const running = next_list_;
  next_list_ += size_;
  uint32_t count = lanes.count;
  std::memcpy(running, lanes.index, count * sizeof(uint32_t));
  while (count != 0) {
    HOLOGRAM_CHECK(count_step());
    HOLOGRAM_CHECK(run(at + 1, step.end, lanes_of(running, count)));
    if (step.leaves) count = resume(running, count);
  }
  release(lanes);
  next_list_ = running;
  return {};
}

LaneMemory Machine::memory_of(const Instruction& instruction) const {
  if (is_shared_access(instruction.op))
    return {shared_.data() + layout_.offsets[instruction.symbol],
            shared_count(decoded_->program, instruction.symbol, launch_->shape.shared_bytes)};
  const Argument& argument = launch_->arguments[instruction.symbol];
  return {static_cast<std::byte*>(argument.data), argument.count};
}

Status Machine::run_memory(uint32_t at, const Lanes& lanes) {
  const DecodedInstruction& step = decoded_->steps[at];
  const Instruction& instruction = decoded_->program.body[at];
  LaneRegisters registers = registers_of(instruction);
  step.widen(registers.a, indices_.data(), lanes);
  registers.a = reinterpret_cast<std::byte*>(indices_.data());
  const uint32_t lane = step.memory(registers, memory_of(instruction), lanes);
  if (lane != kNoLane) return std::unexpected(trap(at, lane));
  return {};
}

void Machine::run_id(const Instruction& instruction, const Lanes& lanes) {
  const int axis = instruction.aux;
  const uint64_t block_size = launch_->shape.block[axis];
  const uint32_t* const thread = thread_[axis].data();
  const uint32_t* const block = block_[axis].data();
  const auto write = [&]<typename T>(T* dst) {
    switch (instruction.op) {
      case Opcode::thread_id:
        return for_each_lane(lanes, [=](uint32_t i) { dst[i] = thread[i]; });
      case Opcode::block_id:
        return for_each_lane(lanes, [=](uint32_t i) { dst[i] = block[i]; });
      default:
        return for_each_lane(
            lanes, [=](uint32_t i) { dst[i] = static_cast<T>(block[i] * block_size + thread[i]); });
    }
  };
  std::byte* const dst = register_data(instruction.dst);
  if (instruction.op == Opcode::block_size || instruction.op == Opcode::grid_size)
    broadcast(dst, instruction.type,
              instruction.op == Opcode::block_size ? block_size : launch_->shape.grid[axis], lanes);
  else if (size_of(instruction.type) == 4)
    write(as<uint32_t>(dst));
  else
    write(as<uint64_t>(dst));
}

// ---- traps

// Zero-extended bits of one lane.
uint64_t Machine::lane_value(Register r, uint32_t lane) {
  const size_t size = size_of(decoded_->program.registers[r.index]);
  uint64_t bits = 0;
  std::memcpy(&bits, register_data(r) + lane * size, size);
  return bits;
}

std::string Machine::trap_reason(const Instruction& instruction, uint32_t lane) {
  switch (info(instruction.op).form) {
    case Form::shift:
      return fmt::format("shift by {}, but {} has {} bits", lane_value(instruction.b, lane),
                         name_of(instruction.type), bits_of(instruction.type));
    case Form::for_begin:
      return "the step is zero";
    case Form::binary:
      return "division by zero";
    default:
      break;
  }
  const DType index_type = decoded_->program.registers[instruction.a.index];
  const uint64_t index = indices_[lane];
  const std::string shown = is_signed_integer(index_type)
                                ? fmt::to_string(static_cast<int64_t>(index))
                                : fmt::to_string(index);
  const bool shared = is_shared_access(instruction.op);
  return fmt::format("index {} is out of range: '{}' has {} elements", shown,
                     shared ? decoded_->program.shared[instruction.symbol].name
                            : decoded_->program.parameters[instruction.symbol].name,
                     memory_of(instruction).count);
}

Error Machine::trap(uint32_t at, uint32_t lane) {
  const Program& program = decoded_->program;
  const Instruction& instruction = program.body[at];
  return Error(
      ErrorCode::trap,
      fmt::format("kernel '{}': block ({},{},{}) thread ({},{},{}): instruction {} `{}`: {}",
                  program.name, block_[0][lane], block_[1][lane], block_[2][lane], thread_[0][lane],
                  thread_[1][lane], thread_[2][lane], at, disassemble(program, instruction),
                  trap_reason(instruction, lane)));
}

}  // namespace hologram::isa
