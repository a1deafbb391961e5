#include "cli/model_weights.h"

#include <protozero/exception.hpp>
#include <set>

#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

using holotensor::ModelInput;
using holotensor::ModelTensor;
using holotensor::SharedBytes;

class OnnxInput final : public ModelInput {
 public:
  static Result<std::unique_ptr<ModelInput>> open(const std::filesystem::path& path) {
    HOLOGRAM_TRY(FileMap map, FileMap::open(path));
    auto file = std::make_shared<const FileMap>(std::move(map));
    auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    std::unique_ptr<OnnxInput> input(new OnnxInput(file, std::move(folder)));
    try {
      input->model_ = onnx::read_model_proto(
          {reinterpret_cast<const char*>(file->bytes().data()), file->size()});
    } catch (const protozero::exception& error) {
      return fail(ErrorCode::corrupt, "malformed protobuf: {}", error.what());
    }
    if (!input->model_.has_graph) {
      return fail(ErrorCode::corrupt, "not an ONNX model: it has no graph");
    }
    HOLOGRAM_CHECK(input->list());
    return input;
  }

  const std::vector<ModelTensor>& tensors() const override { return tensors_; }

  Result<SharedBytes> read(size_t index) const override {
    const Source& source = sources_[index];
    const auto place = [&] { return fmt::format("tensor '{}'", tensors_[index].name); };
    HOLOGRAM_TRY(
        const kernels::Tensor tensor,
        in_context(source.dense ? reader_.read(*source.dense) : reader_.read(*source.sparse),
                   place));
    // A map or memory of its own, kept by the owner in either case.
    return SharedBytes{{tensor.data, static_cast<size_t>(tensor.bytes())}, tensor.owner};
  }

 private:
  struct Source {
    const onnx::TensorProto* dense = nullptr;
    const onnx::SparseTensorProto* sparse = nullptr;
  };

  OnnxInput(std::shared_ptr<const FileMap> file, std::filesystem::path folder)
      : file_(file), reader_(file, std::move(folder)) {}

  Status add(std::string_view name, int32_t type, const std::vector<int64_t>& dims, Source source) {
    const auto dtype = onnx::dtype_from_onnx(type);
    if (!dtype) {
      return fail(ErrorCode::corrupt, "tensor '{}' has the unknown element type {}", name, type);
    }
    if (*dtype == DType::string || !names_.insert(std::string(name)).second) return {};
    tensors_.push_back({std::string(name), *dtype, dims});
    sources_.push_back(source);
    return {};
  }

  Status list() {
    const onnx::GraphProto& graph = model_.graph;
    for (const auto& tensor : graph.initializers) {
      HOLOGRAM_CHECK(add(tensor.name, tensor.data_type, tensor.dims, {.dense = &tensor}));
    }
    for (const auto& tensor : graph.sparse_initializers) {
      HOLOGRAM_CHECK(
          add(tensor.values.name, tensor.values.data_type, tensor.dims, {.sparse = &tensor}));
    }
    for (const auto& node : graph.nodes) {
      if (node.op != "Constant" || node.outputs.empty()) continue;
      for (const auto& attribute : node.attributes) {
        if (attribute.name != "value" || attribute.tensors.empty()) continue;
        const auto& tensor = attribute.tensors.front();
        HOLOGRAM_CHECK(
            add(node.outputs.front(), tensor.data_type, tensor.dims, {.dense = &tensor}));
      }
    }
    return {};
  }

  std::shared_ptr<const FileMap> file_;
  mutable onnx::TensorReader reader_;  // remembers the external files it has mapped
  onnx::ModelProto model_;
  std::vector<ModelTensor> tensors_;
  std::vector<Source> sources_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::unique_ptr<ModelInput>> open_model_weights(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") return holotensor::safetensors_input(path);
  if (extension == ".onnx") {
    return in_context(OnnxInput::open(path), [&] { return path.string(); });
  }
  return fail(ErrorCode::unsupported,
              "{}: the weights of .safetensors and .onnx files can be read, not those of '{}'",
              path.string(), extension.empty() ? "no extension" : extension);
}

}  // namespace hologram::cli
