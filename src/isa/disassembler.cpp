#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "isa/fields.h"
#include "isa/literal.h"
#include "isa/text.h"

namespace hologram::isa {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string instruction(const Instruction& i) const {
    const Form form = info(i.op).form;
    const std::string_view name = info(i.op).name;
    const std::string typed = fmt::format("{}.{}", name, type_name(i.type));
    switch (form) {
      case Form::immediate:
        return fmt::format("{} = {} {}", reg(i.dst), typed, print_literal(i.type, i.immediate));
      case Form::move:
      case Form::unary:
      case Form::group:
      case Form::convert:
      case Form::bitcast:
        return fmt::format("{} = {} {}", reg(i.dst), typed, reg(i.a));
      case Form::binary:
      case Form::shift:
      case Form::compare:
        return fmt::format("{} = {} {}, {}", reg(i.dst), typed, reg(i.a), reg(i.b));
      case Form::ternary:
      case Form::select:
        return fmt::format("{} = {} {}, {}, {}", reg(i.dst), typed, reg(i.a), reg(i.b), reg(i.c));
      case Form::parameter:
      case Form::length:
        return fmt::format("{} = {} {}", reg(i.dst), name, symbol(i));
      case Form::id:
        return fmt::format("{} = {}.{}.{}", reg(i.dst), name,
                           i.aux == 0   ? "x"
                           : i.aux == 1 ? "y"
                                        : "z",
                           type_name(i.type));
      case Form::load:
        return fmt::format("{} = {} {}[{}]", reg(i.dst), name, symbol(i), reg(i.a));
      case Form::store:
        return fmt::format("{} {}[{}], {}", name, symbol(i), reg(i.a), reg(i.b));
      case Form::atomic:
        return fmt::format("{} = {} {}[{}], {}", reg(i.dst), name, symbol(i), reg(i.a), reg(i.b));
      case Form::atomic_cas:
        return fmt::format("{} = {} {}[{}], {}, {}", reg(i.dst), name, symbol(i), reg(i.a),
                           reg(i.b), reg(i.c));
      case Form::if_begin:
        return fmt::format("if {}", reg(i.a));
      case Form::for_begin:
        return fmt::format("{} {} = {} to {} step {}", typed, reg(i.dst), reg(i.a), reg(i.b),
                           reg(i.c));
      case Form::barrier:
      case Form::fence:
      case Form::if_else:
      case Form::loop_begin:
      case Form::end:
      case Form::jump:
        break;
    }
    return std::string(name);
  }

  std::string program() const {
    std::string text = fmt::format("kernel {}(", program_.name);
    for (size_t i = 0; i < program_.parameters.size(); ++i) {
      const Parameter& p = program_.parameters[i];
      const char* const access = !p.is_array                 ? ""
                                 : p.access == Access::read  ? "read "
                                 : p.access == Access::write ? "write "
                                                             : "read_write ";
      fmt::format_to(std::back_inserter(text), "{}{}: {}{}{}", i == 0 ? "" : ", ", p.name, access,
                     type_name(p.type), p.is_array ? "[]" : "");
    }
    text += ")\n";
    for (const SharedArray& s : program_.shared)
      fmt::format_to(std::back_inserter(text), "  shared {}: {}[{}]\n", s.name, type_name(s.type),
                     s.count == 0 ? "" : fmt::to_string(s.count));
    declare_registers(text);

    size_t depth = 1;
    for (const Instruction& i : program_.body) {
      const Form form = info(i.op).form;
      if ((form == Form::end || form == Form::if_else) && depth > 1) --depth;
      text.append(2 * depth, ' ').append(instruction(i)) += '\n';
      if (form == Form::if_begin || form == Form::if_else || form == Form::for_begin ||
          form == Form::loop_begin)
        ++depth;
    }
    return text += "end\n";
  }

 private:
  static std::string_view type_name(DType type) {
    return dtype_from_code(static_cast<uint8_t>(type)) ? name_of(type) : "?";
  }
  static std::string reg(Register r) { return r.valid() ? fmt::format("%{}", r.index) : "%?"; }
  std::string_view symbol(const Instruction& i) const {
    if (is_shared_access(i.op)) {
      if (i.symbol < program_.shared.size()) return program_.shared[i.symbol].name;
    } else if (i.symbol < program_.parameters.size()) {
      return program_.parameters[i.symbol].name;
    }
    return "?";
  }

  // The assembler learns a register's type where it is first assigned. Those it would meet in
  // another way, or never, are declared.
  void declare_registers(std::string& text) const {
    std::vector<bool> assigned(program_.registers.size()),
        declared(program_.registers.size(), true);
    for (const Instruction& i : program_.body) {
      for (const Operand& operand : operands_of(i))
        if (operand.reg.index < assigned.size() && !assigned[operand.reg.index])
          assigned[operand.reg.index] = true;  // read first: stays declared
      if (uses(i, kFieldDst) && i.dst.index < assigned.size() && !assigned[i.dst.index]) {
        assigned[i.dst.index] = true;
        declared[i.dst.index] = false;
      }
    }
    for (size_t r = 0; r < declared.size(); ++r)
      if (declared[r])
        fmt::format_to(std::back_inserter(text), "  register %{}: {}\n", r,
                       type_name(program_.registers[r]));
  }

  const Program& program_;
};

}  // namespace

std::string disassemble(const Program& program) { return Printer(program).program(); }

std::string disassemble(const Program& program, const Instruction& instruction) {
  return Printer(program).instruction(instruction);
}

}  // namespace hologram::isa
