#include "compiler/compile_within.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compiler/cheapest_grades.h"

namespace hologram::compiler {
namespace {

constexpr size_t kGroups = 16;
// A wider product has to be this much faster to be taken for its time alone: measured times differ.
constexpr double kClearlyFaster = 0.95;
// What long sums may use up of what f32 promises, as other inputs may do worse, and of what narrow
// products may lose together.
constexpr double kOfLongSums = 0.5, kBesideNarrow = 0.25;

// What was compiled, and how.
struct Attempt {
  std::vector<uint8_t> grades;  // of the products
  Trial::Archive archive;
  double error = 0;
  CompileReport report;
};

class Search {
 public:
  Search(const std::filesystem::path& model, CompileOptions options, double limit,
         const Trial& trial)
      : model_(model), options_(std::move(options)), limit_(limit), trial_(trial) {
    options_.measured = true;
    report_ = std::exchange(options_.report, nullptr);
    if (options_.on_step)
      options_.on_step = [this, say = options_.on_step](std::string_view step, size_t done) {
        say(fmt::format("attempt {}: {}", attempts_, step), done);
      };
  }

  Result<Within> run() {
    const bool is_f32 = options_.precision == Precision::f32;
    options_.long_sums = true;
    if (is_f32) {
      HOLOGRAM_TRY(Attempt plain, compiled({}));
      HOLOGRAM_TRY(double error, trial_.largest_of(plain.archive));
      options_.long_sums = false;
      if (plain.report.long_sums != 0 && !(error <= kOfLongSums * promised())) {
        HOLOGRAM_TRY(plain, compiled({}));
        HOLOGRAM_TRY(error, trial_.largest_of(plain.archive));
      }
      if (!(error > promised())) return finish(std::move(plain), false);
    } else {
      HOLOGRAM_TRY(const Attempt plain, attempt_f32());
      options_.long_sums = plain.error <= kBesideNarrow * limit_;
    }
    HOLOGRAM_TRY(Attempt narrowest, attempt({}));
    products_ = narrowest.report.narrow_steps;
    widest_ = widest_grade(options_.precision);
    // Of f32 that is near enough after all a single input had bad luck: sums of f64 would draw
    // again.
    if (products_ == 0 || widest_ == 0 || (is_f32 && is_good(narrowest)))
      return finish(std::move(narrowest), false);
    narrowest.grades.assign(products_, 0);
    uniform_.push_back(std::move(narrowest));
    size_t good = is_good(uniform_[0]) ? 0 : widest_;
    // The second as well where the first is good: of small products it may be faster.
    while ((good == widest_ || uniform_.size() < 2) && uniform_.size() < widest_) {
      const size_t grade = uniform_.size();
      HOLOGRAM_CHECK(attempt_uniform(static_cast<uint8_t>(grade)));
      if (good == widest_ && is_good(uniform_.back())) good = grade;
    }
    HOLOGRAM_CHECK(attempt_uniform(widest_));
    if (is_f32 && !is_good(uniform_.back())) return finish(std::move(uniform_[0]), false);
    HOLOGRAM_CHECK(measure_times());
    HOLOGRAM_TRY(Attempt found, widen_some(good));
    return fastest(std::move(found));
  }

 private:
  double promised() const { return promised_error(options_.precision); }
  bool is_good(const Attempt& tried) const { return tried.error <= limit_; }  // NaN is not

  Result<Attempt> compiled(std::vector<uint8_t> grades) {
    ++attempts_;
    Attempt tried{.grades = std::move(grades)};
    options_.widened = tried.grades;
    options_.report = &tried.report;
    Result<Trial::Archive> archive = compile_onnx(model_, options_);
    options_.report = nullptr;
    HOLOGRAM_TRY(tried.archive, std::move(archive));
    return tried;
  }

  Result<Attempt> attempt(std::vector<uint8_t> grades) {
    HOLOGRAM_TRY(Attempt tried, compiled(std::move(grades)));
    HOLOGRAM_TRY(tried.error, trial_.error_of(tried.archive));
    return tried;
  }

  // With all products f32.
  Result<Attempt> attempt_f32() {
    const Precision wanted = std::exchange(options_.precision, Precision::f32);
    Result<Attempt> plain = attempt({});
    options_.precision = wanted;
    return plain;
  }

  // Grades that are the same for all products are measured once.
  Result<double> error_at(std::vector<uint8_t> grades) {
    grades = same_as(std::move(grades));
    const auto [at, is_new] = errors_.try_emplace(grades, 0.0);
    if (is_new) {
      HOLOGRAM_TRY(const Attempt tried, attempt(std::move(grades)));
      at->second = tried.error;
    }
    return at->second;
  }

