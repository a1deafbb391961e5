// Kernels on strings.
#include <algorithm>
#include <string>

#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/regex.h"

namespace hologram::kernels {
namespace {

void append_utf8(Text& text, uint32_t point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static constexpr uint8_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLead[more] | point >> (6 * more));
  for (int i = more; i-- > 0;) text += static_cast<char>(0x80 | (point >> (6 * i) & 0x3f));
}

// Upper and lower case of the letters whose two cases lie a fixed distance apart: ASCII, Latin-1,
// Greek and Cyrillic. Others stay.
struct CaseRange {
  uint32_t lower_first, lower_last, distance;
};
constexpr CaseRange kCases[] = {{'a', 'z', 32},     {0xe0, 0xf6, 32},   {0xf8, 0xfe, 32},
                                {0x3b1, 0x3c1, 32}, {0x3c3, 0x3cb, 32}, {0x430, 0x44f, 32},
                                {0x450, 0x45f, 80}};

Text change_case(std::string_view text, bool upper) {
  Text result;
  for (uint32_t point : code_points(text)) {
    for (const CaseRange& range : kCases) {
      const uint32_t lower = upper ? point : point + range.distance;
      if (lower < range.lower_first || lower > range.lower_last) continue;
      point = upper ? point - range.distance : lower;
      break;
    }
    append_utf8(result, point);
  }
  return result;
}

Status string_normalizer(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.dims.rank() != 1 && !(in.dims.rank() == 2 && in.dims[0] == 1))
    return fail(ErrorCode::shape_mismatch, "input {}; [C] or [1, C] expected", in.dims.to_string());
  const bool sensitive = c.integer("is_case_sensitive") != 0;
  const std::string_view action = c.text("case_change_action", "NONE");
  auto folded = [&](const std::string& s) {
    return sensitive ? Text(s.begin(), s.end()) : change_case(s, false);
  };
  Set<Text> stop;
  for (const std::string& word : c.attributes().texts("stopwords")) stop.insert(folded(word));
  List<Text> kept;
  for (const std::string& word : in.strings())
    if (!stop.contains(folded(word)))
      kept.push_back(action == "NONE" ? Text(word.begin(), word.end())
                                      : change_case(word, action == "UPPER"));
  if (kept.empty()) kept.emplace_back();
  Dims dims = in.dims;
  dims[dims.rank() - 1] = static_cast<int64_t>(kept.size());
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  for (size_t i = 0; i < kept.size(); ++i) out.strings()[i].assign(kept[i].data(), kept[i].size());
  return {};
}

Status string_concat(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  HOLOGRAM_TRY(const Dims dims, broadcast_dims(a.dims, b.dims));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  auto place = [&](const Dims& of, int64_t position) {
    int64_t offset = 0, stride = 1;
    for (size_t i = 0; i < dims.rank(); ++i) {
      const size_t axis = dims.rank() - 1 - i;
      const int64_t index = position % dims[axis];
      position /= dims[axis];
      if (i >= of.rank()) continue;
      const int64_t size = of[of.rank() - 1 - i];
      if (size != 1) offset += index * stride;
      stride *= size;
    }
    return offset;
  };
  // A loop doubles a text in every step.
  constexpr size_t kMostText = size_t{1} << 28;
  size_t total = 0;
  for (int64_t i = 0; i < out.count(); ++i) {
    const std::string &left = a.as<std::string>()[place(a.dims, i)],
                      &right = b.as<std::string>()[place(b.dims, i)];
    total += left.size() + right.size();
    if (total > kMostText)
      return fail(ErrorCode::resource_exhausted, "texts of more than {} bytes", kMostText);
    out.as<std::string>()[i].assign(left).append(right);
  }
  return {};
}

// Without a delimiter: at runs of white space, which also vanish at both ends.
List<std::string_view> split(std::string_view text, std::string_view delimiter, int64_t most) {
  static constexpr std::string_view kSpace = " \t\n\r\f\v";
  List<std::string_view> parts;
  const bool blank = delimiter.empty();
  if (blank) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return parts;
  }
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = blank ? text.find_first_of(kSpace) : text.find(delimiter);
    if (at == text.npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + (blank ? 0 : delimiter.size()));
    if (!blank) continue;
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return parts;
  }
  if (blank) text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  parts.emplace_back(text);
  return parts;
}

Status string_split(KernelContext& c) {
  const Tensor& in = c.input(0);
  const int64_t most = c.integer("maxsplit", -1);
  List<List<std::string_view>> rows;
  size_t longest = 0;
  for (const std::string& text : in.strings()) {
    rows.push_back(split(text, c.text("delimiter"), most));
    longest = std::max(longest, rows.back().size());
  }
  Dims dims = in.dims;
  if (dims.rank() == kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", kMaxRank + 1, kMaxRank);
  dims.push_back(static_cast<int64_t>(longest));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), out.as<std::string>() + i * longest);
  if (!c.wants_output(1)) return {};
  HOLOGRAM_TRY(Tensor counts, c.output(1, in.dims));
  for (size_t i = 0; i < rows.size(); ++i)
    counts.as<int64_t>()[i] = static_cast<int64_t>(rows[i].size());
  return {};
}

