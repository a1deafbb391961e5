#include "backends/backend.h"

#include <algorithm>
#include <array>
#include <string>

#include "isa/verifier.h"
#include "support/aligned.h"

namespace hologram::backends {
namespace {

// Words and lengths of a launch: on the stack for any reasonable program.
class Words {
 public:
  explicit Words(size_t count) {
    if (2 * count > inline_.size()) many_.resize(2 * count);
    words = many_.empty() ? inline_.data() : many_.data();
    lengths = words + count;
  }
  uint64_t* words;
  uint64_t* lengths;

 private:
  std::array<uint64_t, 64> inline_;
  std::vector<uint64_t> many_;
};

Status check_lengths(const Kernel& kernel, const LaunchShape& shape, const uint64_t* words,
                     const uint64_t* lengths) {
  if (kernel.bounds().empty()) return {};
  const auto& parameters = kernel.program().parameters;
  std::array<uint64_t, 32> some;
  std::vector<uint64_t> many;
  if (parameters.size() > some.size()) many.resize(parameters.size());
  uint64_t* needed = many.empty() ? some.data() : many.data();
  std::fill_n(needed, parameters.size(), 0);
  kernel.bounds().require(shape, words, needed);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].is_array && lengths[i] < needed[i])
      return fail(ErrorCode::out_of_range,
                  "kernel '{}': this grid accesses element {} of array '{}', which has {}",
                  kernel.program().name, needed[i] - 1, parameters[i].name, lengths[i]);
  return {};
}

Status check_range(std::string_view what, uint64_t size, uint64_t offset, uint64_t bytes) {
  if (offset <= size && bytes <= size - offset) return {};
  return fail(ErrorCode::out_of_range, "{} of {} bytes at offset {} of a buffer of {} bytes", what,
              bytes, offset, size);
}

}  // namespace

void Memory::reset() {
  if (backend_ && tag_ != kBorrowed) backend_->do_release(address_, size_, tag_);
  backend_ = nullptr;
  address_ = nullptr;
  size_ = 0;
  tag_ = kBorrowed;
}

// --- Memory --------------------------------------------------------------------------------------

Result<Memory> Backend::allocate(uint64_t bytes, Lifetime lifetime) {
  if (bytes > capabilities_.max_buffer_bytes)
    return fail(ErrorCode::resource_exhausted,
                "a buffer of {} bytes is larger than the limit of {} (max_buffer_size, "
                "HOLOGRAM_MAX_BUFFER_SIZE)",
                bytes, capabilities_.max_buffer_bytes);
  HOLOGRAM_TRY(const Block block, do_allocate(bytes, lifetime));
  return Memory(this, block.address, bytes, block.tag);
}

Status Backend::write(const Memory& to, uint64_t offset, std::span<const std::byte> from) {
  HOLOGRAM_CHECK(check_range("a write", to.size(), offset, from.size()));
  if (from.empty()) return {};
  return do_write(static_cast<std::byte*>(to.address()) + offset, from);
}

Status Backend::read(const Memory& from, uint64_t offset, std::span<std::byte> to) {
  HOLOGRAM_CHECK(check_range("a read", from.size(), offset, to.size()));
  if (to.empty()) return {};
  return do_read(static_cast<const std::byte*>(from.address()) + offset, to);
}

Status Backend::copy(const Memory& to, uint64_t to_offset, const Memory& from, uint64_t from_offset,
                     uint64_t bytes) {
  HOLOGRAM_CHECK(check_range("a copy from", from.size(), from_offset, bytes));
  HOLOGRAM_CHECK(check_range("a copy to", to.size(), to_offset, bytes));
  if (bytes == 0) return {};
  return do_copy(static_cast<std::byte*>(to.address()) + to_offset,
                 static_cast<const std::byte*>(from.address()) + from_offset, bytes);
}

// --- Programs ------------------------------------------------------------------------------------

Kernel::Kernel(isa::Program program) : program_(std::move(program)), bounds_(program_) {
  for (const isa::SharedArray& array : program_.shared) {
    const uint64_t size = size_of(array.type);
    shared_bytes_ = align_up(shared_bytes_, size) + size * array.count;
    if (array.count == 0) open_shared_size_ = size;
  }
}

