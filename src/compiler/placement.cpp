#include "compiler/placement.h"

#include <algorithm>

#include "backends/cpu/kernels/view.h"
#include "compiler/concat_places.h"
#include "compiler/memory_plan.h"
#include "graph/dim.h"

namespace hologram::compiler {
namespace {

using archive::Storage;
using graph::kNoValue;
using graph::ValueType;

class Placer {
 public:
  Placer(const graph::Graph& graph, archive::PlanT& plan, Expressions& expressions)
      : graph_(graph),
        plan_(plan),
        expressions_(expressions),
        steps_(static_cast<uint32_t>(plan.steps.size())),
        values_(plan.values.size()) {}

  void run(const PlacementOptions& options) {
    find_lifetimes();
    find_views();
    find_sizes();
    release();
    std::vector<Block> blocks = make_blocks(false);
    MemoryPlan memory = plan_memory(lifetimes_of(blocks));
    if (options.in_place) {
      // In place is not always less: a block that lives long may split what is free.
      const auto try_shared = [&] {
        std::vector<Block> shared = make_blocks(true);
        MemoryPlan other = plan_memory(lifetimes_of(shared));
        if (other.total > memory.total) return;
        blocks = std::move(shared);
        memory = std::move(other);
      };
      try_shared();
      find_concats();
      try_shared();
    }
    write(blocks, memory);
  }

 private:
  static constexpr uint32_t kNever = 0xffffffff;
  // What sizes are worked out for where symbols decide them.
  static constexpr int64_t kTypicalDim = 64;

  struct Info {
    uint32_t first = kNever, last = 0;  // steps that make it and that read it or a view of it
    uint32_t root = 0;                  // itself, or what a view looks at in the end
    bool by_control = false;            // made by a control step, in memory of its own
    bool planned = false;
    uint64_t size = 0;                      // bytes, or where `elements` is given an estimate
    int32_t elements = Expressions::kNone;  // expression, where not a number
  };
  struct Member {
    uint32_t id;
    uint64_t offset;  // in the block
  };
  struct Block {
    Lifetime life;
    std::vector<Member> values;
  };

  const ValueType& type(uint32_t id) const { return graph_.value(id).type; }
  bool is_made_here(uint32_t id) const { return values_[id].first != kNever; }

  void find_lifetimes() {
    for (uint32_t id = 0; id < values_.size(); ++id) values_[id].root = id;
    for (uint32_t at = 0; at < steps_; ++at) {
      const archive::StepT& step = *plan_.steps[at];
      const auto use = [&](uint32_t id) {
        if (id != kNoValue) values_[id].last = at;
      };
      for (uint32_t id : step.inputs) use(id);
      for (const auto& sub : step.subplans)
        for (uint32_t id : sub->outer) use(id);
      for (uint32_t id : step.outputs) {
        use(id);
        if (id == kNoValue) continue;
        values_[id].first = at;
        values_[id].by_control = step.kind == archive::StepKind::control;
      }
    }
    for (uint32_t id : plan_.outputs) values_[id].last = steps_;
  }

  void find_views() {
    for (const auto& step : plan_.steps) {
      if (step->kind != archive::StepKind::kernel || step->inputs.empty()) continue;
      const uint32_t from = step->inputs[0], to = step->outputs[0];
      if (from == kNoValue || to == kNoValue) continue;
      const ValueType &source = type(from), &result = type(to);
      if (!source.is_tensor() || !result.is_tensor() || result.dtype == DType::string) continue;
      if (!kernels::is_view_kernel(step->kernel)) continue;
      const uint32_t root = values_[from].root;
      // A result is in memory of this plan: what it passes on may be gone when it is read.
      if (values_[to].last == steps_ && (!is_made_here(root) || values_[root].by_control)) continue;
      values_[to].root = root;
      plan_.values[to]->storage = Storage::view;
      plan_.values[to]->source = static_cast<int32_t>(from);
      values_[root].last = std::max(values_[root].last, values_[to].last);
    }
  }

  void find_sizes() {
    for (uint32_t id = 0; id < values_.size(); ++id) {
      Info& info = values_[id];
      const ValueType& t = type(id);
      if (!is_made_here(id) || info.by_control || plan_.values[id]->storage != Storage::pool ||
          !t.is_tensor() || !t.shape || t.dtype == DType::string)
        continue;
      const int32_t elements = expressions_.elements(*t.shape);
      if (elements == Expressions::kNone) continue;
      const int64_t count = expressions_.estimate(elements, kTypicalDim);
      if (count < 0 || count > (int64_t{1} << 48)) continue;
      info.planned = true;
      info.size = bytes_for(t.dtype, static_cast<uint64_t>(count));
      if (!t.shape->is_static()) info.elements = elements;
    }
  }

  // Operands of concatenations in their places, where all sizes are numbers.
  void find_concats() {
    const bool symbolic = std::ranges::any_of(values_, [](const Info& info) {
      return info.planned && info.elements != Expressions::kNone;
    });
    if (symbolic) return;
    places_ = place_concats(
        graph_, plan_, [&](uint32_t id) { return values_[id].root; },
        [&](uint32_t id) {
          return id != kNoValue && values_[id].planned ? values_[id].size : uint64_t{0};
        });
  }

