#include "runtime/session/binding.h"

#include <algorithm>

#include "archive/expression.h"
#include "runtime/session/loaded_plan.h"
#include "support/aligned.h"

namespace hologram::runtime {
namespace {

// Larger values are left to be refused where they are made.
constexpr int64_t kMostElements = int64_t{1} << 44;

std::vector<int64_t> evaluate(std::span<const archive::Expression> expressions,
                              std::span<const int64_t> symbols) {
  std::vector<int64_t> values(expressions.size());
  for (size_t i = 0; i < expressions.size(); ++i) {
    const archive::Expression& e = expressions[i];
    values[i] = e.operation() == archive::Operation::number ? e.value()
                : e.operation() == archive::Operation::symbol
                    ? symbols[e.a()]
                    : archive::apply(e.operation(), values[e.a()], values[e.b()]);
  }
  return values;
}

struct Span {
  uint64_t begin, end;
};

// The lowest place of `size` bytes between `taken`, which is sorted here.
uint64_t lowest_gap(std::vector<Span>& taken, uint64_t size) {
  // Few, and nearly in order: inserting beats a general sort.
  for (size_t i = 1; i < taken.size(); ++i)
    for (size_t k = i; k > 0 && taken[k].begin < taken[k - 1].begin; --k)
      std::swap(taken[k], taken[k - 1]);
  uint64_t offset = 0;
  for (const Span& span : taken) {
    if (span.begin >= offset + size) break;
    offset = std::max(offset, span.end);
  }
  return offset;
}

Layout lay_out(const LoadedPlan& plan, std::span<const int64_t> expressions) {
  Layout layout;
  layout.places.resize(plan.values.size());
  std::vector<Span> blocks(plan.blocks.size());  // at first: from 0 to their size
  for (const LoadedPlan::Planned& planned : plan.planned) {
    Place& place = layout.places[planned.value];
    if (planned.elements < 0) {
      place.size = planned.size;
    } else if (const int64_t count = expressions[static_cast<size_t>(planned.elements)];
               count >= 0 && count <= kMostElements) {
      place.size = bytes_for(planned.dtype, static_cast<uint64_t>(count));
    } else {
      continue;
    }
    blocks[planned.block].end = std::max(blocks[planned.block].end, place.size);
  }
  std::vector<Span> taken;
  for (size_t i = 0; i < blocks.size(); ++i) {
    taken.clear();
    for (uint32_t other : plan.blocks[i]) taken.push_back(blocks[other]);
    const uint64_t size = align_up(std::max<uint64_t>(blocks[i].end, 1), kAlignment);
    blocks[i].begin = lowest_gap(taken, size);
    blocks[i].end = blocks[i].begin + size;
    layout.arena = std::max(layout.arena, blocks[i].end);
  }
  for (const LoadedPlan::Planned& planned : plan.planned)
    layout.places[planned.value].offset = blocks[planned.block].begin;
  return layout;
}

}  // namespace

std::shared_ptr<const Binding> Binding::make(const LoadedModel& model,
                                             std::span<const int64_t> symbols) {
  auto binding = std::make_shared<Binding>();
  binding->symbols.assign(symbols.begin(), symbols.end());
  binding->expressions = evaluate(model.expressions, symbols);
  binding->layouts.reserve(model.symbolic_plans.size());
  for (const LoadedPlan* plan : model.symbolic_plans)
    binding->layouts.push_back(lay_out(*plan, binding->expressions));
  return binding;
}

std::shared_ptr<const Binding> BindingCache::find_or_make(const LoadedModel& model,
                                                          std::span<const int64_t> symbols) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      recent_, [&](const auto& binding) { return std::ranges::equal(binding->symbols, symbols); });
  if (found != recent_.end()) {
    std::rotate(recent_.begin(), found, found + 1);
    return recent_.front();
  }
  if (recent_.size() >= kCapacity) recent_.pop_back();
  recent_.insert(recent_.begin(), Binding::make(model, symbols));
  ++made_;
  return recent_.front();
}

uint64_t BindingCache::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace hologram::runtime
