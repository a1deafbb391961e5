#include "runtime/dlpack.h"

#include <memory>

namespace hologram::runtime {
namespace {

Result<DLDataType> to_dl_type(DType type) {
  const auto bits = static_cast<uint8_t>(bits_of(type));
  if (type == DType::boolean) return DLDataType{kDLBool, 8, 1};
  if (is_signed_integer(type)) return DLDataType{kDLInt, bits, 1};
  if (is_unsigned_integer(type)) return DLDataType{kDLUInt, bits, 1};
  if (type == DType::bf16) return DLDataType{kDLBfloat, bits, 1};
  if (is_float(type)) return DLDataType{kDLFloat, bits, 1};
  if (type == DType::complex64 || type == DType::complex128) return DLDataType{kDLComplex, bits, 1};
  return fail(ErrorCode::unsupported, "DLPack has no element type for {}", name_of(type));
}

Result<DType> from_dl_type(DLDataType type) {
  if (type.lanes == 1) {
    for (uint8_t code = 0; code < 64; ++code) {
      const std::optional<DType> ours = dtype_from_code(code);
      if (!ours || size_of(*ours) == 0) continue;
      const Result<DLDataType> theirs = to_dl_type(*ours);
      if (theirs && theirs->code == type.code && theirs->bits == type.bits) return *ours;
    }
  }
  return fail(ErrorCode::unsupported,
              "a DLPack tensor of type code {}, {} bits, {} lanes; supported are bool, int, uint, "
              "float, bfloat and complex of whole bytes and 1 lane",
              type.code, type.bits, type.lanes);
}

// What an exported tensor keeps alive until its deleter is called.
template <typename Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  Dims dims, strides;
};

template <typename Managed>
Result<Managed*> export_tensor(const Tensor& tensor) {
  if (!tensor.has_storage()) return fail(ErrorCode::invalid_argument, "a tensor without storage");
  if (!tensor.storage()->host_memory())
    return fail(ErrorCode::unsupported,
                "{} lies on backend '{}', not in host memory; copy it first", tensor.to_string(),
                tensor.storage()->backend()->capabilities().backend);
  HOLOGRAM_TRY(const DLDataType type, to_dl_type(tensor.type()));
  auto kept = std::make_unique<Export<Managed>>();
  kept->tensor = tensor;
  kept->dims = tensor.dims();
  kept->strides = tensor.strides();
  kept->managed.dl_tensor = {
      .data = tensor.address(),
      .device = {kDLCPU, 0},
      .ndim = static_cast<int32_t>(tensor.rank()),
      .dtype = type,
      .shape = &kept->dims[0],
      .strides = &kept->strides[0],
      .byte_offset = 0,
  };
  kept->managed.manager_ctx = kept.get();
  kept->managed.deleter = [](Managed* self) {
    delete static_cast<Export<Managed>*>(self->manager_ctx);
  };
  return &kept.release()->managed;
}

template <typename Managed>
Result<Tensor> import_tensor(const Executor& executor, Managed* managed, bool writable) {
  const DLTensor& theirs = managed->dl_tensor;
  const auto& capabilities = executor.backend().capabilities();
  if (theirs.device.device_type != kDLCPU || !capabilities.host_memory)
    return fail(
        ErrorCode::unsupported,
        "a DLPack tensor on device type {} for backend '{}'; only host memory (type 1) can be "
        "taken in place",
        theirs.device.device_type, capabilities.backend);
  if (theirs.ndim < 0 || theirs.ndim > static_cast<int32_t>(kMaxRank) ||
      (theirs.ndim > 0 && !theirs.shape))
    return fail(ErrorCode::unsupported, "a DLPack tensor of {} dimensions; 0 to {} are supported",
                theirs.ndim, kMaxRank);
  HOLOGRAM_TRY(const DType type, from_dl_type(theirs.dtype));
  const auto rank = static_cast<size_t>(theirs.ndim);
  const Dims dims{std::span<const int64_t>(theirs.shape, rank)};
  const Dims strides = theirs.strides ? Dims{std::span<const int64_t>(theirs.strides, rank)}
                                      : contiguous_strides(dims);
  const std::optional<int64_t> count = element_count(dims);
  if (!count)
    return fail(ErrorCode::invalid_argument, "a DLPack tensor of shape {}", dims.to_string());
  // The storage is what the tensor touches: from its lowest element to its highest.
  const auto size = static_cast<int64_t>(size_of(type));
  int64_t low = 0, high = 0, bytes = 0;
  for (size_t i = 0; *count != 0 && i < rank; ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(dims[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return fail(ErrorCode::out_of_range,
                  "a DLPack tensor {} with strides {} passes 2^63 elements", dims.to_string(),
                  strides.to_string());
  }
  if (__builtin_sub_overflow(high, low, &bytes) || __builtin_add_overflow(bytes, 1, &bytes) ||
      __builtin_mul_overflow(bytes, size, &bytes))
    return fail(ErrorCode::out_of_range, "a DLPack tensor {} with strides {} passes 2^63 bytes",
                dims.to_string(), strides.to_string());
  if (*count != 0 && !theirs.data)
    return fail(ErrorCode::invalid_argument, "a DLPack tensor of shape {} without data",
                dims.to_string());
  std::byte* base =
      theirs.data ? static_cast<std::byte*>(theirs.data) + theirs.byte_offset : nullptr;
  if (*count == 0) bytes = 0;
  if (reinterpret_cast<uintptr_t>(base) % static_cast<uintptr_t>(size) != 0)
    return fail(ErrorCode::invalid_argument, "a DLPack tensor at {} is not aligned to {} elements",
                fmt::ptr(base), name_of(type));
  auto storage =
      std::make_shared<Storage>(executor.shared_backend(), bytes == 0 ? base : base + low * size,
                                static_cast<uint64_t>(bytes), writable, managed, [](void* owner) {
                                  auto* self = static_cast<Managed*>(owner);
                                  if (self->deleter) self->deleter(self);
                                });
  return Tensor::over(std::move(storage), type, dims, strides, -low);
}

}  // namespace

Result<DLManagedTensor*> to_dlpack(const Tensor& tensor) {
  if (tensor.has_storage() && !tensor.writable())
    return fail(ErrorCode::unsupported,
                "{} is read-only, which this form of DLPack cannot say; use to_dlpack_versioned",
                tensor.to_string());
  return export_tensor<DLManagedTensor>(tensor);
}

Result<DLManagedTensorVersioned*> to_dlpack_versioned(const Tensor& tensor) {
  HOLOGRAM_TRY(DLManagedTensorVersioned * managed, export_tensor<DLManagedTensorVersioned>(tensor));
  managed->version = {1, 0};
  managed->flags = tensor.writable() ? 0 : kDLPackReadOnly;
  return managed;
}

Result<Tensor> from_dlpack(const Executor& executor, DLManagedTensor* managed) {
  if (!managed) return fail(ErrorCode::invalid_argument, "a null DLPack tensor");
  return import_tensor(executor, managed, true);
}

Result<Tensor> from_dlpack(const Executor& executor, DLManagedTensorVersioned* managed) {
  if (!managed) return fail(ErrorCode::invalid_argument, "a null DLPack tensor");
  if (managed->version.major != 1)
    return fail(ErrorCode::unsupported, "a DLPack tensor of version {}.{}; this build reads 1.x",
                managed->version.major, managed->version.minor);
  return import_tensor(executor, managed, (managed->flags & kDLPackReadOnly) == 0);
}

}  // namespace hologram::runtime