  Status attempt_uniform(uint8_t grade) {
    const std::vector<uint8_t> grades(products_, grade);
    if (same_as(grades) == same_as(uniform_.back().grades)) {
      uniform_.push_back(uniform_.back());
      uniform_.back().grades = grades;
      return {};
    }
    HOLOGRAM_TRY(Attempt tried, attempt(grades));
    uniform_.push_back(std::move(tried));
    return {};
  }

  // The widest grades that are no different.
  std::vector<uint8_t> same_as(std::vector<uint8_t> grades) const {
    const auto& same = uniform_[0].report.same_grades;
    for (size_t p = 0; p < products_; ++p) grades[p] = same[p][grades[p]];
    return grades;
  }

  // Of each product, in each uniform attempt: its step and those that follow up to the next.
  Status measure_times() {
    std::vector<Trial::Archive> archives;
    archives.reserve(uniform_.size());
    for (Attempt& tried : uniform_) archives.push_back(std::move(tried.archive));
    HOLOGRAM_TRY(const std::vector<Trial::Times> times, trial_.times_of(archives));
    for (size_t i = 0; i < uniform_.size(); ++i) {
      uniform_[i].archive = std::move(archives[i]);
      auto& of_product = times_.emplace_back(products_, 0.0);
      for (const auto& [name, time] : times[i])
        if (const auto at = uniform_[i].report.product_of.find(name);
            at != uniform_[i].report.product_of.end())
          of_product[at->second] += time;
    }
    return {};
  }

  static void set(std::vector<uint8_t>& grades, const ProductGroup& group, size_t grade) {
    for (const size_t p : group.products) grades[p] = static_cast<uint8_t>(grade);
  }

  // From the fastest choice on, that by limits in small steps, the first that is near enough and
  // accepted; f32 as it is where none is.
  Result<Attempt> fastest_accepted(std::span<const ProductGroup> groups, double base) {
    constexpr double kLoosest = 1.25, kStep = 0.97;
    constexpr int kMostTurns = 64;
    std::vector<uint8_t> last;
    double guess = kLoosest * limit_;
    for (int turn = 0; turn < kMostTurns; ++turn, guess *= kStep) {
      std::vector<uint8_t> grades(products_, 1);
      const double left = guess * guess - base * base;
      const std::vector<uint8_t> chosen = cheapest_grades(groups, std::sqrt(std::max(left, 0.0)));
      for (size_t g = 0; g < groups.size(); ++g) set(grades, groups[g], chosen[g]);
      if (grades != last) {
        last = grades;
        HOLOGRAM_TRY(Attempt tried, attempt(std::move(grades)));
        bool good = is_good(tried);
        if (good) {
          HOLOGRAM_TRY(const double largest, trial_.largest_of(tried.archive));
          good = largest <= promised();
        }
        if (good) return tried;
      }
      if (left <= 0) break;
    }
    return uniform_[0];
  }

  // `good`: the first uniform attempt whose error is small enough.
  Result<Attempt> widen_some(size_t good) {
    if (good == 0) return choose_by_time(uniform_[0]);
    std::vector<ProductGroup> groups = group_products(uniform_[0].report.kinds, kGroups);
    const double base = is_good(uniform_[good]) ? uniform_[good].error : 0;
    for (ProductGroup& group : groups) {
      for (size_t grade = 0; grade <= good; ++grade) {
        double time = 0;
        for (const size_t p : group.products) time += time_of(p, grade);
        group.time.push_back(time);
        double error = 0;
        if (grade != good) {
          std::vector<uint8_t> grades = uniform_[good].grades;
          set(grades, group, grade);
          HOLOGRAM_TRY(error, error_at(std::move(grades)));
          // What it adds to that of the attempt without it.
          error = std::isnan(error) ? HUGE_VAL : error * error - base * base;
          error = std::sqrt(std::max(error, 0.0));
        }
        group.error.push_back(error);
      }
    }
    if (options_.precision == Precision::f32) return fastest_accepted(groups, base);
    // Errors add up to more or less than by their squares: the limit for these is searched as well.
    Attempt found = uniform_[good];
    double below = 0, above = HUGE_VAL, guess = limit_;
    for (int turn = 0; turn < 8 && below < 0.9 * above; ++turn) {
      std::vector<uint8_t> grades(products_);
      const std::vector<uint8_t> chosen =
          cheapest_grades(groups, std::sqrt(guess * guess - base * base));
      for (size_t g = 0; g < groups.size(); ++g) set(grades, groups[g], chosen[g]);
      if (grades == found.grades && turn != 0) {
        below = guess;
      } else {
        HOLOGRAM_TRY(Attempt tried, attempt(std::move(grades)));
        if (is_good(tried)) {
          found = std::move(tried);
          below = guess;
        } else {
          above = guess;
        }
      }
      guess = above == HUGE_VAL ? below * 1.4 : below == 0 ? above * 0.6 : std::sqrt(above * below);
      guess = std::max(guess, base);
    }
    return choose_by_time(std::move(found));
  }

