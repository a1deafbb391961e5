#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "isa/fields.h"
#include "isa/lexer.h"
#include "isa/literal.h"
#include "isa/register_names.h"
#include "isa/text.h"
#include "isa/verifier.h"

namespace hologram::isa {
namespace {

constexpr std::string_view kTypeNames =
    "bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 or f64";

// A register or a literal, as written.
struct Written {
  Field field;
  Token token;
  Register reg;  // none for a literal
};

class Assembler {
 public:
  explicit Assembler(std::string_view text) : lexer_(text) { advance(); }

  Result<Program> run() {
    skip_lines();
    HOLOGRAM_CHECK(header());
    while (true) {
      skip_lines();
      if (token_.kind == TokenKind::end) return unexpected("an instruction or 'end'");
      if (depth_ == 0 && token_.is("end")) break;
      HOLOGRAM_CHECK(line());
      if (token_.kind != TokenKind::end) HOLOGRAM_CHECK(expect_newline());
    }
    advance();
    skip_lines();
    if (token_.kind != TokenKind::end) return unexpected("the end of the text");
    HOLOGRAM_CHECK(registers_.resolve(program_));
    if (const auto bad = find_violation(program_)) return violation(*bad);
    return std::move(program_);
  }

 private:
  // ---- tokens

  void advance() { token_ = lexer_.next(); }
  void skip_lines() {
    while (token_.kind == TokenKind::newline) advance();
  }
  std::unexpected<Error> unexpected(std::string_view wanted) const {
    return fail_at(token_, "expected {}, found {}", wanted, describe(token_));
  }
  Status expect(std::string_view punctuation) {
    if (!token_.is(punctuation)) return unexpected(fmt::format("'{}'", punctuation));
    advance();
    return {};
  }
  Status expect_newline() {
    if (token_.kind != TokenKind::newline) return unexpected("the end of the line");
    advance();
    return {};
  }
  Result<Token> expect_name(std::string_view what) {
    if (token_.kind != TokenKind::word) return unexpected(what);
    if (!is_identifier(token_.text))
      return fail_at(token_, "a name has at most {} characters", kMaxNameLength);
    const Token name = token_;
    advance();
    return name;
  }
  Result<DType> expect_type() {
    const auto type = token_.kind == TokenKind::word ? compute_type(token_.text) : std::nullopt;
    if (!type) return unexpected(fmt::format("a type ({})", kTypeNames));
    advance();
    return *type;
  }
  static std::optional<DType> compute_type(std::string_view name) {
    const auto type = dtype_from_name(name);
    return type && is_compute(*type) ? type : std::nullopt;
  }

  // ---- declarations

  Status declare(const Token& name) {
    for (const Parameter& p : program_.parameters)
      if (p.name == name.text) return fail_at(name, "'{}' is declared twice", name.text);
    for (const SharedArray& s : program_.shared)
      if (s.name == name.text) return fail_at(name, "'{}' is declared twice", name.text);
    return {};
  }

  Status header() {
    if (!token_.is("kernel")) return unexpected("'kernel'");
    advance();
    HOLOGRAM_TRY(name_, expect_name("the kernel's name"));
    program_.name = name_.text;
    HOLOGRAM_CHECK(expect("("));
    skip_lines();
    while (!token_.is(")")) {
      if (!program_.parameters.empty()) {
        HOLOGRAM_CHECK(expect(","));
        skip_lines();
      }
      if (program_.parameters.size() == kMaxParameters)
        return fail_at(token_, "more than {} parameters", kMaxParameters);
      HOLOGRAM_CHECK(parameter());
      skip_lines();
    }
    advance();
    return expect_newline();
  }

  // name: type | name: access type[]
  Status parameter() {
    HOLOGRAM_TRY(const Token name, expect_name("a parameter's name"));
    HOLOGRAM_CHECK(declare(name));
    HOLOGRAM_CHECK(expect(":"));
    Parameter parameter{.name = std::string(name.text)};
    for (const auto& [word, access] :
         {std::pair{"read", Access::read}, std::pair{"write", Access::write},
          std::pair{"read_write", Access::read_write}}) {
      if (parameter.is_array || !token_.is(word)) continue;
      parameter.is_array = true;
      parameter.access = access;
      advance();
    }
    HOLOGRAM_TRY(parameter.type, expect_type());
    if (parameter.is_array) {
      HOLOGRAM_CHECK(expect("["));
      HOLOGRAM_CHECK(expect("]"));
    } else if (token_.is("[")) {
      return fail_at(token_, "say what the array is for: '{}: read {}[]', write or read_write",
                     name.text, name_of(parameter.type));
    }
    program_.parameters.push_back(std::move(parameter));
    return {};
  }

