// `hologram kernels run`: one kernel on NumPy files.
#include <charconv>
#include <cstring>
#include <map>

#include "archive/kernels.h"
#include "cli/kernels.h"
#include "cli/kernels_compile.h"
#include "codegen/compile.h"
#include "lang/native/compile_kernel.h"
#include "runtime/executor.h"
#include "support/npy.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;
using runtime::Dims;
using runtime::KernelArgument;
using runtime::KernelFunction;

struct RunArguments {
  fs::path file;
  std::string kernel;
  std::vector<std::string> arguments, outputs;
  std::vector<uint32_t> grid, block;
};

Result<std::pair<std::string, std::string>> split(const std::string& text, const char* option) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return fail(ErrorCode::invalid_argument, "{} '{}': write NAME=VALUE", option, text);
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

// A number of the command line as a parameter's bits.
Result<uint64_t> scalar_bits(const isa::Parameter& p, const std::string& text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument, "--arg {}={}: not a value of {}", p.name, text,
                name_of(p.type));
  };
  const char *begin = text.data(), *end = begin + text.size();
  if (p.type == DType::boolean) {
    if (text == "true" || text == "True" || text == "1") return 1;
    if (text == "false" || text == "False" || text == "0") return 0;
    return bad();
  }
  if (is_float(p.type)) {
    double value = 0;
    if (const auto [at, error] = std::from_chars(begin, end, value);
        error != std::errc{} || at != end)
      return bad();
    switch (p.type) {
      case DType::f16:
        return f64_to_f16(value);
      case DType::bf16:
        return f64_to_bf16(value);
      case DType::f32:
        return backends::scalar_bits(static_cast<float>(value));
      default:
        return backends::scalar_bits(value);
    }
  }
  const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(p.type));
  if (is_unsigned_integer(p.type)) {
    uint64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || at != end || value > mask) return bad();
    return value;
  }
  int64_t value = 0;
  const auto [at, error] = std::from_chars(begin, end, value);
  const int64_t most = static_cast<int64_t>(mask >> 1);
  if (error != std::errc{} || at != end || value > most || value < -most - 1) return bad();
  return static_cast<uint64_t>(value) & mask;
}

Result<KernelFunction> from_archive(const fs::path& file, const std::string& name) {
  HOLOGRAM_TRY(const std::vector<std::byte> bytes, archive::read_kernels(file));
  HOLOGRAM_TRY(const runtime::KernelBundle bundle, runtime::KernelBundle::open(bytes));
  std::string only, names;
  for (size_t i = 0; i < bundle.size(); ++i) {
    if (bundle.name(i).ends_with("_launch")) continue;
    names += (names.empty() ? "" : ", ") + std::string(bundle.name(i));
    only = only.empty() ? std::string(bundle.name(i)) : "";
  }
  const std::string& wanted = name.empty() ? only : name;
  if (wanted.empty() || !bundle.find(wanted))
    return fail(ErrorCode::not_found, "say which kernel with --kernel: {} has {}", file.string(),
                names);
  HOLOGRAM_TRY(runtime::KernelFunction::Parts parts,
               KernelFunction::parts_of(bundle, wanted, false));
  HOLOGRAM_TRY(const codegen::Target target, codegen::Target::host());
  HOLOGRAM_TRY(isa::NativeCode native, codegen::compile(parts.program, target));
  parts.native.push_back(std::move(native));
  return KernelFunction::create(std::move(parts));
}

Result<KernelFunction> open_kernel(const RunArguments& arguments) {
  if (arguments.file.extension() == ".holo") return from_archive(arguments.file, arguments.kernel);
  HOLOGRAM_TRY(const auto kernels, compile_kernel_file(arguments.file));
  std::string names;
  for (const lang::CompiledKernel& k : kernels) {
    if (k.ir.name == arguments.kernel || (arguments.kernel.empty() && kernels.size() == 1))
      return lang::make_native(k);
    names += (names.empty() ? "" : ", ") + k.ir.name;
  }
  return fail(ErrorCode::not_found, "say which kernel with --kernel: {} has {}",
              arguments.file.string(), names);
}

// "c" or "c[32,64]": the array, and its shape where it was given.
Result<std::pair<std::string, std::optional<std::vector<int64_t>>>> output_shape(
    const std::string& text) {
  const size_t bracket = text.find('[');
  if (bracket == std::string::npos) return std::pair(text, std::optional<std::vector<int64_t>>());
  const auto shape = Shape::parse(text.substr(bracket));
  if (!shape)
    return fail(ErrorCode::invalid_argument, "--out {}: {}", text, shape.error().message());
  HOLOGRAM_TRY(std::vector<int64_t> dims, shape->to_vector());
  return std::pair(text.substr(0, bracket), std::optional(std::move(dims)));
}

