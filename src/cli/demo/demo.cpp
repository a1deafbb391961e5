// `hologram demo`: a kernel on its whole way, from text to a picture, and a model that outlines it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "cli/command.h"
#include "cli/demo/outline.h"
#include "codegen/compile.h"
#include "isa/text.h"
#include "isa/verifier.h"
#include "support/config.h"

namespace hologram::cli {
namespace {

// The Mandelbrot set: how many steps z = z*z + c takes to leave the circle of radius 2.
constexpr std::string_view kSource =
    R"(kernel mandelbrot(width: u32, height: u32, limit: u32, steps: write u32[])
  %i = global_id.x.u32
  %w = param width
  %h = param height
  %count = mul.u32 %w, %h
  %inside = lt.u32 %i, %count
  if %inside
    %x = rem.u32 %i, %w
    %y = div.u32 %i, %w
    %fx = convert.f32 %x
    %fy = convert.f32 %y
    %fw = convert.f32 %w
    %fh = convert.f32 %h
    %u = div.f32 %fx, %fw
    %v = div.f32 %fy, %fh
    %three = imm.f32 3.2
    %left = imm.f32 -2.3
    %two = imm.f32 2.4
    %top = imm.f32 -1.2
    %cr = fma.f32 %u, %three, %left
    %ci = fma.f32 %v, %two, %top
    %zr = imm.f32 0
    %zi = imm.f32 0
    %four = imm.f32 4
    %limit = param limit
    %n = imm.u32 0
    %one = imm.u32 1
    loop
      %rr = mul.f32 %zr, %zr
      %ii = mul.f32 %zi, %zi
      %size = add.f32 %rr, %ii
      %away = gt.f32 %size, %four
      %last = ge.u32 %n, %limit
      %done = or.bool %away, %last
      if %done
        break
      end
      %ri = mul.f32 %zr, %zi
      %ri2 = add.f32 %ri, %ri
      %zi = add.f32 %ri2, %ci
      %diff = sub.f32 %rr, %ii
      %zr = add.f32 %diff, %cr
      %n = add.u32 %n, %one
    end
    store steps[%i], %n
  end
end
)";

Result<Picture> draw(backends::Backend& backend, const backends::Kernel& kernel, uint32_t width,
                     uint32_t height, uint32_t limit) {
  Picture picture{width, height, limit, std::vector<uint32_t>(size_t{width} * height)};
  const backends::Argument arguments[] = {
      backends::Argument::scalar(width, "width"), backends::Argument::scalar(height, "height"),
      backends::Argument::scalar(limit, "limit"),
      backends::Argument::array(std::span(picture.steps), "steps")};
  constexpr uint32_t kBlock = 256;
  const backends::LaunchShape shape{{(width * height + kBlock - 1) / kBlock, 1, 1}, {kBlock, 1, 1}};
  HOLOGRAM_CHECK(backend.launch(kernel, shape, arguments));
  return picture;
}

void print(const Picture& picture) {
  constexpr std::string_view kShades = " .,:;-=+*%#@";
  for (uint32_t y = 0; y < picture.height; ++y) {
    std::string line = "    ";
    for (uint32_t x = 0; x < picture.width; ++x) {
      const uint32_t n = picture.steps[size_t{y} * picture.width + x];
      line += n >= picture.limit ? ' ' : kShades[1 + n % (kShades.size() - 1)];
    }
    fmt::print("{}\n", line);
  }
}

// A folder that is removed with what is in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "hologram-demo-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      return fail(ErrorCode::io_error, "cannot make a folder '{}'", pattern);
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

Status demo(const std::filesystem::path& keep) {
  HOLOGRAM_TRY(const Config config, load_config());
  HOLOGRAM_TRY(const auto backend, backends::create_backend(config));
  fmt::print("A kernel in the text form of the ISA ({} lines):\n\n",
             std::count(kSource.begin(), kSource.end(), '\n'));
  fmt::print("    {}\n    ...\n\n", kSource.substr(0, kSource.find('\n')));

  const Clock assembling;
  HOLOGRAM_TRY(const isa::Program program, isa::assemble(kSource));
  fmt::print("assemble   {:4} instructions, {} registers          {:9.3f} ms\n",
             program.body.size(), program.registers.size(), assembling.milliseconds());
  const Clock verifying;
  HOLOGRAM_CHECK(isa::verify(program));
  fmt::print("verify     types, assignment, nesting, parameters    {:9.3f} ms\n",
             verifying.milliseconds());

  HOLOGRAM_TRY(const codegen::Target target, codegen::Target::host());
  HOLOGRAM_CHECK(
      codegen::compile(program, target));  // the first call of a process also starts LLVM
  const Clock compiling;
  HOLOGRAM_TRY(const isa::NativeCode code, codegen::compile(program, target));
  fmt::print("compile    {} bytes of {} code             {:9.3f} ms\n", code.code.size(),
             code.level, compiling.milliseconds());

  HOLOGRAM_TRY(const auto interpreted, backend->load(program));
  HOLOGRAM_TRY(const auto native, backend->load(program, std::span(&code, 1)));
  constexpr uint32_t kWidth = 1200, kHeight = 800, kLimit = 200;
  HOLOGRAM_CHECK(draw(*backend, *native, kWidth, kHeight, 1));  // warm up
  const Clock interpreting;
  HOLOGRAM_TRY(const Picture slow, draw(*backend, *interpreted, kWidth, kHeight, kLimit));
  const double slow_ms = interpreting.milliseconds();
  const Clock running;
  HOLOGRAM_TRY(const Picture fast, draw(*backend, *native, kWidth, kHeight, kLimit));
  const double fast_ms = running.milliseconds();
  fmt::print("interpret  {} x {} pixels, the reference        {:9.3f} ms\n", kWidth, kHeight,
             slow_ms);
  fmt::print(
      "run        the same, native, {} thread{}             {:9.3f} ms  ({:.0f} times as fast)\n",
      backend->capabilities().threads, backend->capabilities().threads == 1 ? " " : "s", fast_ms,
      slow_ms / fast_ms);
  if (slow.steps != fast.steps)
    return fail(ErrorCode::internal, "the native code's answer differs from the interpreter's");
  fmt::print("compare    every one of {} values is the same\n\n", fast.steps.size());
  HOLOGRAM_TRY(const Picture small, draw(*backend, *native, 76, 24, 48));
  print(small);
  fmt::print("\n");

  if (keep.empty()) {
    HOLOGRAM_TRY(const TemporaryFolder folder, TemporaryFolder::create());
    return demonstrate_model(folder.path(), fast, small);
  }
  std::error_code failed;
  std::filesystem::create_directories(keep, failed);
  if (failed)
    return fail(ErrorCode::io_error, "cannot make '{}': {}", keep.string(), failed.message());
  HOLOGRAM_CHECK(demonstrate_model(keep, fast, small));
  fmt::print("\nThe model and its archive are in {}.\n", keep.string());
  return {};
}

}  // namespace

void add_demo(Commands& commands) {
  auto keep = std::make_shared<std::filesystem::path>();
  CLI::App* const command = commands.add(
      "demo", "A kernel and a model on their whole way, and what they draw",
      "  hologram demo\n  hologram demo --keep build/demo", [keep] { return demo(*keep); });
  command->add_option("--keep", *keep, "Leave the model and its archive in this folder");
}

}  // namespace hologram::cli