  // shared name: type[count] | shared name: type[]
  Status shared() {
    advance();
    HOLOGRAM_TRY(const Token name, expect_name("the shared array's name"));
    HOLOGRAM_CHECK(declare(name));
    if (program_.shared.size() == kMaxSharedArrays)
      return fail_at(name, "more than {} shared arrays", kMaxSharedArrays);
    HOLOGRAM_CHECK(expect(":"));
    SharedArray array{.name = std::string(name.text)};
    HOLOGRAM_TRY(array.type, expect_type());
    HOLOGRAM_CHECK(expect("["));
    if (!token_.is("]")) {
      const char* const end = token_.text.data() + token_.text.size();
      const auto [stopped, error] = std::from_chars(token_.text.data(), end, array.count);
      if (token_.kind != TokenKind::number || error != std::errc{} || stopped != end ||
          array.count == 0)
        return unexpected("a number of elements from 1, or nothing");
      advance();
    }
    HOLOGRAM_CHECK(expect("]"));
    program_.shared.push_back(std::move(array));
    return {};
  }

  // register %name: type
  Status declare_register() {
    advance();
    HOLOGRAM_TRY(const Written written, operand(kFieldDst));
    if (!written.reg.valid()) return fail_at(written.token, "expected a register");
    if (registers_.type_of(written.reg))
      return fail_at(written.token, "%{} is declared twice", written.token.text);
    HOLOGRAM_CHECK(expect(":"));
    HOLOGRAM_TRY(const DType type, expect_type());
    registers_.set_type(written.reg, type);
    return {};
  }

  // ---- instructions

  Status line() {
    if (token_.is("shared") || token_.is("register")) {
      if (!program_.body.empty())
        return fail_at(token_, "declarations come before the first instruction");
      return token_.is("shared") ? shared() : declare_register();
    }
    if (program_.body.size() >= kMaxInstructions)
      return fail_at(token_, "more than {} instructions", kMaxInstructions);
    return instruction();
  }

  // The parts of one line.
  struct Statement {
    Token mnemonic;
    Instruction instruction;
    std::optional<DType> type;  // written after the operation
    std::optional<Written> dst;
    std::array<std::optional<Written>, 3> operands;  // a, b, c
  };

  Status instruction() {
    Statement s;
    const bool assigns = token_.kind == TokenKind::reg;
    if (assigns) {
      HOLOGRAM_TRY(s.dst, operand(kFieldDst));
      HOLOGRAM_CHECK(expect("="));
    }
    if (token_.kind != TokenKind::word)
      return unexpected(assigns ? "an operation" : "an instruction or 'end'");
    HOLOGRAM_CHECK(mnemonic(s));
    const Form form = info(s.instruction.op).form;
    const bool gives = uses(s.instruction, kFieldDst) && form != Form::for_begin;
    const std::string_view name = info(s.instruction.op).name;
    if (gives && !assigns)
      return fail_at(s.mnemonic, "'{}' gives a result: write '%name = {} ...'", name, name);
    if (assigns && !gives) return fail_at(s.mnemonic, "'{}' gives no result to assign", name);
    HOLOGRAM_CHECK(arguments(s));
    HOLOGRAM_CHECK(resolve_type(s));
    HOLOGRAM_CHECK(resolve_operands(s));
    if (form == Form::if_begin || form == Form::for_begin || form == Form::loop_begin) ++depth_;
    if (form == Form::end) --depth_;
    append(s, s.instruction);
    return {};
  }

  // Constants among the operands become instructions of their own on the same line.
  void append(const Statement& s, const Instruction& instruction) {
    places_.push_back(s.mnemonic);
    program_.body.push_back(instruction);
  }

  // name, name.type or name.axis.type
  Status mnemonic(Statement& s) {
    s.mnemonic = token_;
    std::string_view rest = token_.text;
    Token part = token_;
    const auto next_part = [&] {
      const size_t dot = std::min(rest.find('.'), rest.size());
      part.text = rest.substr(0, dot);
      part.column = token_.column + static_cast<uint32_t>(rest.data() - token_.text.data());
      rest.remove_prefix(std::min(dot + 1, rest.size()));
      return !part.text.empty();
    };
    next_part();
    const auto op = opcode_from_name(part.text);
    if (!op) return fail_at(part, "there is no operation '{}'", part.text);
    s.instruction.op = *op;
    const Form form = info(*op).form;
    if (form == Form::id) {
      next_part();
      if (part.text != "x" && part.text != "y" && part.text != "z")
        return fail_at(s.mnemonic, "expected an axis: {}.x, {}.y or {}.z", info(*op).name,
                       info(*op).name, info(*op).name);
      s.instruction.aux = static_cast<uint8_t>(part.text[0] - 'x');
    }
    if (!rest.empty()) {
      next_part();
      s.type = compute_type(part.text);
      if (!s.type || !rest.empty())
        return fail_at(part, "expected a type ({}), found '{}'", kTypeNames, part.text);
      if (!takes_type(form)) return fail_at(part, "'{}' is written without a type", info(*op).name);
    }
    advance();
    return {};
  }

