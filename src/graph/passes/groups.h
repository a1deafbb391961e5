// Groups: a partition of nodes such that the groups, as nodes, still form a graph without cycles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hologram::graph {

// Nodes are numbered 0 .. count-1 in an order in which each reads only what came before it.
class Groups {
 public:
  explicit Groups(size_t count);

  // The next node, alone in its group, with the nodes it reads from.
  void add(uint32_t node, std::span<const uint32_t> before);
  // The node that stands for a group: its first.
  uint32_t leader(uint32_t node) const { return leader_[node]; }
  // In ascending order.
  const std::vector<uint32_t>& members(uint32_t node) const { return members_[leader_[node]]; }
  // No path goes from one group to the other through a third. `before` reads nothing of `after`.
  bool can_merge(uint32_t before, uint32_t after) const;
  void merge(uint32_t a, uint32_t b);
  // Every group after the groups it reads from; otherwise where its last member stood.
  std::vector<std::vector<uint32_t>> in_order() const;

 private:
  using Bits = std::vector<uint64_t>;
  static bool has(const Bits& bits, uint32_t n) { return bits[n / 64] >> (n % 64) & 1; }
  static void set(Bits& bits, uint32_t n) { bits[n / 64] |= uint64_t{1} << (n % 64); }
  static void clear(Bits& bits, uint32_t n) { bits[n / 64] &= ~(uint64_t{1} << (n % 64)); }
  static void unite(Bits& to, const Bits& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
  }
  void visit(uint32_t group, std::vector<bool>& done,
             std::vector<std::vector<uint32_t>>& order) const;

  size_t count_, added_ = 0;
  std::vector<uint32_t> leader_;
  std::vector<std::vector<uint32_t>> members_;  // of leaders
  std::vector<std::vector<uint32_t>> before_;   // of leaders: nodes their members read from
  std::vector<Bits> ancestors_;                 // of leaders: leaders they depend on, all the way
};

}  // namespace hologram::graph
