#include "isa/testing/generator.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "isa/fields.h"

// Every draw and every emitted instruction stands in a statement of its own: compilers differ in
// the order they evaluate arguments in, and a seed must mean the same program everywhere.
namespace hologram::isa::testing {
namespace {

constexpr DType kAllTypes[] = {DType::boolean, DType::i8,  DType::i16, DType::i32, DType::i64,
                               DType::u8,      DType::u16, DType::u32, DType::u64, DType::f16,
                               DType::bf16,    DType::f32, DType::f64};

}  // namespace

Generator::Generator(uint64_t seed, FloatMode mode)
    : random_(seed), mode_(mode), b_(fmt::format("random_{}", seed)) {}

RandomCase Generator::draw() {
  draw_shape();
  declare();
  prologue();
  const unsigned size = 10 + random_.below(50);
  statements(size);
  may_return_ = true;
  statements(size / 3);
  epilogue();
  auto program = b_.finish();
  // A defect of the generator; the test of this folder sees it as an empty program.
  if (program)
    case_.program = *std::move(program);
  else
    case_.program.name = program.error().message();
  return std::move(case_);
}

// ---- frame

void Generator::draw_shape() {
  using Extents = std::array<uint32_t, 3>;
  case_.shape.block = random_.pick<Extents>({{1, 1, 1},
                                             {3, 1, 1},
                                             {8, 1, 1},
                                             {17, 1, 1},
                                             {32, 1, 1},
                                             {64, 1, 1},
                                             {4, 3, 2},
                                             {8, 8, 1},
                                             {1, 5, 7},
                                             {100, 1, 1}});
  case_.shape.grid = random_.pick<Extents>({{1, 1, 1}, {2, 1, 1}, {3, 2, 1}, {1, 2, 2}, {5, 1, 1}});
  block_threads_ = static_cast<uint32_t>(case_.shape.block_threads());
  threads_ = block_threads_ * case_.shape.grid[0] * case_.shape.grid[1] * case_.shape.grid[2];
}

Builder::Array Generator::add_array(std::string name, DType type, Access access, uint64_t count,
                                    Opcode function) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (uint64_t i = 0; i < count; ++i) {
    // Any byte is a bool to load; where the program may leave it alone only 0 and 1 compare well.
    const uint64_t bits = type == DType::boolean && access == Access::read ? random_.next() & 0xff
                                                                           : random_.bits(type);
    std::memcpy(bytes.data() + i * size_of(type), &bits, size_of(type));
  }
  case_.arrays.push_back(std::move(bytes));
  case_.scalars.push_back(0);
  case_.functions.push_back(function);
  return b_.array(std::move(name), type, access);
}

Builder::Scalar Generator::add_scalar(std::string name, DType type) {
  case_.arrays.emplace_back();
  case_.scalars.push_back(random_.bits(type));
  case_.functions.push_back(Opcode::mov);
  return b_.scalar(std::move(name), type);
}

void Generator::declare() {
  const unsigned types = 4 + random_.below(4);
  for (unsigned i = 0; i < types; ++i) {
    const DType type = kAllTypes[random_.below(13)];
    bool known = false;
    for (DType other : types_) known |= other == type;
    if (!known) types_.push_back(type);
  }
  for (DType type : types_) {
    const std::string_view name = name_of(type);
    const uint32_t count = 1 + random_.below(120);
    inputs_.push_back({add_array(fmt::format("in_{}", name), type, Access::read, count), count});
    outputs_.push_back(
        add_array(fmt::format("out_{}", name), type, Access::read_write, threads_ * kSlots));
    if (random_.one_in(2)) scalars_.push_back(add_scalar(fmt::format("s_{}", name), type));
  }
  const unsigned atomics = random_.below(3);
  for (unsigned i = 0; i < atomics; ++i) {
    const DType type =
        random_.pick({DType::i32, DType::u32, DType::i64, DType::u64, DType::f32, DType::f64});
    const Opcode op =
        is_float(type)
            ? random_.pick({Opcode::atomic_min, Opcode::atomic_max, Opcode::atomic_exchange})
            : random_.pick({Opcode::atomic_add, Opcode::atomic_min, Opcode::atomic_max,
                            Opcode::atomic_exchange});
    const uint32_t count = 1 + random_.below(9);
    const auto array = add_array(fmt::format("atomic_{}", i), type, Access::read_write, count);
    atomics_.push_back({array, op, count});
  }
  const unsigned shared = random_.below(3);
  for (unsigned i = 0; i < shared; ++i) {
    const DType type = kAllTypes[random_.below(13)];
    shared_.push_back(b_.shared(fmt::format("tile_{}", i), type, block_threads_));
  }
  if (random_.one_in(2)) {
    const DType type =
        random_.pick({DType::i32, DType::u32, DType::i64, DType::u64, DType::f32, DType::f64});
    shared_counts_.push_back(b_.shared("counts", type, block_threads_));
  }
  if (random_.one_in(3)) {
    const DType type = kAllTypes[random_.below(13)];
    shared_.push_back(b_.shared("dynamic", type, 0));
    case_.shape.shared_bytes = block_threads_ * size_of(type);
  }
}

