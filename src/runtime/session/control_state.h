// ControlState: the memory of an If, Loop, Scan or SequenceMap between its turns and runs. A step
// that has run once with some shapes allocates nothing when it runs with them again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "support/aligned.h"
#include "support/function_ref.h"

namespace hologram::runtime {

// As many strings as needed of a list that keeps what they have grown to; all are empty.
Result<kernels::Tensor> empty_strings(const std::shared_ptr<std::vector<std::string>>& list,
                                      const kernels::Dims& dims);

// Memory for values that outlive a step or a turn. What no value claims any more is used again.
class BlockPool {
 public:
  Result<kernels::Tensor> take(DType dtype, const kernels::Dims& dims);
  // A copy in memory of this pool; sequences are shared, their elements claim their memory.
  Result<kernels::Value> copy(const kernels::Value& value);
  // An empty list for a sequence. Lists that nobody uses any more let go of their elements.
  std::shared_ptr<std::vector<kernels::Value>> list();
  // Unused lists let go of their elements.
  void clear();

 private:
  Result<kernels::Tensor> take_strings(const kernels::Dims& dims);

  // Blocks of one size. A value takes one of its own size only, so that a run needs as many of
  // each as the one before it, whatever the order.
  struct Blocks {
    size_t size;
    std::vector<std::shared_ptr<AlignedBytes>> all;
    size_t next = 0;  // where to look first
  };
  Blocks& blocks_of(size_t bytes);

  std::vector<Blocks> blocks_;
  std::vector<std::shared_ptr<std::vector<std::string>>> strings_;
  std::vector<std::shared_ptr<std::vector<kernels::Value>>> lists_;
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
  AlignedBytes bytes_;                // one part after another; keeps what it has grown to
  std::vector<std::string> strings_;  // instead; as many as there have been
};

struct ControlState {
  BlockPool pool;
  std::vector<kernels::Value> carried;
  std::vector<kernels::Tensor> scanned;
  std::vector<size_t> axes;
  std::vector<Stack> collected, batches;
  std::vector<std::shared_ptr<std::vector<kernels::Value>>> sequences;  // results

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