  // What may share in the ownership of memory is let go after its last read.
  void release() {
    for (uint32_t id = 0; id < values_.size(); ++id) {
      const uint32_t root = values_[id].root;
      if (is_made_here(id) && !values_[root].planned && values_[id].last < steps_ &&
          plan_.values[root]->storage != Storage::constant)
        plan_.steps[values_[id].last]->release.push_back(id);
    }
  }

  // The input whose memory the step's only result may take: read for the last time here, element by
  // element in the order of the result.
  uint32_t in_place_input(uint32_t at, const std::vector<Block>& blocks,
                          const std::vector<uint32_t>& block_of) const {
    const archive::StepT& step = *plan_.steps[at];
    if (step.kind != archive::StepKind::program || step.outputs.size() != 1) return kNoValue;
    const uint32_t out = step.outputs[0];
    if (!values_[out].planned || is_grouped(out)) return kNoValue;
    const auto same_elements = [&](uint32_t id) {
      return type(id).is_tensor() && type(id).shape &&
             graph::equal_shapes(*type(id).shape, *type(out).shape);
    };
    for (uint32_t id : step.inputs) {
      const uint32_t root = values_[id].root;
      if (!values_[root].planned || is_grouped(root) || blocks[block_of[root]].life.last != at ||
          !same_elements(id) || bits_of(type(id).dtype) != bits_of(type(out).dtype))
        continue;
      // The same memory under another shape is read in another order.
      const bool alone = std::ranges::all_of(step.inputs, [&](uint32_t other) {
        return values_[other].root != root || same_elements(other);
      });
      if (alone) return root;
    }
    return kNoValue;
  }

  bool is_grouped(uint32_t id) const { return !places_.empty() && places_[id].grouped; }

  std::vector<Block> make_blocks(bool in_place) const {
    std::vector<Block> blocks;
    std::vector<uint32_t> block_of(values_.size(), 0);
    std::vector<uint32_t> group(values_.size(), kNever), group_last(values_.size(), 0);
    for (uint32_t id = 0; id < values_.size(); ++id)
      if (is_grouped(id))
        group_last[places_[id].owner] = std::max(group_last[places_[id].owner], values_[id].last);
    for (uint32_t at = 0; at < steps_; ++at) {
      const uint32_t input = in_place ? in_place_input(at, blocks, block_of) : kNoValue;
      for (uint32_t id : plan_.steps[at]->outputs) {
        if (id == kNoValue || !values_[id].planned) continue;
        if (input != kNoValue) {
          block_of[id] = block_of[input];
          Block& block = blocks[block_of[id]];
          block.life.last = values_[id].last;
          block.values.push_back({id, 0});
        } else if (is_grouped(id)) {
          const auto [owner, offset, grouped] = places_[id];
          if (group[owner] == kNever) {
            group[owner] = static_cast<uint32_t>(blocks.size());
            blocks.push_back({{values_[owner].size, at, group_last[owner]}, {}});
          }
          block_of[id] = group[owner];
          blocks[block_of[id]].values.push_back({id, offset});
        } else {
          block_of[id] = static_cast<uint32_t>(blocks.size());
          blocks.push_back({{values_[id].size, at, values_[id].last}, {{id, 0}}});
        }
      }
    }
    return blocks;
  }

  static std::vector<Lifetime> lifetimes_of(const std::vector<Block>& blocks) {
    std::vector<Lifetime> lifetimes;
    for (const Block& block : blocks) lifetimes.push_back(block.life);
    return lifetimes;
  }

  void write(const std::vector<Block>& blocks, const MemoryPlan& memory) {
    const bool symbolic = std::ranges::any_of(blocks, [&](const Block& block) {
      return values_[block.values[0].id].elements != Expressions::kNone;
    });
    for (size_t rank = 0; rank < memory.order.size(); ++rank) {
      const Block& block = blocks[memory.order[rank]];
      for (const auto [id, offset] : block.values) {
        archive::ValueT& value = *plan_.values[id];
        value.storage = Storage::arena;
        value.elements = values_[id].elements;
        value.size = values_[id].elements == Expressions::kNone ? values_[id].size : 0;
        value.offset = symbolic ? 0 : memory.offsets[memory.order[rank]] + offset;
        if (symbolic) value.block = static_cast<int32_t>(rank);
      }
      if (!symbolic) continue;
      auto entry = std::make_unique<archive::BlockT>();
      entry->first = block.life.first;
      entry->last = block.life.last;
      for (size_t other = 0; other < rank; ++other)
        if (blocks[memory.order[other]].life.overlaps(block.life))
          entry->beside.push_back(static_cast<uint32_t>(other));
      plan_.blocks.push_back(std::move(entry));
    }
    plan_.arena = symbolic ? 0 : memory.total;
  }

  const graph::Graph& graph_;
  archive::PlanT& plan_;
  Expressions& expressions_;
  const uint32_t steps_;
  std::vector<Info> values_;
  std::vector<ConcatPlace> places_;  // empty until concatenations are looked at
};

}  // namespace

void place_values(const graph::Graph& graph, archive::PlanT& plan, Expressions& expressions,
                  const PlacementOptions& options) {
  Placer(graph, plan, expressions).run(options);
}

}  // namespace hologram::compiler
