#include "bench/peers/onnx_runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace hologram::peers {
namespace {

// Version of the interface's table and the places in it that are used here.
constexpr uint32_t kApiVersion = 29;
enum Slot {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputTypeInfo = 33,
  kSessionGetOutputTypeInfo = 34,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithDataAsOrtValue = 49,
  kGetTensorMutableData = 51,
  kCastTypeInfoToTensorInfo = 55,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kAllocatorFree = 76,
  kGetAllocatorWithDefaultOptions = 78,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTypeInfo = 98,
  kReleaseTensorTypeAndShapeInfo = 99,
  kReleaseSessionOptions = 100,
};

struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

// Every function but the releases and GetErrorMessage returns a status, null when good.
template <typename... Args>
void* call(const void* const* api, Slot slot, Args... args) {
  return reinterpret_cast<void* (*)(Args...)>(const_cast<void*>(api[slot]))(args...);
}
void release(const void* const* api, Slot slot, void* object) {
  if (object) reinterpret_cast<void (*)(void*)>(const_cast<void*>(api[slot]))(object);
}

// The numbers are those of ONNX's TensorProto.
constexpr std::pair<int, DType> kTypes[] = {
    {1, DType::f32},  {2, DType::u8},   {3, DType::i8},      {4, DType::u16},  {5, DType::i16},
    {6, DType::i32},  {7, DType::i64},  {9, DType::boolean}, {10, DType::f16}, {11, DType::f64},
    {12, DType::u32}, {13, DType::u64}, {16, DType::bf16},
};

Result<DType> type_from_onnx(int number) {
  for (const auto& [code, type] : kTypes)
    if (code == number) return type;
  return fail(ErrorCode::unsupported, "the peer's element type {} is not compared", number);
}
int type_to_onnx(DType wanted) {
  for (const auto& [code, type] : kTypes)
    if (type == wanted) return code;
  return 0;
}

// Type and shape from a TensorTypeAndShapeInfo; releases it.
Result<PeerTensor> read_info(const void* const* api, void* info) {
  PeerTensor tensor;
  int type = 0;
  size_t rank = 0;
  call(api, kGetTensorElementType, static_cast<const void*>(info), &type);
  call(api, kGetDimensionsCount, static_cast<const void*>(info), &rank);
  tensor.shape.resize(rank);
  call(api, kGetDimensions, static_cast<const void*>(info), tensor.shape.data(), rank);
  HOLOGRAM_TRY(tensor.type, type_from_onnx(type));
  return tensor;
}

uint64_t count_of(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<uint64_t>(dim);
  return count;
}

}  // namespace

Status OnnxRuntime::check(void* status, const char* action) const {
  if (!status) return {};
  const auto message =
      reinterpret_cast<const char* (*)(const void*)>(const_cast<void*>(api_[kGetErrorMessage]));
  const std::string text = message(status);
  release(api_, kReleaseStatus, status);
  return fail(ErrorCode::unsupported, "ONNX Runtime cannot {}: {}", action, text);
}

