// A model's bytes -> results.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "onnx/model.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::testing {

inline Result<std::vector<kernels::Value>> run_model(const std::string& bytes,
                                                     std::vector<kernels::Value> inputs) {
  auto owner = std::make_shared<std::string>(bytes);
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(std::as_bytes(std::span(*owner)), owner));
  HOLOGRAM_TRY(const auto archive_bytes, compiler::compile(std::move(graph)));
  auto aligned = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(archive_bytes.size()));
  std::memcpy(aligned->data(), archive_bytes.data(), archive_bytes.size());
  HOLOGRAM_TRY(archive::Archive archive, archive::Archive::open(aligned->bytes(), aligned));
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(std::move(archive)));
  HOLOGRAM_TRY(const auto results, session.run(inputs));
  // The session's memory goes away.
  std::vector<kernels::Value> own;
  for (const kernels::Value& value : results) {
    HOLOGRAM_TRY(kernels::Value copy, value.clone());
    own.push_back(std::move(copy));
  }
  return own;
}

template <typename T>
kernels::Value given(const kernels::Dims& dims, std::vector<T> elements) {
  return *kernels::Tensor::from<T>(dims, std::span<const T>(elements));
}
inline kernels::Value flag(bool value) {
  auto tensor = *kernels::Tensor::allocate(DType::boolean, {});
  *tensor.as<bool>() = value;
  return tensor;
}
template <typename T>
std::vector<T> elements(const kernels::Value& value) {
  return {value.tensor.as<T>(), value.tensor.as<T>() + value.tensor.count()};
}

}  // namespace hologram::testing
