#include "archive/archive.h"
#include "archive/check_memory.h"
#include "support/dtype.h"

namespace hologram::archive {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr size_t kMaxRank = 16;
constexpr int kMaxDepth = 64;
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;
constexpr uint64_t kMaxElements = uint64_t{1} << 48, kMaxWithoutElements = uint64_t{1} << 28;

template <typename V>
size_t length(const V* vector) {
  return vector ? vector->size() : 0;
}

// Elements of 8 bytes lie at multiples of 8; the FlatBuffers verifier looks at their count alone.
template <typename V>
bool is_aligned(const V* vector) {
  return !vector || reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(uint64_t) == 0;
}

[[gnu::cold, gnu::noinline]] Status bad(const char* what) {
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", what);
}

// Tensors (1), sequences of tensors (2), and optionals of either (3).
Status check_type(const Type* type, const Model& model, int most = 3) {
  const int kind = type ? type->kind() : 0;
  if (kind < 1 || kind > most) return bad("a value without a type");
  if (kind != 1) return check_type(type->element(), model, kind - 1);
  if (!dtype_from_code(type->dtype())) return bad("an unknown element type");
  const auto* dims = type->dims();
  if (length(dims) > kMaxRank) return bad("too many dimensions");
  if (!is_aligned(dims)) return bad("dimensions that lie askew");
  const auto expressions = static_cast<int64_t>(length(model.expressions()));
  const auto texts = static_cast<int64_t>(length(model.texts()));
  for (size_t i = 0; i < length(dims); ++i) {
    if (dims->Get(i)->expression() < -1 || dims->Get(i)->expression() >= expressions)
      return bad("a dimension without its expression");
    if (dims->Get(i)->text() < -1 || dims->Get(i)->text() >= texts)
      return bad("a dimension without its text");
  }
  return {};
}

// Each stands after what it is computed from.
Status check_expressions(const Model& model) {
  if (!is_aligned(model.expressions())) return bad("expressions that lie askew");
  for (uint32_t i = 0; i < length(model.expressions()); ++i) {
    const Expression* e = model.expressions()->Get(i);
    const bool good = e->operation() == Operation::number ? true
                      : e->operation() == Operation::symbol
                          ? e->a() < length(model.symbols())
                          : e->operation() <= Operation::larger && e->a() < i && e->b() < i;
    if (!good) return bad("an expression of what comes later");
  }
  return {};
}

bool all_exist(const flatbuffers::Vector<uint32_t>* ids, size_t values, bool may_be_left_out) {
  for (size_t i = 0; i < length(ids); ++i)
    if (ids->Get(i) >= values && !(may_be_left_out && ids->Get(i) == kNone)) return false;
  return true;
}

// Every capture of the subplan is given, and nothing else.
Status check_captures(const Subplan& sub) {
  std::vector<uint8_t> given(length(sub.plan()->values()));
  for (size_t i = 0; i < length(sub.inner()); ++i) given[sub.inner()->Get(i)] = true;
  for (size_t i = 0; i < given.size(); ++i)
    if ((given[i] != 0) != (sub.plan()->values()->Get(i)->storage() == Storage::capture))
      return bad("a capture that nothing gives");
  return {};
}

Status check_plan(const Plan* plan, const Model& model, int depth) {
  if (!plan || depth > kMaxDepth) return bad("a missing plan");
  const size_t values = length(plan->values()), constants = length(model.constants());
  const size_t blocks = length(plan->blocks());
  const auto expressions = static_cast<int64_t>(length(model.expressions()));
  if (plan->arena() > kMaxBytes) return bad("an arena of impossible size");
  for (size_t i = 0; i < blocks; ++i) {
    const auto* beside = plan->blocks()->Get(i)->beside();
    for (size_t k = 0; k < length(beside); ++k)
      if (beside->Get(k) >= i) return bad("a block beside a later one");
  }
  // What steps may read: it has been given or made, and not yet let go.
  std::vector<uint8_t> states(2 * values);
  const std::span there = std::span(states).first(values), made = std::span(states).last(values);
  const auto* types = model.types();
  const auto* all_values = plan->values();
  const auto* all_constants = model.constants();
  for (size_t i = 0; i < values; ++i) {
    const Value* value = all_values->Get(i);
    if (value->type() >= length(types)) return bad("a value without a type");
    const Type* type = types->Get(value->type());
    if (value->elements() < -1 || value->elements() >= expressions)
      return bad("a size without its expression");
    switch (value->storage()) {
      case Storage::pool:
      case Storage::input:
        break;
      case Storage::capture:
        if (depth == 0) return bad("a capture of nothing");
        there[i] = true;
        break;
      case Storage::view: {
        const auto source = static_cast<int64_t>(value->source());
        if (source < 0 || static_cast<size_t>(source) >= values || static_cast<size_t>(source) == i)
          return bad("a view of a value that does not exist");
        break;
      }
      case Storage::constant:
        if (value->constant() < 0 || static_cast<size_t>(value->constant()) >= constants)
          return bad("a constant that does not exist");
        if (type->kind() != 1 || type->dtype() != all_constants->Get(value->constant())->dtype())
          return bad("a constant of another type");
        there[i] = true;
        break;
      case Storage::arena:
        if (type->kind() != 1) return bad("planned memory for what is no tensor");
        if (blocks > 0) {
          if (value->block() < 0 || static_cast<size_t>(value->block()) >= blocks)
            return bad("a value outside the blocks");
          break;
        }
        if (value->elements() >= 0) return bad("a size that is not fixed, without blocks");
        if (value->offset() % 64 != 0 || value->offset() > plan->arena() ||
            value->size() > plan->arena() - value->offset())
          return bad("a value outside the arena");
        break;
      default:
        return bad("an unknown storage");
    }
  }
  const auto missing = [] { return bad("a value that does not exist"); };
  if (!all_exist(plan->inputs(), values, false) || !all_exist(plan->outputs(), values, false))
    return missing();
  for (size_t i = 0; i < length(plan->inputs()); ++i) {
    if (plan->values()->Get(plan->inputs()->Get(i))->storage() != Storage::input)
      return bad("an input that is something else");
    there[plan->inputs()->Get(i)] = true;
  }
  const auto all_there = [&](const flatbuffers::Vector<uint32_t>* ids) {
    for (size_t i = 0; i < length(ids); ++i)
      if (ids->Get(i) != kNone && !there[ids->Get(i)]) return false;
    return true;
  };
  const auto* steps = plan->steps();
  for (size_t i = 0; i < length(steps); ++i) {
    const Step* step = steps->Get(i);
    if (step->kind() > StepKind::control) return bad("an unknown kind of step");
    const auto *inputs = step->inputs(), *outputs = step->outputs(), *release = step->release();
    if (!all_exist(inputs, values, true) || !all_exist(outputs, values, true) ||
        !all_exist(release, values, false))
      return missing();
    if (!all_there(inputs)) return bad("a step that reads what nothing made");
    if (step->kind() == StepKind::program &&
        (step->program() < 0 || static_cast<size_t>(step->program()) >= length(model.programs())))
      return bad("a program that does not exist");
    if (step->kind() != StepKind::program && !step->kernel()) return bad("a step without a kernel");
    const auto* attributes = step->attributes();
    for (size_t k = 0; k < length(attributes); ++k) {
      const Attribute* attribute = attributes->Get(k);
      const int kind = attribute->kind();
      if (!attribute->name() || kind > 6 || !is_aligned(attribute->integers()))
        return bad("a malformed attribute");
      if (kind != 6) continue;
      if (attribute->constant() < 0 || static_cast<size_t>(attribute->constant()) >= constants)
        return bad("a constant that does not exist");
      if (model.constants()->Get(attribute->constant())->tensor() >= 0)
        return bad("an attribute among the weights");
    }
    const auto* subplans = step->subplans();
    for (size_t k = 0; k < length(subplans); ++k) {
      const Subplan* sub = subplans->Get(k);
      HOLOGRAM_CHECK(check_plan(sub->plan(), model, depth + 1));
      if (!sub->name() || length(sub->outer()) != length(sub->inner()))
        return bad("a malformed subplan");
      if (!all_exist(sub->outer(), values, false) ||
          !all_exist(sub->inner(), length(sub->plan()->values()), false))
        return missing();
      if (!all_there(sub->outer())) return bad("a subplan that captures what nothing made");
      HOLOGRAM_CHECK(check_captures(*sub));
    }
    for (size_t k = 0; k < length(outputs); ++k) {
      const uint32_t id = outputs->Get(k);
      if (id == kNone) continue;
      if (made[id]) return bad("a value made twice");
      there[id] = made[id] = true;
    }
    for (size_t k = 0; k < length(release); ++k) there[release->Get(k)] = false;
  }
  if (!all_there(plan->outputs())) return bad("an output that nothing made");
  return check_memory(*plan, model);
}

}  // namespace

