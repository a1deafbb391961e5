// Kernels that look elements up where an input names them.
#include "backends/cpu/kernels/indexing.h"

#include <mutex>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/unpacked.h"

namespace hologram::kernels {
namespace {

constexpr int64_t kPiece = 16 * 1024;

auto outside(int64_t index, int64_t size) {
  return fail(ErrorCode::out_of_range, "index {} of an axis of {}", index, size);
}

// out[i] = the run of elements at offsets[i] * run.
Status copy_runs(KernelContext& c, const Tensor& in, std::span<const int64_t> offsets, int64_t run,
                 const Tensor& out) {
  if (out.count() == 0) return {};
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    const T* from = in.as<T>();
    T* to = out.as<T>();
    c.threads().parallel_for(
        offsets.size(), std::max<int64_t>(1, kPiece / run), [&](size_t begin, size_t end) {
          if (run == 1)
            for (size_t i = begin; i < end; ++i) to[i] = from[offsets[i]];
          else
            for (size_t i = begin; i < end; ++i)
              std::copy_n(from + offsets[i] * run, run, to + static_cast<int64_t>(i) * run);
        });
    return {};
  });
}

Status gather(KernelContext& c) {
  const Tensor &in = c.input(0), &indices = c.input(1);
  const size_t rank = in.dims.rank();
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, rank));
  if (rank - 1 + indices.dims.rank() > kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}",
                rank - 1 + indices.dims.rank(), kMaxRank);
  Dims dims;
  for (size_t i = 0; i < axis; ++i) dims.push_back(in.dims[i]);
  for (int64_t dim : indices.dims) dims.push_back(dim);
  for (size_t i = axis + 1; i < rank; ++i) dims.push_back(in.dims[i]);
  HOLOGRAM_TRY(const auto chosen, read_indices(c, indices, in.dims[axis]));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const int64_t outer = in.dims.product(0, axis), run = in.dims.product(axis + 1, rank);
  const int64_t count = static_cast<int64_t>(chosen.size()), size = in.dims[axis];
  if (out.count() == 0) return {};
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(
        outer * count, std::max<int64_t>(1, kPiece / run), [&](size_t begin, size_t end) {
          int64_t o = static_cast<int64_t>(begin) / count, k = static_cast<int64_t>(begin) % count;
          for (size_t i = begin; i < end; ++i) {
            std::copy_n(in.as<T>() + (o * size + chosen[k]) * run, run,
                        out.as<T>() + static_cast<int64_t>(i) * run);
            if (++k == count) k = 0, ++o;
          }
        });
    return {};
  });
}

Status gather_elements(KernelContext& c) {
  const Tensor &in = c.input(0), &indices = c.input(1);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, in.dims.rank()));
  HOLOGRAM_TRY(const auto offsets, element_offsets(c, indices, in.dims, axis));
  HOLOGRAM_TRY(Tensor out, c.output(0, indices.dims));
  return copy_runs(c, in, offsets, 1, out);
}

Status gather_nd(KernelContext& c) {
  const Tensor &in = c.input(0), &indices = c.input(1);
  const int64_t batch = c.integer("batch_dims");
  const size_t rank = in.dims.rank(), q = indices.dims.rank();
  if (batch < 0 || static_cast<size_t>(batch) >= std::min(rank, q))
    return fail(ErrorCode::out_of_range, "batch_dims {} of data {} and indices {}", batch,
                in.dims.to_string(), indices.dims.to_string());
  for (int64_t i = 0; i < batch; ++i)
    if (in.dims[i] != indices.dims[i])
      return fail(ErrorCode::shape_mismatch, "data {} and indices {} differ in batch axis {}",
                  in.dims.to_string(), indices.dims.to_string(), i);
  HOLOGRAM_TRY(const auto offsets, tuple_offsets(c, indices, in.dims, batch));
  const size_t inner = static_cast<size_t>(batch + indices.dims.back());
  if (q - 1 + rank - inner > kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", q - 1 + rank - inner,
                kMaxRank);
  Dims dims;
  for (size_t i = 0; i + 1 < q; ++i) dims.push_back(indices.dims[i]);
  for (size_t i = inner; i < rank; ++i) dims.push_back(in.dims[i]);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  return copy_runs(c, in, offsets, in.dims.product(inner, rank), out);
}

