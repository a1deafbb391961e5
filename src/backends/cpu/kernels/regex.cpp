#include "backends/cpu/kernels/regex.h"

#include <algorithm>
#include <span>

namespace hologram::kernels {
namespace {

constexpr uint32_t kLastPoint = 0x10ffff;
constexpr size_t kMaxSteps = 100'000, kMaxRepeat = 1000;
constexpr int kMaxDepth = 200;

using Ranges = List<std::pair<uint32_t, uint32_t>>;

using Range = std::pair<uint32_t, uint32_t>;
constexpr Range kDigits[] = {{'0', '9'}};
constexpr Range kWords[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
constexpr Range kSpaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

Ranges listed(std::span<const Range> ranges) { return Ranges(ranges.begin(), ranges.end()); }

Ranges complement(std::span<const Range> sorted) {
  Ranges result;
  uint32_t from = 0;
  for (auto [low, high] : sorted) {
    if (low > from) result.emplace_back(from, low - 1);
    from = high + 1;
  }
  result.emplace_back(from, kLastPoint);
  return result;
}

bool is_word(uint32_t point) {
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](auto range) { return point >= range.first && point <= range.second; });
}

// What a pattern means before it is steps.
struct Tree {
  enum class Kind : uint8_t { empty, set, sequence, either, repeat, assertion } kind = Kind::empty;
  List<Tree> parts;
  uint32_t set = 0;            // set; assertion: the kind of step
  size_t least = 0, most = 0;  // repeat; most 0: any number
};

}  // namespace

List<uint32_t> code_points(std::string_view text) {
  List<uint32_t> points;
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<uint8_t>(text[at]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 1
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 1;
    uint32_t point = length == 1 ? lead : lead & (0x7f >> length);
    bool whole = at + length <= text.size();
    for (size_t i = 1; whole && i < length; ++i) {
      const auto byte = static_cast<uint8_t>(text[at + i]);
      whole = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3f);
    }
    points.push_back(whole ? point : lead);
    at += whole ? length : 1;
  }
  return points;
}

bool Regex::Set::has(uint32_t point) const {
  const bool inside = std::any_of(ranges.begin(), ranges.end(), [&](auto range) {
    return point >= range.first && point <= range.second;
  });
  return inside != negated;
}

