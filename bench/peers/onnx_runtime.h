// OnnxRuntime: the peer, loaded at run time with dlopen; its C interface is declared here by hand.
//
// Nothing of it is linked or shipped. The library is searched in the folder HOLOGRAM_ORT_LIB, then
// in node_modules/onnxruntime-node under the given folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"
#include "support/result.h"

namespace hologram::peers {

// A tensor on its way in or out. A dimension of -1 is one the model leaves open.
struct PeerTensor {
  std::string name;
  DType type = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

class OnnxRuntime {
 public:
  static Result<std::shared_ptr<OnnxRuntime>> load(std::span<const std::filesystem::path> folders);
  ~OnnxRuntime();

  class Session;
  // One session on `threads` threads with all of its optimisations.
  Result<std::unique_ptr<Session>> open(const std::filesystem::path& model, int threads);

  std::string version() const;

 private:
  OnnxRuntime() = default;
  Status check(void* status, const char* action) const;

  void* library_ = nullptr;
  const void* const* api_ = nullptr;
  const char* version_ = "";
  void* environment_ = nullptr;
  friend class Session;
};

class OnnxRuntime::Session {
 public:
  ~Session();
  // Tensors only; a model with sequences or optionals at its border is refused.
  const std::vector<PeerTensor>& inputs() const { return inputs_; }    // without data
  const std::vector<PeerTensor>& outputs() const { return outputs_; }  // without data

  Result<std::vector<PeerTensor>> run(std::span<const PeerTensor> inputs);
  // The same without copying results out: what a measurement times.
  Status run_only(std::span<const PeerTensor> inputs);

 private:
  friend class OnnxRuntime;
  explicit Session(OnnxRuntime& peer) : peer_(peer) {}
  Status describe();
  Result<std::vector<void*>> run_raw(std::span<const PeerTensor> inputs);

  OnnxRuntime& peer_;
  void* session_ = nullptr;
  std::vector<PeerTensor> inputs_, outputs_;
};

}  // namespace hologram::peers