  static bool takes_type(Form form) {
    switch (form) {
      case Form::immediate:
      case Form::move:
      case Form::convert:
      case Form::bitcast:
      case Form::unary:
      case Form::binary:
      case Form::shift:
      case Form::ternary:
      case Form::compare:
      case Form::select:
      case Form::id:
      case Form::group:
      case Form::for_begin:
        return true;
      default:
        return false;
    }
  }

  Result<Written> operand(Field field) {
    Written written{field, token_, {}};
    const bool literal = token_.kind == TokenKind::number || token_.is("inf") || token_.is("nan") ||
                         token_.is("true") || token_.is("false");
    if (token_.kind != TokenKind::reg && !literal) return unexpected("a register or a constant");
    if (!literal) {
      HOLOGRAM_TRY(written.reg, registers_.find(token_));
    }
    advance();
    return written;
  }
  Status operand_into(Statement& s, size_t place) {
    constexpr Field kFields[] = {kFieldA, kFieldB, kFieldC};
    HOLOGRAM_TRY(s.operands[place], operand(kFields[place]));
    return {};
  }

  Status arguments(Statement& s) {
    const Instruction& i = s.instruction;
    switch (info(i.op).form) {
      case Form::immediate:
        return operand_into(s, 0);
      case Form::parameter:
      case Form::length:
        return symbol(s);
      case Form::load:
        return access(s);
      case Form::store:
      case Form::atomic:
        HOLOGRAM_CHECK(access(s));
        HOLOGRAM_CHECK(expect(","));
        return operand_into(s, 1);
      case Form::atomic_cas:
        HOLOGRAM_CHECK(access(s));
        HOLOGRAM_CHECK(expect(","));
        HOLOGRAM_CHECK(operand_into(s, 1));
        HOLOGRAM_CHECK(expect(","));
        return operand_into(s, 2);
      case Form::for_begin:
        return for_arguments(s);
      default:
        break;
    }
    const unsigned count = operands_of(i).count;
    for (unsigned k = 0; k < count; ++k) {
      if (k != 0) HOLOGRAM_CHECK(expect(","));
      HOLOGRAM_CHECK(operand_into(s, k));
    }
    return {};
  }

  // %counter = begin to end [step by]
  Status for_arguments(Statement& s) {
    if (token_.kind != TokenKind::reg) return unexpected("the counter, a register");
    HOLOGRAM_TRY(s.dst, operand(kFieldDst));
    HOLOGRAM_CHECK(expect("="));
    HOLOGRAM_CHECK(operand_into(s, 0));
    HOLOGRAM_CHECK(expect("to"));
    HOLOGRAM_CHECK(operand_into(s, 1));
    if (token_.is("step")) {
      advance();
      return operand_into(s, 2);
    }
    s.operands[2] = Written{kFieldC, {TokenKind::number, "1", token_.line, token_.column}, {}};
    return {};
  }

  Status access(Statement& s) {
    HOLOGRAM_CHECK(symbol(s));
    HOLOGRAM_CHECK(expect("["));
    HOLOGRAM_CHECK(operand_into(s, 0));
    return expect("]");
  }

  // The name of a parameter or a shared array, whichever the operation is for.
  Status symbol(Statement& s) {
    Instruction& i = s.instruction;
    const bool wants_shared = is_shared_access(i.op);
    HOLOGRAM_TRY(const Token name,
                 expect_name(wants_shared ? "a shared array's name" : "a parameter's name"));
    for (uint32_t k = 0; k < program_.shared.size(); ++k) {
      if (program_.shared[k].name != name.text) continue;
      if (!wants_shared)
        return fail_at(name, "'{}' is a shared array, expected a parameter", name.text);
      i.symbol = k;
      i.type = program_.shared[k].type;
      return {};
    }
    const auto parameter = program_.find_parameter(name.text);
    if (!parameter)
      return fail_at(name, "there is no {} '{}'", wants_shared ? "shared array" : "parameter",
                     name.text);
    if (wants_shared)
      return fail_at(name, "'{}' is a parameter, expected a shared array", name.text);
    i.symbol = *parameter;
    i.type = i.op == Opcode::length ? DType::u64 : program_.parameters[*parameter].type;
    return {};
  }