Status run(const RunArguments& arguments) {
  HOLOGRAM_TRY(const KernelFunction kernel, open_kernel(arguments));
  const isa::Program& program = kernel.program();
  std::map<std::string, NpyArray> arrays;
  std::map<std::string, uint64_t> scalars;
  const NpyArray* like = nullptr;  // the first array: outputs take its shape
  for (const std::string& text : arguments.arguments) {
    HOLOGRAM_TRY(const auto pair, split(text, "--arg"));
    const auto& [name, value] = pair;
    const auto index = program.find_parameter(name);
    if (!index)
      return fail(ErrorCode::not_found, "--arg {}: {} has no parameter '{}'", text,
                  kernel.signature(), name);
    const isa::Parameter& p = program.parameters[*index];
    if (!p.is_array) {
      HOLOGRAM_TRY(scalars[name], scalar_bits(p, value));
      continue;
    }
    HOLOGRAM_TRY(NpyArray array, in_context(read_npy(value), [&] { return value; }));
    if (array.type != p.type)
      return fail(ErrorCode::type_mismatch, "--arg {}: the file holds {}, the parameter is {}",
                  text, name_of(array.type), name_of(p.type));
    const auto at = arrays.insert_or_assign(name, std::move(array)).first;
    if (!like) like = &at->second;
  }
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& text : arguments.outputs) {
    HOLOGRAM_TRY(const auto pair, split(text, "--out"));
    HOLOGRAM_TRY(const auto target, output_shape(pair.first));
    const auto& [name, shape] = target;
    const auto index = program.find_parameter(name);
    if (!index || !program.parameters[*index].is_array)
      return fail(ErrorCode::not_found, "--out {}: {} has no array '{}'", text, kernel.signature(),
                  name);
    files.emplace_back(name, pair.second);
    if (arrays.contains(name)) continue;
    if (!shape && !like)
      return fail(ErrorCode::invalid_argument,
                  "--out {}: no --arg is an array to take the shape from; write --out \"{}[N]={}\"",
                  text, name, pair.second);
    NpyArray array;
    array.type = program.parameters[*index].type;
    array.shape = shape ? *shape : like->shape;
    array.data.resize(array.element_count() * size_of(array.type));
    arrays[name] = std::move(array);
  }
  std::vector<KernelArgument> list;
  for (const isa::Parameter& p : program.parameters) {
    if (list.size() == kernel.parameter_count()) break;  // extents come by themselves
    if (!p.is_array) {
      const auto found = scalars.find(p.name);
      if (found == scalars.end())
        return fail(ErrorCode::invalid_argument, "--arg {}=VALUE is missing; the kernel is {}",
                    p.name, kernel.signature());
      list.push_back(backends::Argument::scalar_of(p.type, found->second));
      continue;
    }
    const auto found = arrays.find(p.name);
    if (found == arrays.end())
      return fail(ErrorCode::invalid_argument,
                  "--arg {0}=FILE.npy or --out {0}=FILE.npy is missing; the kernel is {1}", p.name,
                  kernel.signature());
    NpyArray& array = found->second;
    static std::byte nowhere[64];
    list.push_back({array.type, array.data.empty() ? nowhere : array.data.data(),
                    Dims(std::span<const int64_t>(array.shape)), true});
  }
  HOLOGRAM_TRY(const runtime::Executor executor, runtime::Executor::create());
  if (!executor.backend().capabilities().host_memory)
    return fail(ErrorCode::unsupported, "kernels run on NumPy files works on the cpu backend");
  std::optional<isa::LaunchShape> shape;
  if (!arguments.grid.empty() || !arguments.block.empty()) {
    shape.emplace();
    std::copy(arguments.grid.begin(), arguments.grid.end(), shape->grid.begin());
    std::copy(arguments.block.begin(), arguments.block.end(), shape->block.begin());
  }
  HOLOGRAM_CHECK(kernel.run(executor.shared_backend(), shape ? &*shape : nullptr, list));
  for (const auto& [name, file] : files) {
    HOLOGRAM_CHECK(write_npy(file, arrays[name]));
    fmt::print("{} written to {}\n", name, file);
  }
  return {};
}

}  // namespace

void add_kernels_run(Commands& commands, CLI::App* parent) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = commands.add(
      "run", "Run a kernel on NumPy files",
      "  hologram kernels run kernels/stdlib/vector/vector_add.py --arg a=a.npy --arg b=b.npy \\\n"
      "      --arg n=1024 --out c=c.npy\n"
      "An --out array that is no --arg is made of zeros, in the shape of the first --arg array or\n"
      "in its own: --out \"c[32,64]=c.npy\".",
      [arguments] { return run(*arguments); }, parent);
  command->add_option("file", arguments->file, "a kernel source (.py, .json) or archive (.holo)")
      ->required();
  command->add_option("--kernel", arguments->kernel, "which kernel, where the file has several");
  command->add_option("--arg", arguments->arguments, "NAME=FILE.npy or NAME=NUMBER; repeatable")
      ->type_name("NAME=VALUE");
  command->add_option("--out", arguments->outputs, "an array to write afterwards; repeatable")
      ->type_name("NAME=FILE.npy");
  command->add_option("--grid", arguments->grid, "blocks along x, y, z instead of launch()")
      ->delimiter(',')
      ->expected(1, 3);
  command->add_option("--block", arguments->block, "threads of a block along x, y, z")
      ->delimiter(',')
      ->expected(1, 3);
}

}  // namespace hologram::cli
