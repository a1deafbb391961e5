// ControlState: the memory of an If, Loop, Scan or SequenceMap between its turns and runs. A step
// that has run once with some shapes allocates nothing when it runs with them again.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "support/aligned.h"
#include "support/function_ref.h"

namespace hologram::runtime {

// Memory for values that outlive a turn. A block that no value claims any more is used again.
class BlockPool {
 public:
  // Strings have memory of their own.
  Result<kernels::Tensor> take(DType dtype, const kernels::Dims& dims);
  // A copy in memory of this pool; sequences are shared, their elements own their memory.
  Result<kernels::Value> copy(const kernels::Value& value);

 private:
  std::vector<std::shared_ptr<AlignedBytes>> blocks_;
  size_t next_ = 0;  // where to look first
};

// Tensors of one shape, collected to become one tensor with another axis.
class Stack {
 public:
  void clear();
  Status add(const kernels::Value& part);

  struct Form {
    DType dtype;
    kernels::Dims empty;  // the shape of a part where there is none
    int64_t axis = 0;
    bool reversed = false;  // the last part first
    size_t length = 0;      // at least so many places; those without a part are zero
  };
  using Allocate = FunctionRef<Result<kernels::Tensor>(DType, const kernels::Dims&)>;
  Result<kernels::Tensor> finish(const Form& form, Allocate allocate) const;

 private:
  kernels::Tensor part(size_t index) const;

  size_t count_ = 0;
  DType dtype_ = DType::f32;
  kernels::Dims dims_;
  AlignedBytes bytes_;                    // one part after another; keeps what it has grown to
  std::vector<kernels::Tensor> strings_;  // instead
};

struct ControlState {
  BlockPool pool;
  std::vector<kernels::Value> carried;
  std::vector<kernels::Tensor> scanned;
  std::vector<size_t> axes;
  std::vector<Stack> collected, batches;
  // Results that are sequences; one that nothing else holds is filled again.
  std::vector<std::shared_ptr<std::vector<kernels::Value>>> sequences;

  // Lets go of values; memory stays.
  void clear();
  // `count` empty stacks.
  static void begin(std::vector<Stack>& stacks, size_t count);
};

// Copies `rows` runs of `run` elements, `from_step` and `to_step` elements apart.
void copy_rows(const kernels::Tensor& from, int64_t from_at, int64_t from_step,
               const kernels::Tensor& to, int64_t to_at, int64_t to_step, int64_t rows,
               int64_t run);
// Elements of this type are whole bytes, or strings.
Status check_addressable(DType dtype);

}  // namespace hologram::runtime
