// Binding: what the shapes of the inputs decide. Sizes and places of all planned values, worked out
// once for each new set of shapes and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace hologram::runtime {

struct LoadedModel;
struct LoadedPlan;

// Where a planned value lies in its plan's arena.
struct Place {
  static constexpr uint64_t kNone = ~uint64_t{0};  // a size that cannot be: not planned
  uint64_t offset = 0;
  uint64_t size = kNone;
};

struct Layout {
  std::vector<Place> places;  // one a value
  uint64_t arena = 0;
};

// Immutable once made.
struct Binding {
  std::vector<int64_t> symbols;      // what each is; archive::kUndefined where no input says
  std::vector<int64_t> expressions;  // the value of each
  std::vector<Layout> layouts;       // one a plan whose sizes depend on shapes

  static std::shared_ptr<const Binding> make(const LoadedModel& model,
                                             std::span<const int64_t> symbols);
};

// The bindings of a session's last shapes. Safe from any thread.
class BindingCache {
 public:
  // More shapes than this in turn cost a new binding each; they are small and cheap.
  static constexpr size_t kCapacity = 64;

  std::shared_ptr<const Binding> find_or_make(const LoadedModel& model,
                                              std::span<const int64_t> symbols);
  // How often one was worked out.
  uint64_t made() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Binding>> recent_;  // the last one used first
  uint64_t made_ = 0;
};

}  // namespace hologram::runtime
