#include "isa/uniformity.h"

#include "isa/fields.h"

namespace hologram::isa {
namespace {

struct Region {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t parent = 0;
  bool divergent = false;
  bool spread = false;
};

// Everything starts uniform; what is not spreads along uses and regions until nothing changes.
// Every register and every region is spread once.
class Analysis {
 public:
  explicit Analysis(const Program& program)
      : program_(program),
        left_(program.body.size(), false),
        divergent_(program.registers.size(), false) {
    find_regions();
    find_uses();
  }

  Uniformity run() {
    for (const Instruction& i : program_.body)
      if (differs_by_itself(i)) mark(i.dst);
    while (!registers_.empty() || !regions_to_spread_.empty()) {
      if (!registers_.empty()) {
        const uint32_t r = registers_.back();
        registers_.pop_back();
        for (uint32_t u = first_use_[r]; u < first_use_[r + 1]; ++u) spread_to(uses_[u]);
      } else {
        const uint32_t region = regions_to_spread_.back();
        regions_to_spread_.pop_back();
        spread_into(region);
      }
    }
    return collect();
  }

 private:
  static constexpr uint32_t kOutside = 0;  // region 0 is the whole body

  void find_regions() {
    const auto size = static_cast<uint32_t>(program_.body.size());
    regions_.push_back({0, size, 0});
    region_of_.resize(size);
    opens_.resize(size, kOutside);
    uint32_t current = kOutside;
    for (uint32_t i = 0; i < size; ++i) {
      const Form form = info(program_.body[i].op).form;
      region_of_[i] = current;
      if (form == Form::if_begin || form == Form::for_begin || form == Form::loop_begin) {
        regions_.push_back({i, size, current});
        current = static_cast<uint32_t>(regions_.size() - 1);
        opens_[i] = current;
      } else if (form == Form::end) {
        regions_[current].end = i;
        current = regions_[current].parent;
      }
    }
  }

  void find_uses() {
    first_use_.assign(program_.registers.size() + 1, 0);
    for (const Instruction& i : program_.body)
      for (const Operand& o : operands_of(i)) ++first_use_[o.reg.index + 1];
    for (size_t r = 1; r < first_use_.size(); ++r) first_use_[r] += first_use_[r - 1];
    uses_.resize(first_use_.back());
    std::vector<uint32_t> next(first_use_.begin(), first_use_.end() - 1);
    for (uint32_t i = 0; i < program_.body.size(); ++i)
      for (const Operand& o : operands_of(program_.body[i])) uses_[next[o.reg.index]++] = i;
  }

  bool differs_by_itself(const Instruction& i) const {
    switch (info(i.op).form) {
      case Form::id:
        return i.op == Opcode::thread_id || i.op == Opcode::global_id;
      case Form::atomic:
      case Form::atomic_cas:
        return true;
      case Form::load:
        return is_shared_access(i.op) || program_.parameters[i.symbol].access != Access::read;
      default:
        return false;
    }
  }

  void mark(Register r) {
    if (divergent_[r.index]) return;
    divergent_[r.index] = true;
    registers_.push_back(r.index);
  }

  void mark_region(uint32_t region) {
    if (regions_[region].divergent) return;
    regions_[region].divergent = true;
    regions_to_spread_.push_back(region);
  }

  // An operand of instruction `i` differs between threads.
  void spread_to(uint32_t i) {
    const Instruction& instruction = program_.body[i];
    const Form form = info(instruction.op).form;
    if (form == Form::if_begin || form == Form::for_begin) mark_region(opens_[i]);
    if (form != Form::group && uses(instruction, kFieldDst)) mark(instruction.dst);
  }

  bool is_loop(uint32_t region) const {
    const Opcode op = program_.body[regions_[region].begin].op;
    return op == Opcode::for_begin || op == Opcode::loop_begin;
  }

  // Not all threads run this region as often: what it assigns differs afterwards, and jumps out of
  // it make what they jump out of divergent as well. Inside a region that was spread before, all of
  // that is done.
  void spread_into(uint32_t region) {
    for (uint32_t r = region; r != kOutside; r = regions_[r].parent)
      if (regions_[r].spread) return;
    regions_[region].spread = true;
    for (uint32_t i = regions_[region].begin + 1; i < regions_[region].end; ++i) {
      const Instruction& instruction = program_.body[i];
      if (uses(instruction, kFieldDst)) mark(instruction.dst);
      if (info(instruction.op).form == Form::jump && !left_[i]) leave_loops(i);
    }
  }

  void leave_loops(uint32_t jump) {
    left_[jump] = true;
    for (uint32_t r = region_of_[jump]; r != kOutside; r = regions_[r].parent) {
      if (!is_loop(r)) continue;
      mark_region(r);
      if (program_.body[jump].op != Opcode::return_) return;
    }
  }

  Uniformity collect() const {
    Uniformity result;
    result.registers.resize(divergent_.size());
    for (size_t r = 0; r < divergent_.size(); ++r) result.registers[r] = !divergent_[r];
    result.instructions.resize(program_.body.size());
    uint32_t divergent_depth = 0;
    bool some_returned = false;
    for (uint32_t i = 0; i < program_.body.size(); ++i) {
      const Instruction& instruction = program_.body[i];
      const bool opens = opens_[i] != kOutside;
      if (instruction.op == Opcode::end && regions_[region_of_[i]].divergent) --divergent_depth;
      result.instructions[i] = divergent_depth == 0 && !some_returned;
      if (opens && regions_[opens_[i]].divergent) ++divergent_depth;
      if (instruction.op == Opcode::return_ && divergent_depth != 0) some_returned = true;
    }
    return result;
  }

  const Program& program_;
  std::vector<Region> regions_;
  std::vector<uint32_t> region_of_;  // instruction -> innermost region around it
  std::vector<uint32_t> opens_;      // instruction -> region it opens, kOutside for none
  std::vector<uint32_t> first_use_;  // register -> where its uses start in uses_
  std::vector<uint32_t> uses_;       // instructions
  std::vector<bool> left_;           // jumps whose loops are divergent already
  std::vector<bool> divergent_;      // registers
  std::vector<uint32_t> registers_;  // to spread
  std::vector<uint32_t> regions_to_spread_;
};

}  // namespace

Uniformity analyse_uniformity(const Program& program) { return Analysis(program).run(); }

}  // namespace hologram::isa
