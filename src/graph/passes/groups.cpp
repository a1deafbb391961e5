#include "graph/passes/groups.h"

#include <algorithm>

namespace hologram::graph {

Groups::Groups(size_t count)
    : count_(count), leader_(count), members_(count), before_(count), ancestors_(count) {}

void Groups::add(uint32_t node, std::span<const uint32_t> before) {
  leader_[node] = node;
  members_[node] = {node};
  before_[node].assign(before.begin(), before.end());
  ancestors_[node].assign((count_ + 63) / 64, 0);
  for (uint32_t b : before) {
    unite(ancestors_[node], ancestors_[leader_[b]]);
    set(ancestors_[node], leader_[b]);
  }
  added_ = node + 1;
}

bool Groups::can_merge(uint32_t before, uint32_t after) const {
  const uint32_t a = leader_[before], b = leader_[after];
  if (has(ancestors_[a], b)) return false;
  return std::ranges::none_of(before_[b], [&](uint32_t n) {
    const uint32_t between = leader_[n];
    return between != a && between != b && has(ancestors_[between], a);
  });
}

void Groups::merge(uint32_t a, uint32_t b) {
  const uint32_t kept = std::min(leader_[a], leader_[b]), gone = std::max(leader_[a], leader_[b]);
  std::vector<uint32_t>& members = members_[kept];
  const size_t middle = members.size();
  members.insert(members.end(), members_[gone].begin(), members_[gone].end());
  std::inplace_merge(members.begin(), members.begin() + static_cast<ptrdiff_t>(middle),
                     members.end());
  for (uint32_t m : members_[gone]) leader_[m] = kept;
  before_[kept].insert(before_[kept].end(), before_[gone].begin(), before_[gone].end());
  unite(ancestors_[kept], ancestors_[gone]);
  clear(ancestors_[kept], kept);
  clear(ancestors_[kept], gone);
  for (uint32_t n = 0; n < added_; ++n) {
    if (leader_[n] != n || n == kept) continue;
    Bits& bits = ancestors_[n];
    if (!has(bits, kept) && !has(bits, gone)) continue;
    clear(bits, gone);
    set(bits, kept);
    unite(bits, ancestors_[kept]);
  }
  members_[gone].clear();
  before_[gone].clear();
  ancestors_[gone].clear();
}

void Groups::visit(uint32_t group, std::vector<bool>& done,
                   std::vector<std::vector<uint32_t>>& order) const {
  if (done[group]) return;
  done[group] = true;
  for (uint32_t n : before_[group]) visit(leader_[n], done, order);
  order.push_back(members_[group]);
}

std::vector<std::vector<uint32_t>> Groups::in_order() const {
  std::vector<std::vector<uint32_t>> order;
  std::vector<bool> done(count_, false);
  for (uint32_t n = 0; n < added_; ++n)
    if (const uint32_t group = leader_[n]; members_[group].back() == n) visit(group, done, order);
  return order;
}

}  // namespace hologram::graph
