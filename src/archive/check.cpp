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

Status bad(const char* what) { return fail(ErrorCode::corrupt, "the plan is wrong: {}", what); }

// Tensors (1), sequences of tensors (2), and optionals of either (3).
Status check_type(const Type* type, const Model& model, int most = 3) {
  if (!type || type->kind() < 1 || type->kind() > most) return bad("a value without a type");
  if (type->kind() != 1) return check_type(type->element(), model, type->kind() - 1);
  if (!dtype_from_code(type->dtype())) return bad("an unknown element type");
  if (length(type->dims()) > kMaxRank) return bad("too many dimensions");
  for (size_t i = 0; i < length(type->dims()); ++i) {
    const int64_t expression = type->dims()->Get(i)->expression();
    if (expression < -1 || expression >= static_cast<int64_t>(length(model.expressions())))
      return bad("a dimension without its expression");
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

Status check_ids(const flatbuffers::Vector<uint32_t>* ids, size_t values, bool may_be_left_out) {
  for (size_t i = 0; i < length(ids); ++i)
    if (ids->Get(i) >= values && !(may_be_left_out && ids->Get(i) == kNone))
      return bad("a value that does not exist");
  return {};
}

// Every capture of the subplan is given, and nothing else.
Status check_captures(const Subplan& sub) {
  std::vector<bool> given(length(sub.plan()->values()));
  for (size_t i = 0; i < length(sub.inner()); ++i) given[sub.inner()->Get(i)] = true;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != (sub.plan()->values()->Get(i)->storage() == Storage::capture))
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
  for (size_t i = 0; i < values; ++i) {
    const Value* value = plan->values()->Get(i);
    HOLOGRAM_CHECK(check_type(value->type(), model));
    if (value->storage() > Storage::view) return bad("an unknown storage");
    if (value->storage() == Storage::capture && depth == 0) return bad("a capture of nothing");
    if (value->storage() == Storage::arena && value->type()->kind() != 1)
      return bad("planned memory for what is no tensor");
    if (value->storage() == Storage::view &&
        (value->source() < 0 || static_cast<size_t>(value->source()) >= values ||
         static_cast<size_t>(value->source()) == i))
      return bad("a view of a value that does not exist");
    if (value->storage() == Storage::constant) {
      if (value->constant() < 0 || static_cast<size_t>(value->constant()) >= constants)
        return bad("a constant that does not exist");
      if (value->type()->kind() != 1 ||
          value->type()->dtype() != model.constants()->Get(value->constant())->dtype())
        return bad("a constant of another type");
    }
    if (value->elements() < -1 || value->elements() >= expressions)
      return bad("a size without its expression");
    if (value->storage() == Storage::arena && blocks > 0 &&
        (value->block() < 0 || static_cast<size_t>(value->block()) >= blocks))
      return bad("a value outside the blocks");
    if (value->storage() == Storage::arena && blocks == 0 && value->elements() >= 0)
      return bad("a size that is not fixed, without blocks");
    if (value->storage() == Storage::arena && blocks == 0 &&
        (value->offset() % 64 != 0 || value->offset() > plan->arena() ||
         value->size() > plan->arena() - value->offset()))
      return bad("a value outside the arena");
  }
  HOLOGRAM_CHECK(check_ids(plan->inputs(), values, false));
  HOLOGRAM_CHECK(check_ids(plan->outputs(), values, false));
  // What steps may read: it has been given or made, and not yet let go.
  std::vector<bool> there(values);
  for (size_t i = 0; i < values; ++i) {
    const Storage storage = plan->values()->Get(i)->storage();
    there[i] = storage == Storage::constant || storage == Storage::capture;
  }
  for (size_t i = 0; i < length(plan->inputs()); ++i) {
    if (plan->values()->Get(plan->inputs()->Get(i))->storage() != Storage::input)
      return bad("an input that is something else");
    there[plan->inputs()->Get(i)] = true;
  }
  std::vector<bool> made(values);
  const auto all_there = [&](const flatbuffers::Vector<uint32_t>* ids) {
    for (size_t i = 0; i < length(ids); ++i)
      if (ids->Get(i) != kNone && !there[ids->Get(i)]) return false;
    return true;
  };
  for (size_t i = 0; i < length(plan->steps()); ++i) {
    const Step* step = plan->steps()->Get(i);
    if (step->kind() > StepKind::control) return bad("an unknown kind of step");
    HOLOGRAM_CHECK(check_ids(step->inputs(), values, true));
    HOLOGRAM_CHECK(check_ids(step->outputs(), values, true));
    HOLOGRAM_CHECK(check_ids(step->release(), values, false));
    if (!all_there(step->inputs())) return bad("a step that reads what nothing made");
    if (step->kind() == StepKind::program &&
        (step->program() < 0 || static_cast<size_t>(step->program()) >= length(model.programs())))
      return bad("a program that does not exist");
    if (step->kind() != StepKind::program && !step->kernel()) return bad("a step without a kernel");
    for (size_t k = 0; k < length(step->attributes()); ++k) {
      const Attribute* attribute = step->attributes()->Get(k);
      if (!attribute->name() || attribute->kind() > 6 || !is_aligned(attribute->integers()))
        return bad("a malformed attribute");
      if (attribute->kind() == 6 &&
          (attribute->constant() < 0 || static_cast<size_t>(attribute->constant()) >= constants))
        return bad("a constant that does not exist");
      if (attribute->kind() == 6 && model.constants()->Get(attribute->constant())->tensor() >= 0)
        return bad("an attribute among the weights");
    }
    for (size_t k = 0; k < length(step->subplans()); ++k) {
      const Subplan* sub = step->subplans()->Get(k);
      HOLOGRAM_CHECK(check_plan(sub->plan(), model, depth + 1));
      if (!sub->name() || length(sub->outer()) != length(sub->inner()))
        return bad("a malformed subplan");
      HOLOGRAM_CHECK(check_ids(sub->outer(), values, false));
      HOLOGRAM_CHECK(check_ids(sub->inner(), length(sub->plan()->values()), false));
      if (!all_there(sub->outer())) return bad("a subplan that captures what nothing made");
      HOLOGRAM_CHECK(check_captures(*sub));
    }
    for (size_t k = 0; k < length(step->outputs()); ++k) {
      const uint32_t id = step->outputs()->Get(k);
      if (id == kNone) continue;
      if (made[id]) return bad("a value made twice");
      there[id] = made[id] = true;
    }
    for (size_t k = 0; k < length(step->release()); ++k) there[step->release()->Get(k)] = false;
  }
  if (!all_there(plan->outputs())) return bad("an output that nothing made");
  return check_memory(*plan);
}

}  // namespace

Status check(const Model& model, uint64_t constant_bytes, bool has_weights) {
  for (size_t i = 0; i < length(model.constants()); ++i) {
    const Constant* constant = model.constants()->Get(i);
    const auto dtype = dtype_from_code(constant->dtype());
    if (!dtype || length(constant->dims()) > kMaxRank || !is_aligned(constant->dims()))
      return bad("a malformed constant");
    uint64_t count = 1;
    bool empty = false;
    for (size_t k = 0; k < length(constant->dims()); ++k) {
      const int64_t dim = constant->dims()->Get(k);
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
  return check_plan(model.plan(), model, 0);
}

}  // namespace hologram::archive
