// Einsum: operands are contracted from left to right, two at a time, each time as a batch of
// matrix products.
#include <algorithm>
#include <string_view>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/linear_algebra.h"

namespace hologram::kernels {
namespace {

// Letters are themselves; the axes of "..." are 1, 2, ... counted from the last one.
using Label = char;

struct Labels {
  Label items[kMaxRank];
  size_t count = 0;
  bool has(Label label) const { return std::find(begin(), end(), label) != end(); }
  const Label* begin() const { return items; }
  const Label* end() const { return items + count; }
  Status add(Label label) {
    if (count == kMaxRank)
      return fail(ErrorCode::unsupported, "a term of more than {} dimensions", kMaxRank);
    items[count++] = label;
    return {};
  }
};

// A tensor whose axes have labels; axes of one label share a step (a diagonal).
template <typename T>
struct Term {
  Labels labels;
  int64_t sizes[kMaxRank], steps[kMaxRank];
  const T* data = nullptr;

  size_t find(Label label) const {
    return std::find(labels.begin(), labels.end(), label) - labels.begin();
  }
  int64_t size(Label label) const {
    const size_t i = find(label);
    return i < labels.count ? sizes[i] : 1;
  }
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The labels of one side of the equation's text. `rank`: of the operand, or -1 for the result,
// whose "..." has `ellipsis` axes. Leaves in `ellipsis` how many axes it was.
Result<Labels> parse(std::string_view text, int64_t rank, int64_t& ellipsis) {
  Labels labels;
  int64_t letters = 0;
  for (const char c : text) letters += is_letter(c);
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (is_letter(text[i])) {
      HOLOGRAM_CHECK(labels.add(text[i]));
    } else if (text.substr(i).starts_with("...") && !seen) {
      seen = true;
      i += 2;
      if (rank >= 0) ellipsis = rank - letters;
      for (int64_t axis = ellipsis; axis > 0; --axis)
        HOLOGRAM_CHECK(labels.add(static_cast<Label>(axis)));
    } else {
      return fail(ErrorCode::invalid_argument, "the term '{}' of the equation", text);
    }
  }
  if (rank >= 0 && static_cast<int64_t>(labels.count) != rank)
    return fail(ErrorCode::shape_mismatch, "the term '{}' for an operand of rank {}", text, rank);
  return labels;
}

template <typename T>
Result<Term<T>> make_term(const Tensor& tensor, const Labels& labels) {
  Term<T> term;
  term.data = tensor.as<T>();
  const Dims strides = tensor.dims.strides();
  for (size_t axis = 0; axis < labels.count; ++axis) {
    const Label label = labels.items[axis];
    const size_t at = term.find(label);
    if (at < term.labels.count) {
      if (term.sizes[at] != tensor.dims[axis])
        return fail(ErrorCode::shape_mismatch, "'{}' is {} and {} in one operand", label,
                    term.sizes[at], tensor.dims[axis]);
      term.steps[at] += strides[axis];
      continue;
    }
    term.sizes[at] = tensor.dims[axis];
    term.steps[at] = strides[axis];
    HOLOGRAM_CHECK(term.labels.add(label));
  }
  return term;
}

// Writes the term's elements in the order of `kept` (whose sizes are `sizes`: a size 1 of the term
// is repeated), adding up its other axes.
template <typename T>
void arrange(const Term<T>& term, std::span<const Label> kept, const int64_t* sizes, T* out) {
  int64_t steps[3 * kMaxRank] = {}, extra_sizes[kMaxRank], extra_steps[kMaxRank];
  int64_t count = 1, extra_count = 1, index[3 * kMaxRank] = {};
  size_t extras = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t at = term.find(kept[i]);
    steps[i] = at < term.labels.count && term.sizes[at] != 1 ? term.steps[at] : 0;
    count *= sizes[i];
  }
  for (size_t i = 0; i < term.labels.count; ++i)
    if (std::find(kept.begin(), kept.end(), term.labels.items[i]) == kept.end()) {
      extra_sizes[extras] = term.sizes[i];
      extra_steps[extras++] = term.steps[i];
      extra_count *= term.sizes[i];
    }
  const T* from = term.data;
  for (int64_t n = 0; n < count; ++n) {
    T sum = 0;
    for (int64_t e = 0; e < extra_count; ++e) {
      int64_t rest = e, offset = 0;
      for (size_t i = extras; i-- > 0; rest /= extra_sizes[i])
        offset += rest % extra_sizes[i] * extra_steps[i];
      sum = static_cast<T>(sum + from[offset]);
    }
    out[n] = sum;
    for (size_t i = kept.size(); i-- > 0;) {
      from += steps[i];
      if (++index[i] < sizes[i]) break;
      from -= steps[i] * sizes[i];
      index[i] = 0;
    }
  }
}

// Labels of the product of two terms, in the order [batch, rows, columns], and what is summed.
struct Contraction {
  Labels batch, rows, columns, sums;
};

template <typename T>
Result<Term<T>> contract(KernelContext& c, GemmScratch& scratch, const Term<T>& a, const Term<T>& b,
                         const Labels& needed) {
  Contraction k;
  for (const Label l : a.labels)
    HOLOGRAM_CHECK(!b.labels.has(l) ? (needed.has(l) ? k.rows.add(l) : Status())
                   : needed.has(l)  ? k.batch.add(l)
                                    : k.sums.add(l));
  for (const Label l : b.labels)
    if (!a.labels.has(l) && needed.has(l)) HOLOGRAM_CHECK(k.columns.add(l));

  Label left[3 * kMaxRank], right[3 * kMaxRank];
  int64_t left_sizes[3 * kMaxRank], right_sizes[3 * kMaxRank];
  size_t lefts = 0, rights = 0;
  Term<T> result;
  Status status;
  auto add = [&](const Labels& labels, bool in_left, bool in_right, bool in_result) {
    int64_t product = 1;
    for (const Label l : labels) {
      const int64_t x = a.size(l), y = b.size(l), size = x == 1 ? y : x;
      if (x != 1 && y != 1 && x != y && status)
        status = fail(ErrorCode::shape_mismatch, "one dimension is {} and {}", x, y);
      product *= size;
      if (in_left) left[lefts] = l, left_sizes[lefts++] = size;
      if (in_right) right[rights] = l, right_sizes[rights++] = size;
      if (!in_result) continue;
      result.sizes[std::min(result.labels.count, kMaxRank - 1)] = size;
      if (Status added = result.labels.add(l); !added && status) status = std::move(added);
    }
    return product;
  };
  const int64_t batch = add(k.batch, true, true, true);
  const int64_t m = add(k.rows, true, false, true);
  const int64_t sums = add(k.sums, true, true, false);
  const int64_t n = add(k.columns, false, true, true);
  HOLOGRAM_CHECK(std::move(status));
  HOLOGRAM_TRY(auto x, c.scratch<T>(batch * m * sums));
  HOLOGRAM_TRY(auto y, c.scratch<T>(batch * sums * n));
  HOLOGRAM_TRY(auto z, c.scratch<T>(batch * m * n));
  arrange(a, std::span(left, lefts), left_sizes, x.data());
  arrange(b, std::span(right, rights), right_sizes, y.data());
  for (int64_t i = 0; !z.empty() && i < batch; ++i)
    HOLOGRAM_CHECK(gemm<T>({.m = m,
                            .n = n,
                            .k = sums,
                            .a = x.data() + i * m * sums,
                            .a_row = sums,
                            .a_column = 1,
                            .b = y.data() + i * sums * n,
                            .b_row = n,
                            .b_column = 1,
                            .c = z.data() + i * m * n,
                            .c_row = n},
                           c, scratch));
  result.data = z.data();
  for (int64_t step = 1, i = static_cast<int64_t>(result.labels.count); i-- > 0;) {
    result.steps[i] = step;
    step *= result.sizes[i];
  }
  return result;
}

std::string_view next_term(std::string_view& text) {
  const size_t comma = text.find(',');
  const std::string_view term = text.substr(0, comma);
  text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  return term;
}

// The result's labels: as written, or those that occur once, in order.
Result<Labels> result_labels(std::string_view equation, std::string_view inputs, int64_t ellipsis) {
  if (const size_t arrow = equation.find("->"); arrow != equation.npos) {
    HOLOGRAM_TRY(const Labels labels, parse(equation.substr(arrow + 2), -1, ellipsis));
    for (size_t i = 0; i < labels.count; ++i) {
      const Label l = labels.items[i];
      if (std::count(labels.begin(), labels.end(), l) != 1 ||
          (is_letter(l) && inputs.find(l) == inputs.npos))
        return fail(ErrorCode::invalid_argument, "'{}' in the result of '{}'", l, equation);
    }
    return labels;
  }
  Labels labels;
  if (inputs.find("...") != inputs.npos)
    for (int64_t axis = ellipsis; axis > 0; --axis)
      HOLOGRAM_CHECK(labels.add(static_cast<Label>(axis)));
  for (char l = 'A'; l <= 'z'; ++l)
    if (is_letter(l) && std::count(inputs.begin(), inputs.end(), l) == 1)
      HOLOGRAM_CHECK(labels.add(l));
  return labels;
}

// Sums and products wrap: their bits are those of the unsigned type, so one instance serves both.
DType without_sign(DType type) {
  switch (type) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    default:
      return type;
  }
}

}  // namespace

