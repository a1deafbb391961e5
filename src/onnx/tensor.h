// Tensors of ONNX files -> kernels::Tensor.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "backends/cpu/kernels/tensor.h"
#include "graph/type.h"
#include "onnx/proto.h"
#include "support/file.h"

namespace hologram::onnx {

// ONNX's number for an element type.
std::optional<DType> dtype_from_onnx(int64_t code);

// Reads the tensors of one model. Weights stay where they are: in the model's own bytes or in
// external files beside it, which are mapped once each. A location outside the model's folder is
// refused.
class TensorReader {
 public:
  // `owner` keeps the bytes that the messages look at alive. Without a folder external data is
  // refused.
  TensorReader(std::shared_ptr<const void> owner, std::optional<std::filesystem::path> folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  Result<kernels::Tensor> read(const TensorProto& proto);
  Result<kernels::Tensor> read(const SparseTensorProto& proto);

 private:
  Result<kernels::Tensor> read_external(const TensorProto& proto, kernels::Tensor tensor);
  std::shared_ptr<const void> owner_;
  std::optional<std::filesystem::path> folder_;
  std::map<std::string, std::shared_ptr<const FileMap>> files_;
};

Result<graph::ValueType> read_type(const TypeProto& proto);

// Test data: one TensorProto, or a SequenceProto or OptionalProto of `type`, as a value.
Result<kernels::Value> read_value_file(const std::filesystem::path& path,
                                       const graph::ValueType& type);

}  // namespace hologram::onnx
