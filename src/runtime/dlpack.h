// DLPack: tensors shared in place with other libraries, both ways, without copying.
//
// The structures below are DLPack's public C ABI (versions 0.8 and 1.0), laid out as its
// specification describes. Ownership: whoever receives a managed tensor calls its deleter once.
#pragma once

#include <cstdint>

#include "runtime/executor.h"
#include "runtime/tensor.h"

extern "C" {

enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLWebGPU = 15 };

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // extern "C"

namespace hologram::runtime {

inline constexpr uint64_t kDLPackReadOnly = 1;  // a bit of DLManagedTensorVersioned::flags

// A view that keeps the tensor's storage until its deleter is called. Refused for tensors outside
// host memory. The unversioned form has no way to say read-only, so it refuses such a tensor.
Result<DLManagedTensor*> to_dlpack(const Tensor& tensor);
Result<DLManagedTensorVersioned*> to_dlpack_versioned(const Tensor& tensor);

// A tensor in place, on the executor's backend. On success the tensor owns `managed` and calls its
// deleter when the last view is gone; on failure the caller still owns it.
Result<Tensor> from_dlpack(const Executor& executor, DLManagedTensor* managed);
Result<Tensor> from_dlpack(const Executor& executor, DLManagedTensorVersioned* managed);

}  // namespace hologram::runtime