Status einsum(KernelContext& c) {
  const std::string_view equation = c.text("equation");
  const std::string_view inputs = equation.substr(0, equation.find("->"));
  const size_t terms = std::count(inputs.begin(), inputs.end(), ',') + 1;
  if (terms != c.input_count())
    return fail(ErrorCode::invalid_argument, "'{}' has {} terms for {} operands", equation, terms,
                c.input_count());
  // "..." may stand for fewer axes in some operands (they broadcast); the result has the most.
  int64_t ellipsis = 0;
  std::string_view rest = inputs;
  for (size_t i = 0; i < terms; ++i) {
    int64_t own = 0;
    HOLOGRAM_CHECK(parse(next_term(rest), static_cast<int64_t>(c.input(i).dims.rank()), own));
    ellipsis = std::max(ellipsis, own);
  }
  HOLOGRAM_TRY(const Labels wanted, result_labels(equation, inputs, ellipsis));

  return dispatch_number(without_sign(c.input(0).dtype), [&]<typename T>() -> Status {
    GemmScratch scratch;
    Term<T> sum;
    std::string_view text = inputs;
    for (size_t i = 0; i < terms; ++i) {
      int64_t own = 0;
      HOLOGRAM_TRY(const Labels labels,
                   parse(next_term(text), static_cast<int64_t>(c.input(i).dims.rank()), own));
      HOLOGRAM_TRY(const Term<T> term, make_term<T>(c.input(i), labels));
      if (i == 0) {
        sum = term;
        continue;
      }
      // Kept: what the result has, and what later operands have.
      Labels needed = wanted;
      for (const Label l : sum.labels)
        if (!needed.has(l) && text.find(l) != text.npos) HOLOGRAM_CHECK(needed.add(l));
      for (const Label l : term.labels)
        if (!needed.has(l) && text.find(l) != text.npos) HOLOGRAM_CHECK(needed.add(l));
      for (Label l = 1; l <= ellipsis; ++l)
        if (i + 1 < terms && !needed.has(l)) HOLOGRAM_CHECK(needed.add(l));
      HOLOGRAM_TRY(sum, contract(c, scratch, sum, term, needed));
    }
    Dims dims;
    for (const Label l : wanted) dims.push_back(sum.size(l));
    HOLOGRAM_TRY(Tensor out, c.output(0, dims));
    arrange(sum, std::span(wanted.begin(), wanted.count), dims.begin(), out.as<T>());
    return {};
  });
}

}  // namespace hologram::kernels