class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : points_(code_points(pattern)) {}

  Result<Regex> run() {
    HOLOGRAM_TRY(Tree tree, alternatives(0));
    if (!done()) return refuse("an unmatched ')'");
    HOLOGRAM_CHECK(emit(tree));
    HOLOGRAM_CHECK(push({Regex::Kind::match}));
    return std::move(regex_);
  }

 private:
  bool done() const { return at_ == points_.size(); }
  bool is(char c) const { return !done() && points_[at_] == static_cast<uint32_t>(c); }
  bool take(char c) {
    if (!is(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (at_ + text.size() > points_.size()) return false;
    for (size_t i = 0; i < text.size(); ++i)
      if (points_[at_ + i] != static_cast<uint32_t>(text[i])) return false;
    at_ += text.size();
    return true;
  }
  std::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorCode::unsupported,
                "pattern: {} at character {}; supported: see RE2's syntax "
                "without flags, back references, look-around and \\p",
                what, at_);
  }

  Tree set_of(Ranges ranges, bool negated = false) {
    regex_.sets_.push_back({std::move(ranges), negated});
    Tree tree{Tree::Kind::set};
    tree.set = static_cast<uint32_t>(regex_.sets_.size() - 1);
    return tree;
  }
  static Tree assertion(Regex::Kind kind) {
    Tree tree{Tree::Kind::assertion};
    tree.set = static_cast<uint32_t>(kind);
    return tree;
  }

  Result<Tree> alternatives(int depth) {
    if (depth > kMaxDepth) return refuse("groups too deep");
    Tree either{Tree::Kind::either};
    do {
      Tree sequence{Tree::Kind::sequence};
      while (!done() && !is('|') && !is(')')) {
        HOLOGRAM_TRY(Tree part, repeated(depth));
        sequence.parts.push_back(std::move(part));
      }
      either.parts.push_back(std::move(sequence));
    } while (take('|'));
    return either;
  }

  // "{n}", "{n,}", "{n,m}"; false where it is not one and so literal.
  bool bounds(size_t& least, size_t& most) {
    const size_t start = at_;
    auto number = [&](size_t& value) {
      const size_t first = at_;
      for (value = 0; !done() && points_[at_] >= '0' && points_[at_] <= '9'; ++at_)
        value = std::min<size_t>(value * 10 + (points_[at_] - '0'), kMaxRepeat + 1);
      return at_ > first;
    };
    if (take('{') && number(least)) {
      most = least;
      unbounded_ = false;
      if (take(',') && !number(most)) unbounded_ = true;
      if (take('}')) return true;
    }
    at_ = start;
    return false;
  }

  Result<Tree> repeated(int depth) {
    HOLOGRAM_TRY(Tree tree, atom(depth));
    int count = 0;
    for (;;) {
      size_t least = 0, most = 0;
      unbounded_ = true;
      if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
        unbounded_ = false;
      } else if (!take('*') && !bounds(least, most)) {
        return tree;
      }
      if (++count > 1) return refuse("a repetition of a repetition");
      if (least > kMaxRepeat || (!unbounded_ && most > kMaxRepeat))
        return refuse("more than 1000 repetitions");
      if (!unbounded_ && most < least) return refuse("a repetition of less than its least");
      take('?');  // lazy: the same for a whole match
      Tree repeat{Tree::Kind::repeat};
      repeat.least = least;
      repeat.most = unbounded_ ? SIZE_MAX : most;
      repeat.parts.push_back(std::move(tree));
      tree = std::move(repeat);
    }
  }

  Result<Tree> atom(int depth) {
    if (take('(')) {
      if (take("?P<") ||
          (!(at_ + 2 < points_.size() && (points_[at_ + 2] == '=' || points_[at_ + 2] == '!')) &&
           take("?<"))) {
        while (!done() && is_word(points_[at_])) ++at_;
        if (!take('>')) return refuse("a group's name");
      } else if (is('?') && !take("?:")) {
        return refuse("a group of an unsupported kind");
      }
      HOLOGRAM_TRY(Tree inner, alternatives(depth + 1));
      if (!take(')')) return refuse("a missing ')'");
      return inner;
    }
    if (take('[')) return bracket();
    if (take('.')) return set_of({{'\n', '\n'}}, true);
    if (take('^')) return assertion(Regex::Kind::start);
    if (take('$')) return assertion(Regex::Kind::end);
    if (is('*') || is('+') || is('?')) return refuse("nothing to repeat");
    if (take('\\')) {
      if (take('b')) return assertion(Regex::Kind::edge);
      if (take('B')) return assertion(Regex::Kind::inside);
      if (take('A')) return assertion(Regex::Kind::start);
      if (take('z')) return assertion(Regex::Kind::end);
      HOLOGRAM_TRY(Ranges ranges, escape());
      return set_of(std::move(ranges));
    }
    const uint32_t point = points_[at_++];
    return set_of({{point, point}});
  }

  // After a backslash: a class or one code point.
  Result<Ranges> escape() {
    if (done()) return refuse("a backslash at the end");
    const uint32_t c = points_[at_++];
    auto one = [](uint32_t point) { return Ranges{{point, point}}; };
    switch (c) {
      case 'd':
        return listed(kDigits);
      case 'w':
        return listed(kWords);
      case 's':
        return listed(kSpaces);
      case 'D':
        return complement(kDigits);
      case 'W':
        return complement(kWords);
      case 'S':
        return complement(kSpaces);
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'a':
        return one('\a');
      case 'x': {
        const bool braces = take('{');
        uint32_t value = 0;
        size_t digits = 0;
        for (; !done() && digits < (braces ? 6 : 2); ++digits, ++at_) {
          const uint32_t d = points_[at_];
          if (d >= '0' && d <= '9')
            value = value * 16 + (d - '0');
          else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            value = value * 16 + ((d | 32) - 'a' + 10);
          else
            break;
        }
        if (digits == 0 || (!braces && digits != 2) || (braces && !take('}')) || value > kLastPoint)
          return refuse("a wrong \\x");
        return one(value);
      }
    }
    if (c < 128 && is_word(c)) return refuse("an unsupported escape");
    return one(c);
  }

  Result<Tree> bracket() {
    // One range a line; a name may have several.
    static constexpr std::pair<std::string_view, Range> kNamed[] = {
        {"[:alpha:]", {'A', 'Z'}},  {"[:alpha:]", {'a', 'z'}},  {"[:digit:]", {'0', '9'}},
        {"[:alnum:]", {'0', '9'}},  {"[:alnum:]", {'A', 'Z'}},  {"[:alnum:]", {'a', 'z'}},
        {"[:upper:]", {'A', 'Z'}},  {"[:lower:]", {'a', 'z'}},  {"[:space:]", {'\t', '\r'}},
        {"[:space:]", {' ', ' '}},  {"[:punct:]", {'!', '/'}},  {"[:punct:]", {':', '@'}},
        {"[:punct:]", {'[', '`'}},  {"[:punct:]", {'{', '~'}},  {"[:word:]", {'0', '9'}},
        {"[:word:]", {'A', 'Z'}},   {"[:word:]", {'_', '_'}},   {"[:word:]", {'a', 'z'}},
        {"[:xdigit:]", {'0', '9'}}, {"[:xdigit:]", {'A', 'F'}}, {"[:xdigit:]", {'a', 'f'}}};
    const bool negated = take('^');
    Ranges all;
    for (bool first = true; first || !is(']'); first = false) {
      if (done()) return refuse("a missing ']'");
      std::string_view named;
      for (const auto& [name, range] : kNamed) {
        if (named.empty() && take(name)) named = name;
        if (named == name) all.push_back(range);
      }
      if (!named.empty()) continue;
      auto member = [&]() -> Result<Ranges> {
        if (take('\\')) return escape();
        const uint32_t point = points_[at_++];
        return Ranges{{point, point}};
      };
      HOLOGRAM_TRY(Ranges low, member());
      const bool single = low.size() == 1 && low[0].first == low[0].second;
      if (single && is('-') && at_ + 1 < points_.size() && points_[at_ + 1] != ']') {
        ++at_;
        HOLOGRAM_TRY(const Ranges high, member());
        if (high.size() != 1 || high[0].first != high[0].second || high[0].first < low[0].first)
          return refuse("a wrong range");
        low[0].second = high[0].first;
      }
      all.insert(all.end(), low.begin(), low.end());
    }
    take(']');
    return set_of(std::move(all), negated);
  }

  Status push(Regex::Step step) {
    if (regex_.steps_.size() >= kMaxSteps) return refuse("a pattern that is too long");
    regex_.steps_.push_back(step);
    return {};
  }
  uint32_t here() const { return static_cast<uint32_t>(regex_.steps_.size()); }

  Status emit(const Tree& tree) {
    // Repetitions of nothing make no steps but take time all the same.
    if (++emitted_ > 10 * kMaxSteps) return refuse("a pattern that is too long");
    switch (tree.kind) {
      case Tree::Kind::empty:
        return {};
      case Tree::Kind::set:
        return push({Regex::Kind::set, here() + 1, tree.set});
      case Tree::Kind::assertion:
        return push({static_cast<Regex::Kind>(tree.set), here() + 1});
      case Tree::Kind::sequence:
        for (const Tree& part : tree.parts) HOLOGRAM_CHECK(emit(part));
        return {};
      case Tree::Kind::either: {
        List<uint32_t> jumps;
        for (size_t i = 0; i < tree.parts.size(); ++i) {
          const bool last = i + 1 == tree.parts.size();
          const uint32_t split = here();
          if (!last) HOLOGRAM_CHECK(push({Regex::Kind::split, split + 1}));
          HOLOGRAM_CHECK(emit(tree.parts[i]));
          if (last) break;
          jumps.push_back(here());
          HOLOGRAM_CHECK(push({Regex::Kind::jump}));
          regex_.steps_[split].other = here();
        }
        for (uint32_t jump : jumps) regex_.steps_[jump].next = here();
        return {};
      }
      case Tree::Kind::repeat: {
        for (size_t i = 0; i < tree.least; ++i) HOLOGRAM_CHECK(emit(tree.parts[0]));
        if (tree.most == SIZE_MAX) {
          const uint32_t split = here();
          HOLOGRAM_CHECK(push({Regex::Kind::split, split + 1}));
          HOLOGRAM_CHECK(emit(tree.parts[0]));
          HOLOGRAM_CHECK(push({Regex::Kind::jump, split}));
          regex_.steps_[split].other = here();
          return {};
        }
        List<uint32_t> splits;
        for (size_t i = tree.least; i < tree.most; ++i) {
          splits.push_back(here());
          HOLOGRAM_CHECK(push({Regex::Kind::split, here() + 1}));
          HOLOGRAM_CHECK(emit(tree.parts[0]));
        }
        for (uint32_t split : splits) regex_.steps_[split].other = here();
        return {};
      }
    }
    return {};
  }

  List<uint32_t> points_;
  size_t at_ = 0, emitted_ = 0;
  bool unbounded_ = false;
  Regex regex_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexCompiler(pattern).run(); }