void Generator::prologue() {
  const auto linear = [&](Opcode id, Opcode extent) {
    const Register z = b_.id(id, 2);
    const Register height = b_.id(extent, 1);
    const Register y = b_.id(id, 1);
    const Register row = b_.ternary(Opcode::mad, z, height, y);
    const Register width = b_.id(extent, 0);
    const Register x = b_.id(id, 0);
    return b_.ternary(Opcode::mad, row, width, x);
  };
  lane_ = linear(Opcode::thread_id, Opcode::block_size);
  const Register block = linear(Opcode::block_id, Opcode::grid_size);
  const Register size = b_.integer(DType::u32, block_threads_);
  self_ = b_.ternary(Opcode::mad, block, size, lane_);
  const Register slots = b_.integer(DType::u32, kSlots);
  self_base_ = b_.mul(self_, slots);
  for (DType type : types_) {
    const Register variable = b_.variable(type);
    const Register first = fresh_value(type);
    b_.assign(variable, first);
    variables_.push_back(keep(variable));
  }
  const Register zero = b_.integer(DType::u64, 0);
  checksum_ = b_.variable(DType::u64);
  b_.assign(checksum_, zero);
}

void Generator::epilogue() {
  const auto checksums = add_array("checksums", DType::u64, Access::write, threads_);
  b_.store(checksums, self_, checksum_);
  for (Register variable : variables_) {
    for (const Builder::Array& output : outputs_) {
      if (output.type != b_.type_of(variable)) continue;
      b_.store(output, self_base_, variable);
      const Register last = b_.integer(DType::u32, kSlots - 1);
      const Register index = b_.add(self_base_, last);
      const Register other = value(output.type);
      b_.store(output, index, other);
    }
  }
}

// ---- statements

// What is defined inside is gone outside.
template <typename Body>
void Generator::scope(Body&& body) {
  std::array<size_t, 13> sizes;
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = pool_[i].size();
  ++depth_;
  body();
  --depth_;
  for (size_t i = 0; i < sizes.size(); ++i) pool_[i].resize(sizes[i]);
}

void Generator::statements(unsigned count) {
  for (unsigned i = 0; i < count; ++i) statement();
}

void Generator::statement() {
  const uint32_t kind = random_.below(40);
  const bool deep = depth_ >= 4;
  if (kind < 18) return operation();
  if (kind < 23) {
    const Register variable = random_.pick(variables_);
    const Register next = value(b_.type_of(variable));
    return b_.assign(variable, next);
  }
  if (kind < 26) return store_output();
  if (kind < 27) return own_atomic();
  if (kind < 28) return global_atomic();
  if (kind < 30) return uniform_ && !may_return_ ? shared_phase() : operation();
  if (kind < 31) return uniform_ && !may_return_ ? shared_atomics() : operation();
  if (kind < 32) return uniform_ && !may_return_ ? group_reduction() : operation();
  if (kind < 33) return uniform_ && !may_return_ && !deep ? uniform_region() : operation();
  if (kind < 34) return b_.fence();
  if (kind < 35 && mode_ == FloatMode::exact) return operation();
  if (kind < 35 || (mode_ == FloatMode::math && kind < 37)) return math_result();
  if (deep) return operation();
  if (kind < 38) return divergent_if();
  if (kind < 39) return counted_loop();
  return open_loop();
}

