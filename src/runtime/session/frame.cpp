#include "runtime/session/frame.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "support/hash.h"

namespace hologram::runtime {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {
constexpr uint32_t kNoBlock = ~uint32_t{0};
}  // namespace

Result<std::byte*> Scratch::take(size_t bytes) {
  const size_t size = align_up(std::max<size_t>(bytes, 1), kAlignment);
  while (current_ < blocks_.size() && blocks_[current_].size() - used_ < size) {
    ++current_;
    used_ = 0;
  }
  if (current_ == blocks_.size()) {
    // What is more than a little is whole huge pages: the first touch of one costs less than that
    // of the hundreds of small pages which it stands for.
    constexpr size_t kLittle = 1 << 20, kMuch = 4 << 20;
    size_t fresh = std::max<size_t>(size, 1 << 16);
    if (taken_ == 0) {
      // As large as all that goes: what fits there in pieces fits here.
      size_t all = 0;
      for (const AlignedBytes& block : blocks_) all += block.size();
      fresh = std::max(fresh, all);
      blocks_.clear();
      current_ = used_ = 0;
    }
    if (fresh > kLittle) fresh = std::max(fresh, kMuch);
    HOLOGRAM_TRY(AlignedBytes block, AlignedBytes::allocate(fresh));
    blocks_.push_back(std::move(block));
  }
  std::byte* result = blocks_[current_].data() + used_;
  used_ += size;
  taken_ += size;
  return result;
}

void Scratch::reset() { current_ = used_ = taken_ = 0; }

Result<std::unique_ptr<Frame>> Frame::create(const LoadedPlan& plan) {
  auto frame = std::make_unique<Frame>();
  frame->plan_ = &plan;
  frame->values_ = plan.initial;
  frame->block_of_.assign(plan.values.size(), kNoBlock);
  frame->strings_.resize(plan.values.size());
  frame->children_.resize(plan.child_frames);
  frame->controls_.resize(plan.child_frames);
  return frame;
}

void Frame::use(std::shared_ptr<const WeightSet> weights) {
  if (weights == weights_) return;
  weights_ = std::move(weights);
  for (const LoadedPlan::Weight& weight : plan_->weights) {
    Tensor& tensor = values_[weight.value].tensor;
    const Tensor& from = weights_->tensors[weight.tensor];
    tensor.data = from.data;
    tensor.owner = from.owner;
  }
  for (std::unique_ptr<Frame>& child : children_)
    if (child) child->use(weights_);
}

Status Frame::bind(const Binding& binding) {
  if (binding_ == &binding) return {};
  binding_ = nullptr;
  layout_ = plan_->layout < 0 ? &plan_->fixed : &binding.layouts[plan_->layout];
  if (arena_.size() < layout_->arena) {
    arena_ = AlignedBytes();  // first, so that both are never there together
    HOLOGRAM_TRY(arena_, AlignedBytes::allocate(layout_->arena));
    arena_is_fresh_ = true;
  }
  for (std::unique_ptr<Frame>& child : children_)
    if (child) HOLOGRAM_CHECK(child->bind(binding));
  binding_ = &binding;
  return {};
}

void Frame::bring_in(ThreadPool& threads) {
  arena_is_fresh_ = false;
#ifdef MADV_POPULATE_WRITE
  constexpr size_t kPiece = 2 << 20, kPage = 4096;  // a huge page; the least there is
  if (arena_.size() < kPiece / 2) return;
  const auto address = reinterpret_cast<uintptr_t>(arena_.data());
  const size_t skip = align_up(address, kPage) - address;
  const size_t size = (arena_.size() - skip) / kPage * kPage;
  threads.parallel_for((size + kPiece - 1) / kPiece, 1, [&](size_t begin, size_t end) {
    // Advice: where it fails the pages come in when they are written.
    (void)madvise(arena_.data() + skip + begin * kPiece,
                  std::min(end * kPiece, size) - begin * kPiece, MADV_POPULATE_WRITE);
  });
#else
  (void)threads;
#endif
}

void Frame::clear() {
  given_ = {};
  has_run_ = in_use_ = false;
  for (size_t id = 0; id < values_.size(); ++id)
    if ((values_[id].tensor.owner || values_[id].sequence) &&
        plan_->values[id].storage != archive::Storage::constant)
      values_[id] = Value();
  inputs_.clear();
  outputs_.clear();
  operands_.clear();
  for (std::unique_ptr<ControlState>& control : controls_)
    if (control) control->clear();
  for (std::unique_ptr<Frame>& child : children_)
    if (child && child->in_use_) child->clear();
  sequences_.clear();
}

Result<std::shared_ptr<AlignedBytes>> Frame::pooled(uint32_t id, uint64_t bytes) {
  uint32_t& at = block_of_[id];
  const auto is_free = [&](uint32_t block) { return blocks_[block].use_count() == 1; };
  if (at == kNoBlock || !is_free(at)) {
    // The least that is enough, and not much more: large ones are for large values. Later runs find
    // it free too, since values come and go in the same order.
    const uint64_t wanted = std::max<uint64_t>(bytes, kAlignment);
    at = kNoBlock;
    for (uint32_t i = 0; i < blocks_.size(); ++i)
      if (is_free(i) && blocks_[i]->size() >= wanted && blocks_[i]->size() / 2 <= wanted &&
          (at == kNoBlock || blocks_[i]->size() < blocks_[at]->size()))
        at = i;
  }
  if (at == kNoBlock) {
    at = static_cast<uint32_t>(blocks_.size());
    blocks_.push_back(std::make_shared<AlignedBytes>());
  }
  if (blocks_[at]->size() < bytes || blocks_[at]->size() == 0) {
    *blocks_[at] = AlignedBytes();  // first, so that both are never there together
    HOLOGRAM_TRY(*blocks_[at], AlignedBytes::allocate(std::max<uint64_t>(bytes, kAlignment)));
  }
  return blocks_[at];
}

ControlState& Frame::control(const LoadedStep& step) {
  std::unique_ptr<ControlState>& control = controls_[step.first_frame];
  if (!control) control = std::make_unique<ControlState>();
  return *control;
}

// The attributes of a random step in a turn of a loop after the first: another seed, made of the
// step's and the turn.
const kernels::Attributes& Frame::reseeded(const LoadedStep& step, uint64_t turn) {
  kernels::Attributes& attributes = reseeded_.try_emplace(&step, step.attributes).first->second;
  const kernels::Attribute* seed = step.attributes.find("seed");
  const double given = !seed ? 0
                       : seed->kind == kernels::Attribute::Kind::number
                           ? seed->number
                           : static_cast<double>(seed->integer);
  const uint64_t mixed = hash64(std::as_bytes(std::span(&given, 1)), turn);
  attributes.set("seed", static_cast<double>(static_cast<uint32_t>(mixed)));
  return attributes;
}

Status Frame::verify(Ids ids, const RunContext& context, archive::Reading reading) const {
  for (uint32_t id : ids) {
    if (id == kNoValue || plan_->values[id].storage != archive::Storage::constant) continue;
    const Tensor& constant = values_[id].tensor;
    if (constant.dtype != DType::string)
      HOLOGRAM_CHECK(context.unverified->verify(std::span(constant.data, constant.bytes()),
                                                *context.threads, reading));
  }
  return {};
}

Status Frame::run_checking(const LoadedStep& step, RunContext& context) {
  const bool before = step.reading != archive::Reading::done;
  // What has not been checked yet could make a loop go on for ever.
  if (step.control == Control::loop) HOLOGRAM_CHECK(context.unverified->verify(*context.threads));
  if (before) {
    HOLOGRAM_CHECK(verify(step.inputs, context, step.reading));
  } else {
    for (uint32_t id : step.inputs)
      if (id != kNoValue && plan_->values[id].storage == archive::Storage::constant)
        context.unverified->bring_in({values_[id].tensor.data, values_[id].tensor.bytes()},
                                     *context.threads);
  }
  for (const LoadedSubplan& sub : step.subplans)
    HOLOGRAM_CHECK(verify(sub.outer, context, archive::Reading::whole));
  if (Status status = run_step(step, context); !status) {
    // Damaged constants may be why.
    HOLOGRAM_CHECK(context.unverified->verify(*context.threads));
    return status;
  }
  return before ? Status() : verify(step.inputs, context, step.reading);
}

void Frame::let_go(const LoadedStep& step, RunContext& context) const {
  constexpr uint64_t kLittle = 256 << 10;
  uint64_t made = 0;
  for (uint32_t id : step.outputs)
    if (values_[id].is_tensor()) made += values_[id].tensor.bytes();
  for (uint32_t id : step.inputs) {
    if (id == kNoValue || plan_->values[id].storage != archive::Storage::constant) continue;
    const Tensor& constant = values_[id].tensor;
    const uint64_t bytes = constant.bytes();
    // What a step does with a constant grows with its results. Where that is little, such as one
    // row of a product, to bring the constant in again would take longer than the step.
    const bool much_work = made >= bytes / 32 || step.reading == archive::Reading::part;
    if (bytes >= kLittle && much_work && constant.dtype != DType::string)
      context.window.pass({constant.data, bytes});
  }
}

Status Frame::run_timed(const LoadedStep& step, RunContext& context) {
  Profile& profile = *context.profile;
  const auto [place, fresh] = profile.places.emplace(&step, profile.times.size());
  if (fresh)
    profile.times.push_back({std::string(step.name), std::string(step.label), 0, profile.depth, 0});
  const size_t at = place->second;
  ++profile.depth;
  const double inside = profile.inside;
  const auto start = std::chrono::steady_clock::now();
  Status status = context.unverified ? run_checking(step, context) : run_step(step, context);
  const std::chrono::duration<double, std::milli> whole = std::chrono::steady_clock::now() - start;
  --profile.depth;
  const double own = whole.count() - (profile.inside - inside);
  profile.inside += own;
  profile.times[at].milliseconds += own;
  ++profile.times[at].runs;
  return status;
}

}  // namespace hologram::runtime
