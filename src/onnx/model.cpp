#include "onnx/model.h"

#include <protozero/exception.hpp>

#include "onnx/import.h"
#include "support/file.h"

namespace hologram::onnx {
namespace {

Result<graph::Graph> read(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                          std::optional<std::filesystem::path> folder) {
  try {
    const ModelProto model =
        read_model_proto({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!model.has_graph) return fail(ErrorCode::corrupt, "not an ONNX model: it has no graph");
    TensorReader tensors(std::move(owner), std::move(folder));
    return import_model(model, tensors);
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::corrupt, "malformed protobuf: {}", e.what());
  }
}

}  // namespace

Result<graph::Graph> read_model(const std::filesystem::path& path) {
  auto read_it = [&]() -> Result<graph::Graph> {
    HOLOGRAM_TRY(FileMap map, FileMap::open(path));
    auto owner = std::make_shared<FileMap>(std::move(map));
    return read(owner->bytes(), owner,
                path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  };
  return in_context(read_it(), [&] { return path.string(); });
}

Result<graph::Graph> read_model(std::span<const std::byte> bytes,
                                std::shared_ptr<const void> owner) {
  return read(bytes, std::move(owner), std::nullopt);
}

}  // namespace hologram::onnx