Status check(const Model& model, uint64_t constant_bytes, bool has_weights) {
  const auto* constants = model.constants();
  for (size_t i = 0; i < length(constants); ++i) {
    const Constant* constant = constants->Get(i);
    const auto dtype = dtype_from_code(constant->dtype());
    const auto* dims = constant->dims();
    if (!dtype || length(dims) > kMaxRank || !is_aligned(dims)) return bad("a malformed constant");
    uint64_t count = 1;
    bool empty = false;
    for (size_t k = 0; k < length(dims); ++k) {
      const int64_t dim = dims->Get(k);
      // Without elements too the other dimensions are multiplied: for strides.
      empty |= dim == 0;
      if (dim < 0 || __builtin_mul_overflow(count, std::max<uint64_t>(dim, 1), &count) ||
          count > kMaxElements)
        return bad("a constant of impossible shape");
    }
    if (empty && count > kMaxWithoutElements) return bad("a constant of impossible shape");
    if (empty) count = 0;
    if (*dtype == DType::string) {
      if (length(constant->strings()) != count) return bad("a constant without its strings");
    } else if (constant->tensor() >= 0) {
      if (!has_weights || constant->size() != bytes_for(*dtype, count))
        return bad("a constant outside the weights");
    } else if (constant->size() != bytes_for(*dtype, count) || constant->offset() % 64 != 0 ||
               constant->offset() > constant_bytes ||
               constant->size() > constant_bytes - constant->offset()) {
      return bad("a constant outside its section");
    }
  }
  HOLOGRAM_CHECK(check_expressions(model));
  for (size_t i = 0; i < length(model.types()); ++i)
    HOLOGRAM_CHECK(check_type(model.types()->Get(i), model));
  return check_plan(model.plan(), model, 0);
}

}  // namespace hologram::archive
