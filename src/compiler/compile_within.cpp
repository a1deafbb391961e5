#include "compiler/compile_within.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace hologram::compiler {
namespace {

// Neighbouring products that are widened together, so that a deep network is compiled a bounded
// number of times.
constexpr size_t kGroups = 16;

struct Group {
  size_t first, past;
  double error;  // where only these are narrow
};

class Search {
 public:
  Search(const std::filesystem::path& model, CompileOptions options, double limit,
         FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of)
      : model_(model), options_(std::move(options)), limit_(limit), error_of_(error_of) {
    options_.measured = true;
    if (!options_.report) options_.report = &report_;
  }

  Status run() {
    HOLOGRAM_CHECK(attempt({}));
    products_ = options_.report->narrow_steps;
    if (is_good() || products_ == 0) return {};
    // By one grade; by two where that is not enough even for all of them.
    uint8_t wider = 1;
    HOLOGRAM_CHECK(attempt(std::vector<uint8_t>(products_, wider)));
    if (!is_good()) wider = 2;
    return widen_some(wider);
  }

  // What was found, or f32 where that is faster.
  Result<Within> or_f32(
      FunctionRef<Result<bool>(const std::vector<std::byte>&, const std::vector<std::byte>&)>
          faster) {
    if (options_.report->narrow_steps == 0 || !is_good()) return std::move(found_);
    Within narrow = std::move(found_);
    CompileReport report = std::move(*options_.report);
    options_.precision = Precision::f32;
    HOLOGRAM_CHECK(attempt({}));
    HOLOGRAM_TRY(const bool plain, faster(found_.archive, narrow.archive));
    found_.f32 = plain;
    if (plain) return std::move(found_);
    *options_.report = std::move(report);
    return narrow;
  }

 private:
  bool is_good() const { return found_.error <= limit_; }  // an error of NaN is not

  Status attempt(std::vector<uint8_t> widened) {
    found_.widened = widened.size() - static_cast<size_t>(std::ranges::count(widened, uint8_t{0}));
    options_.widened = std::move(widened);
    *options_.report = {};
    HOLOGRAM_TRY(found_.archive, compile_onnx(model_, options_));
    HOLOGRAM_TRY(found_.error, error_of_(found_.archive));
    return {};
  }

  Status widen_some(uint8_t wider) {
    // Most often what early products round off is enlarged most.
    for (const size_t eighths : {1, 2, 4}) {
      HOLOGRAM_CHECK(attempt(std::vector<uint8_t>((products_ * eighths + 7) / 8, wider)));
      if (is_good()) return {};
    }
    std::vector<Group> groups;
    const size_t count = std::min(products_, kGroups);
    for (size_t g = 0; g < count; ++g) {
      groups.push_back({products_ * g / count, products_ * (g + 1) / count, 0});
      HOLOGRAM_CHECK(attempt(all_but({&groups.back(), 1}, wider)));
      groups[g].error = std::isnan(found_.error) ? HUGE_VAL : found_.error;
    }
    std::ranges::stable_sort(groups, {}, &Group::error);
    // Errors of independent origin add up by their squares, if nothing enlarges them together.
    size_t narrow = 0;
    for (double sum = 0; narrow < count; ++narrow) {
      sum += groups[narrow].error * groups[narrow].error;
      if (!(sum <= limit_ * limit_)) break;
    }
    for (;; --narrow) {
      HOLOGRAM_CHECK(attempt(all_but(std::span(groups).first(narrow), wider)));
      if (is_good() || narrow == 0) return {};
    }
  }

  std::vector<uint8_t> all_but(std::span<const Group> narrow, uint8_t wider) const {
    std::vector<uint8_t> widened(products_, wider);
    for (const Group& group : narrow)
      for (size_t i = group.first; i < group.past; ++i) widened[i] = 0;
    return widened;
  }

  const std::filesystem::path& model_;
  CompileOptions options_;
  const double limit_;
  FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of_;
  CompileReport report_;  // where the caller has none
  size_t products_ = 0;   // that can be narrow
  Within found_;          // by the last attempt
};

}  // namespace

double promised_error(Precision precision) {
  return precision == Precision::fast ? 1e-4 : precision == Precision::bf16 ? 2e-2 : 0.0;
}

Result<Within> compile_within(
    const std::filesystem::path& model, CompileOptions options, double limit,
    FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of,
    FunctionRef<Result<bool>(const std::vector<std::byte>&, const std::vector<std::byte>&)>
        faster) {
  Search search(model, std::move(options), limit, error_of);
  HOLOGRAM_CHECK(search.run());
  return search.or_f32(faster);
}

}  // namespace hologram::compiler