void Generator::divergent_if() {
  const Register c = condition();
  const bool was_uniform = std::exchange(uniform_, false);
  const unsigned size = 1 + random_.below(4);
  const auto part = [&] {
    scope([&] { statements(size); });
    if (loops_ > 0 && random_.one_in(5)) {
      if (random_.one_in(2))
        b_.break_();
      else
        b_.continue_();
    } else if (may_return_ && random_.one_in(12)) {
      b_.return_();
    }
  };
  b_.begin_if(c);
  part();
  if (random_.one_in(2)) {
    b_.begin_else();
    part();
  }
  b_.end();
  uniform_ = was_uniform;
}

void Generator::counted_loop() {
  const DType type = random_.pick({DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                                   DType::u16, DType::u32, DType::u64});
  const bool down = is_signed_integer(type) && random_.one_in(2);
  const int distance = 1 + static_cast<int>(random_.below(3));
  const Register step = b_.integer(type, down ? -distance : distance);
  Register first, last;
  if (random_.one_in(4)) {  // to the edge of the type, where the next counter does not fit
    const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(type));
    const uint64_t edge = is_signed_integer(type) ? (mask >> 1) + (down ? 1 : 0) : mask;
    first = b_.bits(type, (down ? edge + 7 : edge - 7) & mask);
    last = b_.bits(type, edge);
  } else {
    const Register seven = b_.integer(type, 7);
    const Register a = value(type);
    first = b_.binary(Opcode::bit_and, a, seven);
    const Register b = value(type);
    last = b_.binary(Opcode::bit_and, b, seven);
  }
  const bool was_uniform = std::exchange(uniform_, false);
  ++loops_;
  const unsigned size = 1 + random_.below(4);
  const Register counter = b_.begin_for(first, last, step);
  scope([&] {
    keep(counter);
    statements(size);
  });
  b_.end();
  --loops_;
  uniform_ = was_uniform;
}

void Generator::open_loop() {
  const Register count = b_.variable(DType::u32);
  const Register zero = b_.integer(DType::u32, 0);
  b_.assign(count, zero);
  const Register seven = b_.integer(DType::u32, 7);
  const Register any = value(DType::u32);
  const Register limit = b_.binary(Opcode::bit_and, any, seven);
  const bool was_uniform = std::exchange(uniform_, false);
  ++loops_;
  const unsigned size = 1 + random_.below(4);
  b_.begin_loop();
  const Register one = b_.integer(DType::u32, 1);
  const Register next = b_.add(count, one);
  b_.assign(count, next);
  const Register done = b_.compare(Opcode::gt, count, limit);
  b_.if_(done, [&] { b_.break_(); });
  scope([&] { statements(size); });
  b_.end();
  --loops_;
  uniform_ = was_uniform;
}

// An if or a for that all threads of a block take alike, so that barriers may stand inside.
void Generator::uniform_region() {
  const unsigned loops = std::exchange(loops_, 0);  // nothing inside may leave it early
  const unsigned size = 1 + random_.below(4);
  if (random_.one_in(2)) {
    const DType type = random_.pick({DType::i32, DType::u64, DType::u8});
    const Register a = uniform_value(type);
    const Register b = uniform_value(type);
    const Register c = b_.lt(a, b);
    b_.begin_if(c);
    scope([&] { statements(size); });
    b_.begin_else();
    scope([&] { statements(size); });
  } else {
    const Register zero = b_.integer(DType::i32, 0);
    const Register end = b_.integer(DType::i32, 1 + random_.below(3));
    const Register one = b_.integer(DType::i32, 1);
    const Register counter = b_.begin_for(zero, end, one);
    scope([&] {
      keep(counter);
      statements(size);
    });
  }
  b_.end();
  loops_ = loops;
}

void Generator::shared_phase() {
  if (shared_.empty()) return operation();
  const Builder::Shared tile = random_.pick(shared_);
  const Register mine = value(tile.type);
  b_.store(tile, lane_, mine);
  b_.barrier();
  const Register other = index_below(block_threads_);
  const Register theirs = b_.load(tile, other);
  keep(theirs);
  b_.barrier();
}