  // The best of a grade and of those that are wider.
  double time_of(size_t product, size_t grade) const {
    double best = HUGE_VAL;
    for (size_t i = 0; i < uniform_.size(); ++i)
      if (uniform_[i].grades[product] >= grade) best = std::min(best, times_[i][product]);
    return best;
  }

  // Products that are as fast where they are wider become so.
  Result<Attempt> choose_by_time(Attempt found) {
    std::vector<uint8_t> grades = found.grades;
    for (size_t p = 0; p < products_; ++p) {
      double best = HUGE_VAL;
      for (size_t i = 0; i < uniform_.size(); ++i)
        if (uniform_[i].grades[p] == found.grades[p]) best = kClearlyFaster * times_[i][p];
      for (size_t i = 0; i < uniform_.size(); ++i)
        if (uniform_[i].grades[p] > found.grades[p] && times_[i][p] < best) {
          best = times_[i][p];
          grades[p] = uniform_[i].grades[p];
        }
    }
    if (grades == found.grades) return found;
    HOLOGRAM_TRY(Attempt tried, attempt(std::move(grades)));
    if (!is_good(tried)) return found;
    HOLOGRAM_TRY(const bool slower, is_faster(found, tried));
    return slower ? std::move(found) : std::move(tried);
  }

  Result<bool> is_faster(Attempt& one, Attempt& other) {
    std::vector<Trial::Archive> archives;
    archives.push_back(std::move(one.archive));
    archives.push_back(std::move(other.archive));
    HOLOGRAM_TRY(const std::vector<Trial::Times> times, trial_.times_of(archives));
    one.archive = std::move(archives[0]);
    other.archive = std::move(archives[1]);
    const auto sum = [](const Trial::Times& steps) {
      double all = 0;
      for (const auto& [name, time] : steps) all += time;
      return all;
    };
    return sum(times[0]) < sum(times[1]);
  }

  // What was found, or f32 where that is faster.
  Result<Within> fastest(Attempt found) {
    if (options_.precision == Precision::f32 || !is_good(found))
      return finish(std::move(found), false);
    HOLOGRAM_TRY(Attempt plain, attempt_f32());
    bool is_plain = found.report.narrow_steps == 0;
    if (!is_plain && plain.error <= limit_) {
      HOLOGRAM_TRY(is_plain, is_faster(plain, found));
    }
    return finish(std::move(is_plain ? plain : found), is_plain);
  }

  Within finish(Attempt found, bool is_plain) {
    if (report_) *report_ = std::move(found.report);
    const auto narrow = std::ranges::count(found.grades, uint8_t{0});
    return {.archive = std::move(found.archive),
            .widened = found.grades.size() - static_cast<size_t>(narrow),
            .error = found.error,
            .f32 = is_plain};
  }

  const std::filesystem::path& model_;
  CompileOptions options_;
  const double limit_;
  const Trial& trial_;
  CompileReport* report_;  // the caller's, or null
  size_t attempts_ = 0;
  size_t products_ = 0;  // that can be narrow
  uint8_t widest_ = 0;
  std::map<std::vector<uint8_t>, double> errors_;  // of grades
  std::vector<Attempt> uniform_;                   // all products of one grade, the narrowest first
  std::vector<std::vector<double>> times_;         // of products, in each of those
};

}  // namespace

double SteadyError::largest(std::span<const InputError> inputs) {
  constexpr double kLeast = 1e-12;  // of a range: an input without errors is not all there is
  const auto count = static_cast<double>(inputs.size());
  double sum = 0, logs = 0;
  for (const InputError& error : inputs) {
    sum += error.largest;
    logs += std::log(std::max(error.rms, kLeast));
  }
  if (inputs.empty() || sum == 0) return 0;
  const double rms = std::exp(logs / count);
  if (times_ == 0) times_ = sum / count / rms;
  return std::isnan(sum) ? sum : times_ * rms;
}

double promised_error(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return 1e-5;
    case Precision::fast:
      return 1e-4;
    case Precision::bf16:
      return 2e-2;
    default:
      return 0;
  }
}

double aimed_error(Precision precision) {
  const double part = precision == Precision::f32    ? 0.85
                      : precision == Precision::fast ? 2.0 / 3
                                                     : 0.75;
  return part * promised_error(precision);
}

Result<Within> compile_within(const std::filesystem::path& model, CompileOptions options,
                              double limit, const Trial& trial) {
  return Search(model, std::move(options), limit, trial).run();
}

}  // namespace hologram::compiler