Status Kernel::trapped(uint32_t trap) const {
  switch (trap) {
    case isa::kTrapDivisionByZero:
      return fail(ErrorCode::trap, "kernel '{}': integer division by zero", program_.name);
    case isa::kTrapZeroStep:
      return fail(ErrorCode::trap, "kernel '{}': a loop with a step of zero", program_.name);
    default:
      return fail(ErrorCode::trap, "kernel '{}': trap {}", program_.name, trap);
  }
}

Result<std::unique_ptr<Kernel>> Backend::load(isa::Program program,
                                              std::span<const isa::NativeCode> native) {
  HOLOGRAM_CHECK(
      in_context(isa::verify(program), [&] { return fmt::format("kernel '{}'", program.name); }));
  for (const isa::NativeCode& code : native) {
    if (code.abi_version != isa::kNativeAbiVersion)
      return fail(ErrorCode::unsupported,
                  "kernel '{}': native code for {} has ABI version {}, this runtime takes {}; "
                  "compile it again",
                  program.name, code.level, code.abi_version, isa::kNativeAbiVersion);
    if (code.entry_offset >= code.code.size() || code.words_offset >= code.code.size())
      return fail(ErrorCode::corrupt,
                  "kernel '{}': the entry of the native code for {} is at {} of {} bytes",
                  program.name, code.level, std::max(code.entry_offset, code.words_offset),
                  code.code.size());
  }
  return do_load(std::move(program), native);
}

Status Backend::check_shape(const Kernel& kernel, const LaunchShape& shape) const {
  const isa::Program& program = kernel.program();
  const auto [bx, by, bz] = shape.block;
  const auto [gx, gy, gz] = shape.grid;
  // Two 32-bit factors cannot overflow; the third is compared before it is multiplied.
  const uint64_t plane = uint64_t{bx} * by;
  const uint64_t limit = capabilities_.max_block_threads;
  if (plane == 0 || bz == 0 || plane > limit || plane * bz > limit)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': a block of {} x {} x {} threads; backend '{}' takes 1 to {}",
                program.name, bx, by, bz, capabilities_.backend, limit);
  const uint64_t sheet = uint64_t{gx} * gy;
  if (sheet != 0 && gz != 0 && sheet > capabilities_.max_blocks / gz)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': a grid of {} x {} x {} blocks; backend '{}' takes at most {}",
                program.name, gx, gy, gz, capabilities_.backend, capabilities_.max_blocks);
  if (shape.shared_bytes != 0 && !kernel.has_open_shared())
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': {} shared bytes are given, but it has no shared array of open length",
                program.name, shape.shared_bytes);
  if (kernel.has_open_shared() && shape.shared_bytes % kernel.open_shared_size() != 0)
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': {} shared bytes are no whole number of the {}-byte elements of '{}'",
                program.name, shape.shared_bytes, kernel.open_shared_size(),
                program.shared.back().name);
  if (shape.shared_bytes > capabilities_.max_shared_bytes ||
      kernel.shared_bytes() > capabilities_.max_shared_bytes - shape.shared_bytes)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': {} shared bytes declared and {} given; backend '{}' has {} a block",
                program.name, kernel.shared_bytes(), shape.shared_bytes, capabilities_.backend,
                capabilities_.max_shared_bytes);
  return {};
}

Status Backend::launch(const Kernel& kernel, const LaunchShape& shape,
                       std::span<const Argument> arguments) {
  const isa::Program& program = kernel.program();
  HOLOGRAM_CHECK(check_shape(kernel, shape));
  Words placed(program.parameters.size());
  HOLOGRAM_CHECK(
      place_arguments(program.name, program.parameters, arguments, placed.words, placed.lengths));
  HOLOGRAM_CHECK(check_lengths(kernel, shape, placed.words, placed.lengths));
  return do_launch(kernel, shape, placed.words, placed.lengths);
}

Result<std::unique_ptr<PreparedLaunch>> Backend::prepare(const Kernel& kernel,
                                                         const LaunchShape& shape,
                                                         std::span<const Argument> arguments) {
  const isa::Program& program = kernel.program();
  HOLOGRAM_CHECK(check_shape(kernel, shape));
  PreparedLaunch::Words words(program.parameters.size()), lengths(program.parameters.size());
  HOLOGRAM_CHECK(
      place_arguments(program.name, program.parameters, arguments, words.data(), lengths.data()));
  HOLOGRAM_CHECK(check_lengths(kernel, shape, words.data(), lengths.data()));
  return do_prepare(kernel, shape, std::move(words), std::move(lengths));
}

