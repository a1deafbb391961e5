// Compiles a model so that its results are as near to f32 as its precision promises.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "support/function_ref.h"

namespace hologram::compiler {

// The largest error of results, of their range, that a precision may make: 1e-5 in `f32`, 1e-4 in
// `fast`, 2e-2 in `bf16`; 0 where nothing is promised.
double promised_error(Precision precision);
// What of that to use up on the inputs at hand, as others may do worse: three quarters; of `fast`,
// where f32 itself is off by a good part of the rest, two thirds; of f32, where results that are
// rounded once take most of it, 0.85.
double aimed_error(Precision precision);

// Of the results for one input, of their range: the largest error, and the root of the mean square.
struct InputError {
  double largest = 0, rms = 0;
};

// The largest error of results is a draw of a lottery where a network enlarges every rounding: too
// rough to tell what a step adds. This is the mean of those of several inputs, as the geometric
// mean of their roots of mean squares tells it, which was so many times smaller of the first
// archive asked for. One or two inputs of close decisions make most of any other mean, and rise and
// fall by half whatever is changed.
class SteadyError {
 public:
  double largest(std::span<const InputError> inputs);

 private:
  double times_ = 0;
};

// What an archive does with inputs of the caller's.
struct Trial {
  using Archive = std::vector<std::byte>;
  using Times = std::map<std::string, double>;  // of steps by name
  // The largest difference of results from those in f32, of f32 from those in f64, of their range.
  FunctionRef<Result<double>(const Archive&)> error_of;
  // What the steps of each archive take, measured in turns.
  FunctionRef<Result<std::vector<Times>>(std::span<const Archive>)> times_of;
  // Of f32, and null for others: the largest error on the inputs that count, NaN where it is not
  // known. error_of may be a SteadyError then.
  std::function<Result<double>(const Archive&)> largest_of = nullptr;
};

struct Within {
  std::vector<std::byte> archive;
  size_t widened = 0;
  double error = 0;  // of that archive, as the trial gave it
  bool f32 = false;  // all of it, since that is faster
};

// The fastest archive found whose error is at most `limit`. Where the narrowest is not near enough,
// products become wider by grades: the first at which all of them together are good is what the
// others are compared with. Of some 16 groups, neighbours of one kind, it is measured what each
// saves and what it adds to the error where it is narrower; and of each product, whether a wider
// grade is as fast. Where that is not faster than f32 (models of small steps) it is f32 after all.
//
// Of f32 itself convolutions are the products. Where their sums in one chain each are within half
// of what is promised they are taken; otherwise sums in parts, which are what nobody measures;
// where these are off by more than is promised wider ones sum in f64. Where that is not near enough
// either, none does. Beside narrow products sums are in one chain each where these alone use up
// little of the limit.
//
// error_of is asked some 60 times at most. options.report, where not null, is of the archive that
// is returned.
Result<Within> compile_within(const std::filesystem::path& model, CompileOptions options,
                              double limit, const Trial& trial);

}  // namespace hologram::compiler