constexpr Kernel kKernels[] = {
    {"Compress", unpacked<compress>},
    {"Gather", unpacked<gather>},
    {"GatherElements", unpacked<gather_elements>},
    {"GatherND", unpacked<gather_nd>},
    {"NonZero", unpacked<non_zero>},
    {"OneHot", unpacked<one_hot>},
    {"ScatterElements", unpacked<scatter_elements>},
    {"ScatterND", unpacked<scatter_nd>},
    {"TensorScatter", unpacked<tensor_scatter>},
    {"Trilu", unpacked<trilu>},
};

}  // namespace

Result<std::span<const int64_t>> read_indices(KernelContext& c, const Tensor& indices,
                                              int64_t size) {
  const int64_t count = indices.count();
  HOLOGRAM_TRY(auto chosen, c.scratch<int64_t>(count));
  HOLOGRAM_CHECK(dispatch_index(indices.dtype, [&]<typename T>() -> Status {
    const T* from = indices.as<T>();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = from[i];
      if (index < -size || index >= size) return outside(index, size);
      chosen[i] = index < 0 ? index + size : index;
    }
    return {};
  }));
  return std::span<const int64_t>(chosen);
}

Result<std::span<const int64_t>> element_offsets(KernelContext& c, const Tensor& indices,
                                                 const Dims& dims, size_t axis) {
  const size_t rank = dims.rank();
  if (indices.dims.rank() != rank)
    return fail(ErrorCode::shape_mismatch, "data {} and indices {} of another rank",
                dims.to_string(), indices.dims.to_string());
  for (size_t i = 0; i < rank; ++i)
    if (i != axis && indices.dims[i] > dims[i])
      return fail(ErrorCode::shape_mismatch, "indices {} are larger than data {} in axis {}",
                  indices.dims.to_string(), dims.to_string(), i);
  const int64_t count = indices.count(), size = dims[axis];
  HOLOGRAM_TRY(auto offsets, c.scratch<int64_t>(count));
  if (count == 0) return std::span<const int64_t>(offsets);
  const Dims strides = dims.strides();
  // Row by row: along the last axis an offset grows by one, or by nothing when it is `axis`.
  const int64_t run = indices.dims.back(), grow = axis + 1 == rank ? 0 : 1;
  Dims outer = indices.dims;
  outer.erase(rank - 1);
  std::mutex mutex;
  Status status;
  HOLOGRAM_CHECK(dispatch_index(indices.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(
        count / run, std::max<int64_t>(1, kPiece / run), [&](size_t begin, size_t end) {
          Odometer at(outer, static_cast<int64_t>(begin));
          for (size_t row = begin; row < end; ++row, at.next()) {
            int64_t base = 0;
            for (size_t i = 0; i + 1 < rank; ++i)
              if (i != axis) base += at.index[i] * strides[i];
            const T* from = indices.as<T>() + static_cast<int64_t>(row) * run;
            int64_t* to = offsets.data() + static_cast<int64_t>(row) * run;
            for (int64_t i = 0; i < run; ++i) {
              const int64_t index = from[i];
              if (index < -size || index >= size) {
                std::lock_guard lock(mutex);
                if (status) status = outside(index, size);
                return;
              }
              to[i] = base + i * grow + (index < 0 ? index + size : index) * strides[axis];
            }
          }
        });
    return {};
  }));
  HOLOGRAM_CHECK(std::move(status));
  return std::span<const int64_t>(offsets);
}

Result<std::span<const int64_t>> tuple_offsets(KernelContext& c, const Tensor& indices,
                                               const Dims& dims, size_t batch) {
  const size_t rank = indices.dims.rank();
  if (rank == 0) return fail(ErrorCode::shape_mismatch, "indices without an axis");
  const int64_t width = indices.dims.back();
  if (width < 0 || batch + static_cast<size_t>(width) > dims.rank())
    return fail(ErrorCode::shape_mismatch, "indices of {} coordinates into {}", width,
                dims.to_string());
  const int64_t count = indices.dims.product(0, rank - 1);
  const int64_t batches = dims.product(0, batch);
  const int64_t per_batch = batches == 0 ? 0 : count / batches;
  HOLOGRAM_TRY(auto offsets, c.scratch<int64_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = batch == 0 ? 0 : i / per_batch;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t size = dims[batch + k], index = integer_at(indices, i * width + k);
      if (index < -size || index >= size) return outside(index, size);
      offset = offset * size + (index < 0 ? index + size : index);
    }
    offsets[i] = offset;
  }
  return std::span<const int64_t>(offsets);
}

std::span<const Kernel> indexing_kernels() { return kKernels; }

}  // namespace hologram::kernels