// --- PreparedLaunch ------------------------------------------------------------------------------

PreparedLaunch::PreparedLaunch(const Kernel& kernel, const LaunchShape& shape, Words words,
                               Words lengths)
    : kernel_(kernel), shape_(shape), words_(std::move(words)), lengths_(std::move(lengths)) {
  const auto& parameters = kernel.program().parameters;
  for (uint32_t i = 0; i < parameters.size(); ++i)
    slots_.push_back({parameters[i].is_array, kernel.bounds().depends_on(i), parameters[i].type,
                      size_of(parameters[i].type) - 1, 0});
  needed_.resize(parameters.size());
  update_lengths();
}

void PreparedLaunch::update_lengths() {
  std::ranges::fill(needed_, 0);
  kernel_.bounds().require(shape_, words_.data(), needed_.data());
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].least_length = needed_[i];
}

Status PreparedLaunch::set_bounding_scalar(uint32_t parameter, uint64_t bits) {
  const uint64_t before = std::exchange(words_[parameter], bits);
  if (Status enough = check_lengths(kernel_, shape_, words_.data(), lengths_.data()); !enough) {
    words_[parameter] = before;
    return enough;
  }
  update_lengths();
  return {};
}

Status PreparedLaunch::bad_array(uint32_t parameter, const void* address, uint64_t length) const {
  const isa::Program& program = kernel_.program();
  if (parameter >= slots_.size())
    return fail(ErrorCode::out_of_range, "kernel '{}' has {} parameters; there is no parameter {}",
                program.name, slots_.size(), parameter);
  const std::string& name = program.parameters[parameter].name;
  const Slot& slot = slots_[parameter];
  if (!slot.is_array)
    return fail(ErrorCode::type_mismatch, "kernel '{}': parameter '{}' is a scalar, not an array",
                program.name, name);
  if (length < slot.least_length)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': this grid accesses element {} of array '{}', which has {}",
                program.name, slot.least_length - 1, name, length);
  return fail(
      ErrorCode::invalid_argument,
      "kernel '{}': array '{}' of {} elements at {} has no address or is not aligned to its "
      "{}-byte elements",
      program.name, name, length, fmt::ptr(address), slot.alignment_mask + 1);
}

Status PreparedLaunch::bad_scalar(uint32_t parameter, DType given) const {
  const isa::Program& program = kernel_.program();
  if (parameter >= slots_.size())
    return fail(ErrorCode::out_of_range, "kernel '{}' has {} parameters; there is no parameter {}",
                program.name, slots_.size(), parameter);
  return fail(ErrorCode::type_mismatch, "kernel '{}': parameter '{}' is {} {}, not a scalar {}",
              program.name, program.parameters[parameter].name,
              slots_[parameter].is_array ? "an array of" : "a scalar",
              name_of(slots_[parameter].type), name_of(given));
}

// --- Built-in kernels ----------------------------------------------------------------------------

const Builtin* Backend::find_builtin(std::string_view name) const {
  const std::span<const Builtin> all = builtins();
  const auto at = std::ranges::lower_bound(all, name, {}, &Builtin::name);
  return at != all.end() && at->name == name ? &*at : nullptr;
}

Status Backend::call(std::string_view name, std::span<const Argument> arguments) {
  const Builtin* builtin = find_builtin(name);
  if (!builtin)
    return fail(ErrorCode::not_found, "backend '{}' has no built-in kernel '{}'",
                capabilities_.backend, name);
  return call(*builtin, arguments);
}

Status Backend::call(const Builtin& builtin, std::span<const Argument> arguments) {
  Words placed(builtin.parameters.size());
  HOLOGRAM_CHECK(
      place_arguments(builtin.name, builtin.parameters, arguments, placed.words, placed.lengths));
  if (builtin.check) HOLOGRAM_CHECK(builtin.check(placed.words, placed.lengths));
  return do_call(builtin, placed.words, placed.lengths);
}

}  // namespace hologram::backends
