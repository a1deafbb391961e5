#include "runtime/kernel_function.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include "isa/interpreter.h"

namespace hologram::runtime {

KernelArgument::KernelArgument(const Tensor& tensor)
    : KernelArgument(tensor.type(), tensor.address(), tensor.dims(), tensor.writable()) {
  if (!tensor.is_contiguous())
    problem = fmt::format("{} is a view with gaps; pass its contiguous()", tensor.to_string());
}

KernelArgument::KernelArgument(DType type, const void* address, const Dims& shape, bool writable)
    : dims(shape) {
  uint64_t count = 1;
  for (int64_t n : shape) count *= static_cast<uint64_t>(n);
  argument = backends::Argument::array_of(type, address, count, writable);
}

struct KernelFunction::State {
  Parts parts;
  std::optional<isa::Interpreter> launch;
  std::mutex mutex;
  std::vector<std::pair<std::shared_ptr<backends::Backend>, std::unique_ptr<backends::Kernel>>>
      loaded;

  // Kernels go before the backend they were loaded on.
  ~State() {
    for (auto& [backend, kernel] : loaded) kernel.reset();
  }

  Result<const backends::Kernel*> load(const std::shared_ptr<backends::Backend>& backend) {
    std::lock_guard lock(mutex);
    for (const auto& [known, kernel] : loaded)
      if (known == backend) return kernel.get();
    HOLOGRAM_TRY(auto kernel, backend->load(parts.program, parts.native));
    loaded.emplace_back(backend, std::move(kernel));
    return loaded.back().second.get();
  }
};

Result<KernelFunction> KernelFunction::create(Parts parts) {
  size_t parameters = parts.ranks.size();
  for (uint32_t rank : parts.ranks) parameters += rank > 1 ? rank : 0;
  if (parameters != parts.program.parameters.size())
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': its ranks make {} parameters, the program has {}", parts.program.name,
                parameters, parts.program.parameters.size());
  KernelFunction function;
  function.state_ = std::make_shared<State>();
  if (parts.launch) {
    if (parts.launch->parameters.size() != parameters + 1)
      return fail(ErrorCode::invalid_argument, "kernel '{}': its launch has {} parameters, not {}",
                  parts.program.name, parts.launch->parameters.size(), parameters + 1);
    HOLOGRAM_TRY(auto launch, isa::Interpreter::create(*parts.launch));
    function.state_->launch.emplace(std::move(launch));
  }
  function.state_->parts = std::move(parts);
  return function;
}

Result<KernelFunction> KernelFunction::from_bundle(const KernelBundle& bundle,
                                                   std::string_view name, bool with_native) {
  HOLOGRAM_TRY(Parts parts, parts_of(bundle, name, with_native));
  return create(std::move(parts));
}

Result<KernelFunction::Parts> KernelFunction::parts_of(const KernelBundle& bundle,
                                                       std::string_view name, bool with_native) {
  const std::optional<size_t> index = bundle.find(name);
  if (!index) return fail(ErrorCode::not_found, "there is no kernel '{}'", name);
  Parts parts;
  HOLOGRAM_TRY(parts.program, bundle.program(*index));
  if (with_native) parts.native = bundle.native(*index);
  if (const auto launch = bundle.find(std::string(name) + "_launch")) {
    HOLOGRAM_TRY(parts.launch, bundle.program(*launch));
  }
  // Extents follow the source's own parameters and are named after their array.
  const auto& parameters = parts.program.parameters;
  const auto extents = [&](const isa::Parameter& p) {
    uint32_t count = 0;
    while (p.is_array && parts.program.find_parameter(fmt::format("{}_shape{}", p.name, count)))
      ++count;
    return count;
  };
  size_t hidden = 0;
  for (const isa::Parameter& p : parameters) hidden += extents(p);
  for (size_t i = 0; i + hidden < parameters.size(); ++i)
    parts.ranks.push_back(parameters[i].is_array ? std::max(extents(parameters[i]), 1u) : 0);
  return parts;
}

const isa::Program& KernelFunction::program() const { return state_->parts.program; }

std::string_view KernelFunction::name() const {
  return state_ ? std::string_view(state_->parts.program.name) : "";
}

size_t KernelFunction::parameter_count() const { return state_ ? state_->parts.ranks.size() : 0; }

std::string KernelFunction::signature() const {
  if (!state_) return "";
  std::string text = state_->parts.program.name + "(";
  for (size_t i = 0; i < state_->parts.ranks.size(); ++i) {
    const isa::Parameter& p = state_->parts.program.parameters[i];
    const uint32_t rank = state_->parts.ranks[i];
    text += fmt::format("{}{}: {}", i ? ", " : "", p.name, name_of(p.type));
    if (rank > 0) text += "[" + std::string(rank - 1, ',') + "]";
  }
  return text + ")";
}

