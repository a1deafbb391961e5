#include "archive/check_memory.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "support/aligned.h"

namespace hologram::archive {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

[[gnu::cold, gnu::noinline]] Status bad(const char* what) {
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", what);
}

template <typename V>
uint32_t length(const V* vector) {
  return vector ? vector->size() : 0;
}

class Checker {
 public:
  Checker(const Plan& plan, const Model& model)
      : plan_(plan),
        model_(model),
        values_(plan.values()),
        steps_(length(plan.steps())),
        memory_(4 * size_t{length(plan.values())}),
        roots_(std::span(memory_).first(memory_.size() / 4)),
        first_(std::span(memory_).subspan(roots_.size(), roots_.size())),
        last_(std::span(memory_).subspan(2 * roots_.size(), roots_.size())),
        planned_(std::span(memory_).subspan(3 * roots_.size(), 0)) {
    std::ranges::fill(first_, kNever);
  }

  Status run() {
    HOLOGRAM_CHECK(find_roots());
    find_lifetimes();
    return length(plan_.blocks()) > 0 ? check_blocks() : check_arena();
  }

 private:
  const Value& value(uint32_t id) const { return *values_->Get(id); }

  // What a view looks at in the end.
  Status find_roots() {
    for (uint32_t id = 0; id < roots_.size(); ++id) {
      uint32_t at = id;
      for (size_t hops = 0; value(at).storage() == Storage::view; ++hops) {
        if (hops == kMostViews) return bad("views of views without end");
        at = static_cast<uint32_t>(value(at).source());
      }
      roots_[id] = at;
    }
    return {};
  }

  void find_lifetimes() {
    const auto use = [&](const flatbuffers::Vector<uint32_t>* ids, uint32_t at) {
      for (uint32_t i = 0; i < length(ids); ++i)
        if (ids->Get(i) < roots_.size()) {
          uint32_t& last = last_[roots_[ids->Get(i)]];
          last = std::max(last, at);
        }
    };
    const auto* steps = plan_.steps();
    for (uint32_t at = 0; at < steps_; ++at) {
      const Step& step = *steps->Get(at);
      const auto* outputs = step.outputs();
      use(step.inputs(), at);
      use(outputs, at);
      for (uint32_t i = 0; i < length(step.subplans()); ++i)
        use(step.subplans()->Get(i)->outer(), at);
      for (uint32_t i = 0; i < length(outputs); ++i)
        if (const uint32_t id = outputs->Get(i); id < roots_.size()) {
          first_[id] = at;  // no other step makes it
          if (value(id).storage() != Storage::arena) continue;
          planned_ = {planned_.data(), planned_.size() + 1};
          planned_.back() = id;
        }
    }
    use(plan_.outputs(), steps_);
  }

  // Whether the step that makes `id` may write it where `before` lies, needed until step `last`.
  // Programs read no element twice and take none for a position: whatever the sizes turn out to be,
  // that is safe.
  bool is_in_place(uint32_t before, uint32_t last, uint32_t id) const {
    const Step& step = *plan_.steps()->Get(first_[id]);
    return step.kind() == StepKind::program && length(step.outputs()) == 1 && last == first_[id] &&
           first_[before] < first_[id] && value(before).size() == value(id).size();
  }

  // Bytes of the arena that may still be read: of the value that was made there last, and of inputs
  // that a Concat found in its result.
  struct Extent {
    uint64_t begin, end;
    uint32_t last;  // step
    uint32_t newest;
  };

  // No axis in front of the joined one is larger than one.
  static bool is_in_one_piece(const Step& step, const Type& type) {
    int64_t axis = 0;
    for (uint32_t i = 0; i < length(step.attributes()); ++i)
      if (step.attributes()->Get(i)->name()->string_view() == "axis")
        axis = step.attributes()->Get(i)->integer();
    const int64_t rank = length(type.dims());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    for (uint32_t i = 0; i < axis; ++i)
      if (type.dims()->Get(i)->text() >= 0 || type.dims()->Get(i)->value() != 1) return false;
    return true;
  }

