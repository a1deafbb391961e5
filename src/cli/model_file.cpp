#include "cli/model_file.h"

#include <cstring>

#include "cli/tensor_input.h"
#include "support/aligned.h"
#include "support/config.h"

namespace hologram::cli {

Result<compiler::CompileOptions> compile_options(const std::vector<std::string>& shapes) {
  compiler::CompileOptions options;
  options.debug = process_config().debug;
  for (const std::string& text : shapes) {
    const auto [name, dims] = split_assignment(text);
    if (name.empty())
      return fail(ErrorCode::invalid_argument, "'{}' is not NAME=1,3,224,224", text);
    HOLOGRAM_TRY(Shape shape, Shape::parse(dims));
    options.shapes.insert_or_assign(name, std::move(shape));
  }
  return options;
}

Result<runtime::Session> open_model(const std::filesystem::path& path,
                                    const std::vector<std::string>& shapes,
                                    const archive::OpenOptions& options,
                                    const runtime::WeightOptions& weights) {
  if (path.extension() != ".onnx") return runtime::Session::open(path, options, weights);
  HOLOGRAM_TRY(auto compiling, compile_options(shapes));
  HOLOGRAM_TRY(compiling.key, archive::KeyPair::generate());
  HOLOGRAM_TRY(const std::vector<std::byte> bytes, compiler::compile_onnx(path, compiling));
  return open_archive(bytes, compiling.key);
}

Result<runtime::Session> open_archive(const std::vector<std::byte>& bytes,
                                      const std::optional<archive::KeyPair>& key) {
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes.size()));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  std::vector<archive::PublicKey> keys;
  if (key) keys.push_back(key->public_key());
  auto trusted = std::make_shared<archive::TrustedKeys>(std::move(keys));
  HOLOGRAM_TRY(archive::Archive archive,
               archive::Archive::open(owner->bytes(), owner, {.trusted = std::move(trusted)}));
  return runtime::Session::open(std::move(archive));
}

std::string describe(const runtime::WeightStatus& weights) {
  const std::string size = fmt::format(
      "{:.1f}% of {:.2f} MB",
      100.0 * static_cast<double>(weights.bytes) / static_cast<double>(weights.all_bytes),
      static_cast<double>(weights.all_bytes) / 1e6);
  if (weights.exact) return fmt::format("weights exact, {}", size);
  return fmt::format("weights at {:.1f} dB or better ('{}'), {}", weights.snr_db,
                     weights.worst_tensor, size);
}

}  // namespace hologram::cli
