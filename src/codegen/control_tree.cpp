#include "codegen/control_tree.h"

#include <utility>

namespace hologram::codegen {
namespace {

using isa::Opcode;

class TreeBuilder {
 public:
  explicit TreeBuilder(const isa::Program& program) : body_(program.body) {
    tree_.region_of.assign(body_.size(), kNoRegion);
  }

  ControlTree build() && {
    parse(add_region(kNoRegion, false));
    for (const Statement& s : tree_.regions[0].statements) tree_.synchronises |= synchronises(s);
    return std::move(tree_);
  }

 private:
  uint32_t add_region(uint32_t parent, bool is_loop_body) {
    Region region{.parent = parent, .is_loop_body = is_loop_body};
    const uint32_t index = static_cast<uint32_t>(tree_.regions.size());
    if (parent != kNoRegion) {
      region.depth = tree_.regions[parent].depth + 1;
      region.loop = tree_.regions[parent].loop;
    }
    if (is_loop_body) region.loop = index;
    tree_.regions.push_back(std::move(region));
    return index;
  }

  bool at_region_end() const {
    return next_ == body_.size() || body_[next_].op == Opcode::end ||
           body_[next_].op == Opcode::if_else;
  }

  // A statement and the rests behind it.
  bool synchronises(const Statement& s) const {
    bool any = s.synchronises;
    if (s.rest != kNoRegion)
      for (const Statement& inner : tree_.regions[s.rest].statements) any |= synchronises(inner);
    return any;
  }

  // Statements up to the end of the enclosing `if`, `for` or `loop`, which is not consumed.
  void parse(uint32_t region) {
    std::vector<Statement> statements;
    bool dead = false;
    while (!at_region_end()) {
      Statement statement = parse_statement(region);
      if (dead) {
        forget(statement.instruction, next_);
        continue;
      }
      const bool is_jump = statement.kind == StatementKind::plain && !statement.escapes.empty();
      const bool can_leave = statement.kind != StatementKind::plain && !statement.escapes.empty();
      dead = is_jump;
      if (can_leave && !at_region_end()) {
        statement.rest = add_region(region, false);
        statements.push_back(std::move(statement));
        tree_.regions[region].statements = std::move(statements);
        return parse(tree_.regions[region].statements.back().rest);
      }
      statements.push_back(std::move(statement));
    }
    tree_.regions[region].statements = std::move(statements);
  }

  // Code behind a jump in the same region never runs.
  void forget(uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; ++i) tree_.region_of[i] = kNoRegion;
  }

  Statement parse_statement(uint32_t region) {
    Statement statement{.instruction = next_};
    tree_.region_of[next_] = region;
    const isa::Instruction& instruction = body_[next_++];
    switch (isa::info(instruction.op).form) {
      case isa::Form::if_begin:
        statement.kind = StatementKind::if_;
        statement.body = parse_child(region, statement, false);
        if (body_[next_].op == Opcode::if_else) {
          ++next_;
          statement.otherwise = parse_child(region, statement, false);
        }
        ++next_;
        break;
      case isa::Form::for_begin:
      case isa::Form::loop_begin:
        statement.kind = isa::info(instruction.op).form == isa::Form::for_begin
                             ? StatementKind::for_
                             : StatementKind::loop;
        statement.body = parse_child(region, statement, true);
        ++next_;
        break;
      case isa::Form::jump:
        statement.escapes.push_back(statement.instruction);
        break;
      case isa::Form::barrier:
      case isa::Form::group:
        statement.synchronises = true;
        break;
      default:
        break;
    }
    return statement;
  }

  uint32_t parse_child(uint32_t parent, Statement& owner, bool is_loop_body) {
    const uint32_t child = add_region(parent, is_loop_body);
    parse(child);
    collect(child, owner, is_loop_body);
    return child;
  }

  // What the statements of `region` mean for the statement that owns it.
  void collect(uint32_t region, Statement& owner, bool is_loop_body) {
    for (const Statement& s : tree_.regions[region].statements) {
      owner.synchronises |= s.synchronises;
      for (uint32_t jump : s.escapes)
        if (!is_loop_body || body_[jump].op == Opcode::return_) owner.escapes.push_back(jump);
      if (s.rest != kNoRegion) collect(s.rest, owner, is_loop_body);
    }
  }

  const std::vector<isa::Instruction>& body_;
  ControlTree tree_;
  uint32_t next_ = 0;
};

}  // namespace

uint32_t ControlTree::common(uint32_t a, uint32_t b) const {
  while (a != b) {
    uint32_t& deeper = regions[a].depth >= regions[b].depth ? a : b;
    deeper = regions[deeper].parent;
  }
  return a;
}

ControlTree build_control_tree(const isa::Program& program) { return TreeBuilder(program).build(); }

}  // namespace hologram::codegen