  // From where to where inputs of the Concat that makes `id` lie as its result, one behind the
  // other; up to the first whose size is not known.
  std::vector<std::pair<uint64_t, uint64_t>> joined_in_place(uint32_t id) const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    const Step& step = *plan_.steps()->Get(first_[id]);
    if (step.kind() != StepKind::kernel || step.kernel()->string_view() != "Concat" ||
        !is_in_one_piece(step, *model_.types()->Get(value(id).type())))
      return ranges;
    uint64_t at = value(id).offset();
    const uint64_t end = at + value(id).size();
    for (uint32_t i = 0; i < length(step.inputs()) && at < end; ++i) {
      if (step.inputs()->Get(i) >= roots_.size()) break;
      const Value& input = value(roots_[step.inputs()->Get(i)]);
      if (input.storage() != Storage::arena) break;  // where the next ones belong is not known
      if (input.offset() == at && input.size() > 0) {
        if (!ranges.empty() && ranges.back().second == at)
          ranges.back().second += input.size();
        else
          ranges.emplace_back(at, at + input.size());
      }
      at += input.size();
    }
    return ranges;
  }

  Status check_arena() {
    if (planned_.empty()) return {};
    std::vector<Extent> alive;  // by offset; they lie apart, and are few at a time
    alive.reserve(16);
    const auto from = [&](uint64_t offset) {
      return std::ranges::lower_bound(alive, offset, {}, &Extent::begin);
    };
    using Ending = std::pair<uint32_t, uint64_t>;
    std::vector<Ending> memory;
    memory.reserve(planned_.size());
    std::priority_queue endings(std::greater<>{}, std::move(memory));  // last step, offset
    for (uint32_t id : planned_) {
      for (; !endings.empty() && endings.top().first < first_[id]; endings.pop()) {
        const auto found = from(endings.top().second);
        if (found != alive.end() && found->begin == endings.top().second &&
            found->last < first_[id])
          alive.erase(found);
      }
      if (value(id).size() == 0) continue;
      const uint64_t offset = value(id).offset(), end = offset + value(id).size();
      Extent made{offset, end, last_[id], id};
      auto other = from(offset);
      if (other != alive.begin() && std::prev(other)->end > offset) --other;
      if (other != alive.end() && other->begin == offset &&
          is_in_place(other->newest, other->last, id)) {
        *other = made;
      } else {
        const auto joined = other != alive.end() && other->begin < end
                                ? joined_in_place(id)
                                : std::vector<std::pair<uint64_t, uint64_t>>{};
        while (other != alive.end() && other->begin < end) {
          const bool is_kept = std::ranges::any_of(joined, [&](const auto& range) {
            return range.first <= other->begin && other->end <= range.second;
          });
          if (!is_kept || other->end > end) return bad("values that lie on one another");
          made.last = std::max(made.last, other->last);
          other = alive.erase(other);
        }
        alive.insert(other, made);
      }
      endings.emplace(made.last, offset);
    }
    return {};
  }

  // A block is alive from its first value to its last.
  Status check_blocks() {
    struct Block {
      uint32_t first = kNever, last = 0, newest = kNever;
    };
    std::vector<Block> blocks(length(plan_.blocks()));
    std::vector<uint32_t> order;
    order.reserve(blocks.size());
    for (uint32_t id : planned_) {
      const auto index = static_cast<uint32_t>(value(id).block());
      Block& block = blocks[index];
      if (block.first == kNever) {
        block.first = first_[id];
        order.push_back(index);
      } else if (last_[block.newest] >= first_[id] &&
                 !is_in_place(block.newest, last_[block.newest], id)) {
        return bad("values of one block at the same time");
      }
      block.last = std::max(block.last, last_[id]);
      block.newest = id;
    }
    std::vector<uint32_t> alive;
    alive.reserve(order.size());
    for (uint32_t index : order) {
      std::erase_if(alive,
                    [&](uint32_t other) { return blocks[other].last < blocks[index].first; });
      for (uint32_t other : alive) {
        const auto* beside = plan_.blocks()->Get(std::max(index, other))->beside();
        if (!beside ||
            std::find(beside->begin(), beside->end(), std::min(index, other)) == beside->end())
          return bad("blocks that lie on one another");
      }
      alive.push_back(index);
    }
    return {};
  }

  static constexpr size_t kMostViews = 4096;
  const Plan& plan_;
  const Model& model_;
  const flatbuffers::Vector<flatbuffers::Offset<Value>>* const values_;
  const uint32_t steps_;
  std::vector<uint32_t> memory_;      // of the lists below
  std::span<uint32_t> roots_;         // what a value, if a view, looks at in the end
  std::span<uint32_t> first_, last_;  // steps that make a value and need it or a view of it
  std::span<uint32_t> planned_;       // values of the arena, in the order in which they are made
};

}  // namespace

Status check_memory(const Plan& plan, const Model& model) { return Checker(plan, model).run(); }

}  // namespace hologram::archive