Status KernelFunction::run(const std::shared_ptr<backends::Backend>& backend,
                           const isa::LaunchShape* shape,
                           std::span<const KernelArgument> arguments) const {
  if (!state_) return fail(ErrorCode::invalid_argument, "this KernelFunction holds no kernel");
  const Parts& parts = state_->parts;
  const isa::Program& program = parts.program;
  const size_t own = parts.ranks.size();
  if (arguments.size() != own)
    return fail(ErrorCode::invalid_argument, "{} takes {} arguments, {} were given", signature(),
                own, arguments.size());
  // By name where there are names; the launch checks types and the rest.
  std::vector<const KernelArgument*> placed(own, nullptr);
  for (size_t i = 0; i < own; ++i) {
    size_t at = i;
    if (!arguments[i].argument.name.empty()) {
      const auto found = program.find_parameter(arguments[i].argument.name);
      if (!found || *found >= own)
        return fail(ErrorCode::not_found, "{} has no parameter '{}'", signature(),
                    arguments[i].argument.name);
      at = *found;
    }
    if (placed[at])
      return fail(ErrorCode::invalid_argument, "{}: parameter '{}' is given twice", signature(),
                  program.parameters[at].name);
    placed[at] = &arguments[i];
  }
  std::vector<backends::Argument> full;
  std::vector<isa::Argument> host;
  for (size_t i = 0; i < own; ++i) {
    const KernelArgument& a = *placed[i];
    const std::string& name = program.parameters[i].name;
    if (!a.problem.empty())
      return fail(ErrorCode::invalid_argument, "{}: argument '{}': {}", signature(), name,
                  a.problem);
    if (a.argument.is_array && parts.ranks[i] > 0 && a.dims.size() != parts.ranks[i])
      return fail(ErrorCode::shape_mismatch,
                  "{}: argument '{}' has shape {}, expected {} dimension{}", signature(), name,
                  a.dims.to_string(), parts.ranks[i], parts.ranks[i] == 1 ? "" : "s");
    full.push_back(a.argument);
    full.back().name = name;
  }
  for (size_t i = 0; i < own; ++i)
    for (size_t axis = 0; parts.ranks[i] > 1 && axis < placed[i]->dims.size(); ++axis)
      full.push_back(backends::Argument::scalar(static_cast<uint64_t>(placed[i]->dims[axis]),
                                                program.parameters[full.size()].name));
  // What the launch sizes are computed from must be right before they are.
  std::vector<uint64_t> words(full.size()), lengths(full.size());
  HOLOGRAM_CHECK(backends::place_arguments(program.name, program.parameters, full, words.data(),
                                           lengths.data()));
  HOLOGRAM_TRY(const backends::Kernel* kernel, state_->load(backend));
  if (shape) return backend->launch(*kernel, *shape, full);

  isa::LaunchShape sizes;
  if (state_->launch) {
    std::array<uint64_t, 6> asked{};
    static std::byte nowhere[64];  // an empty array may have no address; nothing is read from it
    for (size_t i = 0; i < full.size(); ++i) {
      if (i == own) host.push_back(isa::Argument::array(std::span<uint64_t>(asked)));
      void* address = reinterpret_cast<void*>(words[i]);
      host.push_back(full[i].is_array
                         ? isa::Argument::array(address ? address : nowhere, lengths[i])
                         : isa::Argument{nullptr, 0, words[i]});
    }
    if (own == full.size()) host.push_back(isa::Argument::array(std::span<uint64_t>(asked)));
    HOLOGRAM_CHECK(in_context(state_->launch->run({}, host, {.parallel = false}),
                              [&] { return fmt::format("launch sizes of '{}'", program.name); }));
    for (size_t axis = 0; axis < 3; ++axis) {
      const uint64_t threads = asked[axis], block = asked[3 + axis];
      if (block == 0 || block > isa::kMaxBlockThreads)
        return fail(ErrorCode::verify_error, "{}: its launch asks for a block of {}", signature(),
                    block);
      const uint64_t blocks = threads / block + (threads % block != 0);
      if (blocks > std::numeric_limits<uint32_t>::max())
        return fail(ErrorCode::out_of_range, "{}: {} threads along axis {} are too many",
                    signature(), threads, axis);
      sizes.grid[axis] = static_cast<uint32_t>(blocks);
      sizes.block[axis] = static_cast<uint32_t>(block);
      if (blocks == 0) return {};  // nothing to do
    }
  }
  return backend->launch(*kernel, sizes, full);
}

}  // namespace hologram::runtime