Result<std::shared_ptr<OnnxRuntime>> OnnxRuntime::load(
    std::span<const std::filesystem::path> folders) {
  std::vector<std::filesystem::path> candidates;
  if (const char* folder = std::getenv("HOLOGRAM_ORT_LIB")) candidates.emplace_back(folder);
  for (const auto& folder : folders)
    candidates.push_back(folder / "node_modules/onnxruntime-node/bin/napi-v6/linux/x64");
  std::shared_ptr<OnnxRuntime> peer(new OnnxRuntime);
  for (const auto& folder : candidates) {
    peer->library_ = dlopen((folder / "libonnxruntime.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (peer->library_) break;
  }
  if (!peer->library_)
    return fail(
        ErrorCode::not_found,
        "no libonnxruntime.so.1: run 'npm install onnxruntime-node@1.30.0 --ignore-scripts', or "
        "set HOLOGRAM_ORT_LIB to the folder that holds it");
  const auto get_base =
      reinterpret_cast<const ApiBase* (*)()>(dlsym(peer->library_, "OrtGetApiBase"));
  if (!get_base) return fail(ErrorCode::corrupt, "libonnxruntime.so.1 has no OrtGetApiBase");
  peer->version_ = get_base()->get_version();
  peer->api_ = get_base()->get_api(kApiVersion);
  if (!peer->api_)
    return fail(ErrorCode::unsupported, "ONNX Runtime {} has no interface version {}",
                peer->version_, kApiVersion);
  constexpr int kLogErrors = 3;
  HOLOGRAM_CHECK(peer->check(
      call(peer->api_, kCreateEnv, kLogErrors, "hologram", &peer->environment_), "start"));
  return peer;
}

OnnxRuntime::~OnnxRuntime() {
  if (api_) release(api_, kReleaseEnv, environment_);
  // The library stays loaded: it leaves threads behind that would run unmapped code.
}

std::string OnnxRuntime::version() const { return version_; }

Result<std::unique_ptr<OnnxRuntime::Session>> OnnxRuntime::open(const std::filesystem::path& model,
                                                                int threads) {
  void* options = nullptr;
  HOLOGRAM_CHECK(check(call(api_, kCreateSessionOptions, &options), "make options"));
  call(api_, kSetIntraOpNumThreads, options, threads);
  call(api_, kSetInterOpNumThreads, options, 1);
  std::unique_ptr<Session> session(new Session(*this));
  const Status status =
      check(call(api_, kCreateSession, static_cast<const void*>(environment_), model.c_str(),
                 static_cast<const void*>(options), &session->session_),
            "open the model");
  release(api_, kReleaseSessionOptions, options);
  HOLOGRAM_CHECK(status);
  HOLOGRAM_CHECK(session->describe());
  return session;
}

OnnxRuntime::Session::~Session() { release(peer_.api_, kReleaseSession, session_); }

Status OnnxRuntime::Session::describe() {
  const void* const* api = peer_.api_;
  void* allocator = nullptr;
  HOLOGRAM_CHECK(
      peer_.check(call(api, kGetAllocatorWithDefaultOptions, &allocator), "get an allocator"));
  for (const bool input : {true, false}) {
    size_t count = 0;
    call(api, input ? kSessionGetInputCount : kSessionGetOutputCount, session_, &count);
    for (size_t i = 0; i < count; ++i) {
      void* type = nullptr;
      const void* info = nullptr;
      call(api, input ? kSessionGetInputTypeInfo : kSessionGetOutputTypeInfo, session_, i, &type);
      call(api, kCastTypeInfoToTensorInfo, static_cast<const void*>(type), &info);
      if (!info) {
        release(api, kReleaseTypeInfo, type);
        return fail(ErrorCode::unsupported,
                    "only models whose inputs and outputs are tensors are compared");
      }
      Result<PeerTensor> tensor = read_info(api, const_cast<void*>(info));
      release(api, kReleaseTypeInfo, type);
      HOLOGRAM_CHECK(tensor);
      char* name = nullptr;
      call(api, input ? kSessionGetInputName : kSessionGetOutputName, session_, i, allocator,
           &name);
      tensor->name = name;
      call(api, kAllocatorFree, allocator, static_cast<void*>(name));
      (input ? inputs_ : outputs_).push_back(*std::move(tensor));
    }
  }
  return {};
}

Result<std::vector<void*>> OnnxRuntime::Session::run_raw(std::span<const PeerTensor> inputs) {
  const void* const* api = peer_.api_;
  constexpr int kArenaAllocator = 1, kDefaultMemory = 0;
  void* memory = nullptr;
  HOLOGRAM_CHECK(
      peer_.check(call(api, kCreateCpuMemoryInfo, kArenaAllocator, kDefaultMemory, &memory),
                  "describe memory"));
  std::vector<const char*> input_names, output_names;
  std::vector<void*> values;
  Status status;
  for (const PeerTensor& tensor : inputs) {
    void* value = nullptr;
    if (status)
      status = peer_.check(
          call(api, kCreateTensorWithDataAsOrtValue, static_cast<const void*>(memory),
               const_cast<std::byte*>(tensor.data.data()), tensor.data.size(), tensor.shape.data(),
               tensor.shape.size(), type_to_onnx(tensor.type), &value),
          "take an input");
    values.push_back(value);
    input_names.push_back(tensor.name.c_str());
  }
  for (const PeerTensor& tensor : outputs_) output_names.push_back(tensor.name.c_str());
  std::vector<void*> results(outputs_.size(), nullptr);
  if (status)
    status = peer_.check(call(api, kRun, session_, static_cast<const void*>(nullptr),
                              input_names.data(), values.data(), values.size(), output_names.data(),
                              output_names.size(), results.data()),
                         "run");
  for (void* value : values) release(api, kReleaseValue, value);
  release(api, kReleaseMemoryInfo, memory);
  HOLOGRAM_CHECK(status);
  return results;
}

Status OnnxRuntime::Session::run_only(std::span<const PeerTensor> inputs) {
  HOLOGRAM_TRY(const std::vector<void*> results, run_raw(inputs));
  for (void* value : results) release(peer_.api_, kReleaseValue, value);
  return {};
}

Result<std::vector<PeerTensor>> OnnxRuntime::Session::run(std::span<const PeerTensor> inputs) {
  const void* const* api = peer_.api_;
  HOLOGRAM_TRY(const std::vector<void*> results, run_raw(inputs));
  std::vector<PeerTensor> tensors;
  Status status;
  for (size_t i = 0; i < results.size(); ++i) {
    void* info = nullptr;
    if (status)
      status = peer_.check(
          call(api, kGetTensorTypeAndShape, static_cast<const void*>(results[i]), &info),
          "describe an output");
    if (status) {
      Result<PeerTensor> tensor = read_info(api, info);
      if (tensor) {
        void* data = nullptr;
        call(api, kGetTensorMutableData, results[i], &data);
        tensor->name = outputs_[i].name;
        tensor->data.resize(bytes_for(tensor->type, count_of(tensor->shape)));
        if (!tensor->data.empty()) std::memcpy(tensor->data.data(), data, tensor->data.size());
        tensors.push_back(*std::move(tensor));
      } else {
        status = std::unexpected(tensor.error());
      }
    }
    release(api, kReleaseTensorTypeAndShapeInfo, info);
    release(api, kReleaseValue, results[i]);
  }
  HOLOGRAM_CHECK(status);
  return tensors;
}

}  // namespace hologram::peers