// All places of the pattern at once, a code point at a time.
bool Regex::matches(std::string_view text) const {
  const List<uint32_t> points = code_points(text);
  List<uint32_t> now = {0}, next, stack;
  List<size_t> seen(steps_.size(), SIZE_MAX);
  for (size_t at = 0; at <= points.size(); ++at) {
    const bool before = at > 0 && is_word(points[at - 1]),
               after = at < points.size() && is_word(points[at]);
    next.clear();
    stack = now;
    while (!stack.empty()) {
      const uint32_t place = stack.back();
      stack.pop_back();
      if (seen[place] == at) continue;
      seen[place] = at;
      const Step& step = steps_[place];
      switch (step.kind) {
        case Kind::set:
          if (at < points.size() && sets_[step.other].has(points[at])) next.push_back(step.next);
          break;
        case Kind::split:
          stack.push_back(step.other);
          [[fallthrough]];
        case Kind::jump:
          stack.push_back(step.next);
          break;
        case Kind::start:
          if (at == 0) stack.push_back(step.next);
          break;
        case Kind::end:
          if (at == points.size()) stack.push_back(step.next);
          break;
        case Kind::edge:
          if (before != after) stack.push_back(step.next);
          break;
        case Kind::inside:
          if (before == after) stack.push_back(step.next);
          break;
        case Kind::match:
          if (at == points.size()) return true;
          break;
      }
    }
    std::swap(now, next);
  }
  return false;
}

}  // namespace hologram::kernels
