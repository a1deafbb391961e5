#include "runtime/dlpack.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "runtime/testing.h"

namespace hologram::runtime {
namespace {

using testing::executor;
using testing::value_of;

// The layout is an ABI between libraries: offsets on a 64-bit machine.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, ndim) == 16 &&
              offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

TEST(DLPack, ExportsAViewThatKeepsItsMemory) {
  DLManagedTensor* managed = nullptr;
  {
    const Tensor t = testing::make<float>({1, 2, 3, 4, 5, 6}, {2, 3});
    managed = value_of(to_dlpack(value_of(t.transpose())));
  }
  const DLTensor& dl = managed->dl_tensor;
  EXPECT_EQ(dl.ndim, 2);
  EXPECT_EQ(dl.shape[0], 3);
  EXPECT_EQ(dl.strides[0], 1);
  EXPECT_EQ(dl.strides[1], 3);
  EXPECT_EQ(dl.dtype.code, kDLFloat);
  EXPECT_EQ(dl.dtype.bits, 32);
  EXPECT_EQ(dl.device.device_type, kDLCPU);
  EXPECT_EQ(static_cast<float*>(dl.data)[4], 5);
  managed->deleter(managed);
}

TEST(DLPack, ImportsInPlaceAndCallsTheDeleterOnce) {
  static int deleted = 0;
  deleted = 0;
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 2}, strides[2] = {-3, 1};
  DLManagedTensor managed{};
  managed.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 12};
  managed.deleter = [](DLManagedTensor*) { ++deleted; };
  {
    const Tensor t = value_of(from_dlpack(executor(), &managed));
    const Tensor view = value_of(t.select(0, 1));
    EXPECT_EQ(value_of(t.to_vector<float>()), (std::vector<float>{3, 4, 0, 1}));
    data[1] = 7;
    EXPECT_EQ(value_of(view.to_vector<float>()), (std::vector<float>{0, 7}));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(DLPack, RoundTripsEveryType) {
  for (const DType type : {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                           DType::u16, DType::u32, DType::u64, DType::f16, DType::bf16, DType::f32,
                           DType::f64, DType::complex64}) {
    const Tensor t = value_of(executor().empty(type, {3, 0, 2}));
    DLManagedTensorVersioned* managed = value_of(to_dlpack_versioned(t));
    EXPECT_EQ(managed->version.major, 1u);
    const Tensor back = value_of(from_dlpack(executor(), managed));
    EXPECT_EQ(back.type(), type);
    EXPECT_EQ(back.dims(), t.dims());
  }
}

TEST(DLPack, KeepsReadOnlyTensorsReadOnly) {
  const float data[2] = {1, 2};
  const Tensor t = value_of(executor().borrow(std::span<const float>(data), {2}));
  EXPECT_FALSE(t.writable());
  EXPECT_REFUSED(unsupported, "use to_dlpack_versioned", to_dlpack(t));
  DLManagedTensorVersioned* managed = value_of(to_dlpack_versioned(t));
  EXPECT_EQ(managed->flags, kDLPackReadOnly);
  const Tensor back = value_of(from_dlpack(executor(), managed));
  EXPECT_FALSE(back.writable());
  EXPECT_REFUSED(invalid_argument, "read-only", back.view<float>());
  EXPECT_EQ(value_of(back.view<const float>())[1], 2);
  const float one[2] = {1, 1};
  EXPECT_REFUSED(invalid_argument, "read-only", back.copy_from(std::span<const float>(one)));
}

TEST(DLPack, RefusesWhatItCannotTake) {
  float data[4] = {};
  int64_t shape[1] = {4};
  DLManagedTensor managed{};
  managed.dl_tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const auto with = [&](auto change) {
    DLManagedTensor changed = managed;
    change(changed.dl_tensor);
    return from_dlpack(executor(), &changed);
  };
  EXPECT_REFUSED(unsupported, "device type 2",
                 with([](DLTensor& t) { t.device.device_type = kDLCUDA; }));
  EXPECT_REFUSED(unsupported, "2 lanes", with([](DLTensor& t) { t.dtype.lanes = 2; }));
  EXPECT_REFUSED(unsupported, "type code 0, 7 bits", with([](DLTensor& t) {
                   t.dtype = {kDLInt, 7, 1};
                 }));
  EXPECT_REFUSED(unsupported, "99 dimensions", with([](DLTensor& t) { t.ndim = 99; }));
  EXPECT_REFUSED(invalid_argument, "without data", with([](DLTensor& t) { t.data = nullptr; }));
  EXPECT_REFUSED(invalid_argument, "not aligned", with([](DLTensor& t) { t.byte_offset = 1; }));
  EXPECT_REFUSED(out_of_range, "passes 2^63", with([](DLTensor& t) {
                   static int64_t huge[1] = {INT64_MAX / 2};
                   t.strides = huge;
                 }));
  EXPECT_REFUSED(invalid_argument, "of shape [-1]", with([](DLTensor& t) {
                   static int64_t negative[1] = {-1};
                   t.shape = negative;
                 }));
  EXPECT_REFUSED(invalid_argument, "null",
                 from_dlpack(executor(), static_cast<DLManagedTensor*>(nullptr)));
  DLManagedTensorVersioned newer{};
  newer.version = {2, 0};
  EXPECT_REFUSED(unsupported, "version 2.0", from_dlpack(executor(), &newer));
}

}  // namespace
}  // namespace hologram::runtime