  // ---- types

  // Written, or that of the first operand of the operation's type, or of the result.
  Status resolve_type(Statement& s) {
    Instruction& i = s.instruction;
    const Form form = info(i.op).form;
    if (!takes_type(form)) return {};
    std::optional<DType> type = s.type;
    const bool own_target = form == Form::convert || form == Form::bitcast;
    for (const auto& written : s.operands) {
      const bool other_type = (form == Form::select && written && written->field == kFieldA) ||
                              (form == Form::shift && written && written->field == kFieldB);
      if (type || own_target || !written || !written->reg.valid() || other_type) continue;
      type = registers_.type_of(written->reg);
    }
    if (!type && s.dst && form != Form::compare) type = registers_.type_of(s.dst->reg);
    if (!type && form == Form::id) type = DType::u32;
    if (!type)
      return fail_at(s.mnemonic, "the type is missing: write '{}.f32', for instance",
                     info(i.op).name);
    i.type = *type;
    if (!accepts(i.op, i.type))
      return fail_at(s.mnemonic, "'{}' does not work on {}", info(i.op).name, name_of(i.type));
    return {};
  }

  Status resolve_operands(Statement& s) {
    Instruction& i = s.instruction;
    if (info(i.op).form == Form::immediate) {
      const Token& token = s.operands[0]->token;
      if (s.operands[0]->reg.valid())
        return fail_at(token, "expected a constant, found %{}; to copy a register use mov",
                       token.text);
      HOLOGRAM_TRY(i.immediate, literal(i.type, token));
    } else {
      for (const auto& written : s.operands)
        if (written) HOLOGRAM_CHECK(resolve_operand(s, *written));
    }
    return s.dst ? resolve_result(s) : Status{};
  }

  Status resolve_operand(Statement& s, const Written& written) {
    Instruction& i = s.instruction;
    Register& place = written.field == kFieldA ? i.a : written.field == kFieldB ? i.b : i.c;
    if (!written.reg.valid()) {
      if (uses(i, kFieldFrom))
        return fail_at(written.token, "expected a register, found '{}'; for a constant use imm",
                       written.token.text);
      const DType type = register_type(i, written.field).value_or(DType::u64);
      HOLOGRAM_TRY(const uint64_t bits, literal(type, written.token));
      place = registers_.unnamed(type);
      append(s, {.op = Opcode::imm, .type = type, .dst = place, .immediate = bits});
      return {};
    }
    place = written.reg;
    const std::optional<DType> type = registers_.type_of(written.reg);
    if (!type)
      return fail_at(written.token,
                     "%{} is not assigned yet; assign it first, or declare it as 'register %{}: "
                     "type'",
                     written.token.text, written.token.text);
    if (uses(i, kFieldFrom)) i.from = *type;
    const std::optional<DType> wanted = register_type(i, written.field);
    if (wanted ? *wanted == *type : is_integer(*type)) return {};
    return fail_at(written.token, "%{} is {}, expected {}", written.token.text, name_of(*type),
                   wanted ? name_of(*wanted) : "an integer");
  }

  Result<uint64_t> literal(DType type, const Token& token) const {
    Result<uint64_t> bits = parse_literal(type, token.text);
    if (!bits) return fail_at(token, "{}", bits.error().message());
    return bits;
  }

  Status resolve_result(Statement& s) {
    s.instruction.dst = s.dst->reg;
    const DType gives = *register_type(s.instruction, kFieldDst);
    const std::optional<DType> has = registers_.type_of(s.dst->reg);
    if (has && *has != gives)
      return fail_at(s.dst->token, "%{} is {}, but '{}' gives {}", s.dst->token.text, name_of(*has),
                     s.mnemonic.text, name_of(gives));
    registers_.set_type(s.dst->reg, gives);
    return {};
  }

  // The verifier speaks of register numbers; the text may have names.
  std::unexpected<Error> violation(const Violation& bad) const {
    const std::string message = registers_.with_names(bad.message);
    if (bad.instruction == Violation::kWholeProgram)
      return fail(ErrorCode::verify_error, "{}:{}: {}", name_.line, name_.column, message);
    const Token& place = places_[bad.instruction];
    return fail(ErrorCode::verify_error, "{}:{}: {}: {}", place.line, place.column,
                info(program_.body[bad.instruction].op).name, message);
  }

  Lexer lexer_;
  Token token_;
  Token name_;  // of the kernel
  Program program_;
  RegisterNames registers_;
  std::vector<Token> places_;  // one an instruction
  uint32_t depth_ = 0;
};

}  // namespace

Result<Program> assemble(std::string_view text) { return Assembler(text).run(); }

}  // namespace hologram::isa