Status regex_full_match(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const Regex regex, Regex::compile(c.text("pattern")));
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  for (int64_t i = 0; i < in.count(); ++i)
    out.as<bool>()[i] = regex.matches(in.as<std::string>()[i]);
  return {};
}

// Which n-gram of the pool each is, as a list of item numbers; items are numbered by the pool.
struct Grams {
  Map<List<int64_t>, size_t> places;
  size_t count = 0;

  Status read(std::span<const int64_t> pool, std::span<const int64_t> starts) {
    for (size_t n = 1; n <= starts.size(); ++n) {
      const int64_t size = static_cast<int64_t>(pool.size());
      const int64_t from = starts[n - 1], to = n < starts.size() ? starts[n] : size;
      if (from < 0 || to < from || to > size || (to - from) % static_cast<int64_t>(n) != 0)
        return fail(ErrorCode::invalid_argument, "ngram_counts do not divide a pool of {}", size);
      for (int64_t at = from; at < to; at += static_cast<int64_t>(n))
        places.try_emplace(List<int64_t>(pool.begin() + at, pool.begin() + at + n), count++);
    }
    return {};
  }
};

Status tf_idf_vectorizer(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  if (rank != 1 && rank != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [C] or [N, C] expected", in.dims.to_string());
  const auto indexes = c.integers("ngram_indexes");
  const auto weights = c.attributes().numbers("weights");
  const int64_t shortest = c.integer("min_gram_length"), longest = c.integer("max_gram_length"),
                skips = c.integer("max_skip_count");
  const std::string_view mode = c.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: TF, IDF, TFIDF", mode);
  if (shortest < 1 || longest < shortest || skips < 0)
    return fail(ErrorCode::invalid_argument, "grams of {} to {} with {} skips", shortest, longest,
                skips);
  // Strings become numbers: their first place in the pool.
  Map<std::string_view, int64_t> numbers;
  List<int64_t> pool(c.integers("pool_int64s").begin(), c.integers("pool_int64s").end());
  for (const std::string& item : c.attributes().texts("pool_strings"))
    pool.push_back(numbers.try_emplace(item, static_cast<int64_t>(numbers.size())).first->second);
  Grams grams;
  HOLOGRAM_CHECK(grams.read(pool, c.integers("ngram_counts")));
  if (grams.count != indexes.size() || (!weights.empty() && weights.size() != indexes.size()))
    return fail(ErrorCode::invalid_argument, "{} n-grams, {} ngram_indexes, {} weights",
                grams.count, indexes.size(), weights.size());
  int64_t width = 0;
  for (int64_t index : indexes) {
    if (index < 0 || index >= static_cast<int64_t>(kMostElements))
      return fail(ErrorCode::out_of_range, "ngram_indexes {}", index);
    width = std::max(width, index + 1);
  }
  const int64_t rows = rank == 2 ? in.dims[0] : 1, items = in.dims.back();
  HOLOGRAM_TRY(Tensor out, rank == 2 ? c.output(0, {rows, width}) : c.output(0, {width}));
  if (out.count() == 0) return {};
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  // Longer ones than the pool has are never found.
  const int64_t most =
      std::min({longest, items, static_cast<int64_t>(c.integers("ngram_counts").size())});
  List<int64_t> row(items), gram, counts(indexes.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < items; ++i) {
      const int64_t at = r * items + i;
      if (in.dtype == DType::string) {
        auto known = numbers.find(in.as<std::string>()[at]);
        row[i] = known == numbers.end() ? -1 : known->second;
      } else {
        row[i] = in.dtype == DType::i64 ? in.as<int64_t>()[at] : in.as<int32_t>()[at];
      }
    }
    std::ranges::fill(counts, 0);
    // One item has no distance, so skips add nothing to grams of one.
    for (int64_t n = shortest; n <= most; ++n)
      for (int64_t step = 1; step == 1 || (n > 1 && step - 1 <= skips); ++step) {
        if (step > (items - 1) / std::max<int64_t>(n - 1, 1) && n > 1) break;
        for (int64_t first = 0; first + (n - 1) * step < items; ++first) {
          gram.clear();
          for (int64_t k = 0; k < n; ++k) gram.push_back(row[first + k * step]);
          if (auto found = grams.places.find(gram); found != grams.places.end())
            ++counts[found->second];
        }
      }
    for (size_t i = 0; i < counts.size(); ++i) {
      const float weight = weights.empty() ? 1.0f : weights[i];
      const auto count = static_cast<float>(counts[i]);
      if (counts[i] > 0)
        out.as<float>()[r * width + indexes[i]] = mode == "TF"    ? count
                                                  : mode == "IDF" ? weight
                                                                  : count * weight;
    }
  }
  return {};
}

constexpr Kernel kKernels[] = {
    {"RegexFullMatch", regex_full_match},    {"StringConcat", string_concat},
    {"StringNormalizer", string_normalizer}, {"StringSplit", string_split},
    {"TfIdfVectorizer", tf_idf_vectorizer},
};

}  // namespace

std::span<const Kernel> text_kernels() { return kKernels; }

}  // namespace hologram::kernels