void Generator::shared_atomics() {
  if (shared_counts_.empty()) return group_reduction();
  const Builder::Shared counts = shared_counts_[0];
  const Register first = value(counts.type);
  b_.store(counts, lane_, first);
  b_.barrier();
  Opcode op = random_.pick({Opcode::atomic_add, Opcode::atomic_min, Opcode::atomic_max,
                            Opcode::atomic_exchange, Opcode::atomic_cas});
  if (is_float(counts.type) && op == Opcode::atomic_add) op = Opcode::atomic_max;
  if (is_float(counts.type) && op == Opcode::atomic_cas) op = Opcode::atomic_exchange;
  const bool own = op == Opcode::atomic_cas || op == Opcode::atomic_exchange;
  const Register place = own ? lane_ : index_below(block_threads_);
  const Register operand = value(counts.type);
  if (op == Opcode::atomic_cas) {
    const Register desired = value(counts.type);
    keep(b_.atomic_cas(counts, place, operand, desired));
  } else {
    b_.atomic(op, counts, place, operand);  // what was there before depends on the order
  }
  b_.barrier();
  const Register other = index_below(block_threads_);
  keep(b_.load(counts, other));
  b_.barrier();
}

void Generator::group_reduction() {
  const Opcode op =
      random_.pick({Opcode::group_add, Opcode::group_mul, Opcode::group_min, Opcode::group_max});
  const DType type = draw_type(op);
  const Register mine = value(type);
  keep(b_.group(op, mine));
}

void Generator::global_atomic() {
  if (atomics_.empty()) return own_atomic();
  const Atomic atomic = random_.pick(atomics_);
  const Register index = index_below(atomic.count);
  // Whoever exchanges last, the same value stays.
  const Register operand = atomic.op == Opcode::atomic_exchange
                               ? b_.bits(atomic.array.type, is_float(atomic.array.type) ? 0 : 42)
                               : value(atomic.array.type);
  b_.atomic(atomic.op, atomic.array, index, operand);
}

// At a place of its own a thread may see what was there.
void Generator::own_atomic() {
  const Builder::Array output = random_.pick(outputs_);
  if (!accepts(Opcode::atomic_add, output.type)) return store_output();
  const Register slot = b_.integer(DType::u32, random_.below(kSlots));
  const Register index = b_.add(self_base_, slot);
  const Register a = value(output.type);
  if (is_integer(output.type) && random_.one_in(3)) {
    const Register b = value(output.type);
    keep(b_.atomic_cas(output, index, a, b));
    return;
  }
  const Opcode op = random_.pick(
      {Opcode::atomic_add, Opcode::atomic_min, Opcode::atomic_max, Opcode::atomic_exchange});
  keep(b_.atomic(op, output, index, a));
}

void Generator::store_output() {
  const Builder::Array output = random_.pick(outputs_);
  const Register slot = b_.integer(DType::u32, random_.below(kSlots));
  const Register index = b_.add(self_base_, slot);
  const Register what = value(output.type);
  const DType type = random_.pick({DType::u32, DType::i32, DType::u64, DType::i64});
  const Register converted = b_.convert(index, type);
  b_.store(output, converted, what);
}

void Generator::math_result() {
  if (functions_ == 6) return operation();
  Opcode op = Opcode::sqrt;
  while (op == Opcode::sqrt)
    op = static_cast<Opcode>(
        static_cast<uint32_t>(Opcode::exp) +
        random_.below(static_cast<uint32_t>(Opcode::pow) - static_cast<uint32_t>(Opcode::exp) + 1));
  const DType type = random_.pick({DType::f16, DType::bf16, DType::f32, DType::f32, DType::f64});
  const Register a = value(type);
  const Register b = op == Opcode::pow ? value(type) : Register{};
  const Register result = op == Opcode::pow ? b_.binary(op, a, b) : b_.unary(op, a);
  const auto output = add_array(fmt::format("math_{}_{}", functions_++, info(op).name), type,
                                Access::write, threads_, op);
  b_.store(output, self_, result);
}

RandomCase draw_case(uint64_t seed, FloatMode mode) { return Generator(seed, mode).draw(); }

}  // namespace hologram::isa::testing
