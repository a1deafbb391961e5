// Runs a compiled model on zeros:  example_session model.holo
#include <hologram/error.h>
#include <hologram/session.h>

#include <cstdio>
#include <cstring>

namespace {

using hologram::host::Dims;
using hologram::host::Tensor;
using hologram::host::Value;

// Zeros of an input's type; dimensions that the model leaves open are 1.
hologram::Result<Value> zeros(const hologram::PortInfo& port) {
  Dims dims;
  if (port.shape)
    for (const hologram::Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 1 : dim.value());
  HOLOGRAM_TRY(Tensor tensor, Tensor::allocate(port.dtype, dims));
  if (port.dtype != hologram::DType::string) std::memset(tensor.data, 0, tensor.bytes());
  return Value(std::move(tensor));
}

hologram::Status run(const char* path) {
  HOLOGRAM_TRY(const hologram::Session session, hologram::Session::open(path));
  std::vector<Value> inputs;
  for (const hologram::PortInfo& port : session.inputs()) {
    HOLOGRAM_TRY(Value value, zeros(port));
    inputs.push_back(std::move(value));
  }
  HOLOGRAM_TRY(const std::vector<Value> results, session.run(inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& tensor = results[i].tensor;
    fmt::print("{}: {} {}", session.outputs()[i].name, name_of(tensor.dtype),
               tensor.dims.to_string());
    if (tensor.dtype == hologram::DType::f32 && tensor.count() > 0)
      fmt::print(", first {:.3f}", tensor.as<float>()[0]);
    fmt::print("\n");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.holo\n", argv[0]);
    return 2;
  }
  if (const hologram::Status status = run(argv[1]); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
    return 2;
  }
  return 0;
}
