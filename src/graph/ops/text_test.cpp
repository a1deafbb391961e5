#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attributes pattern(const char* text) {
  Attributes a;
  a.set("pattern", std::string(text));
  return a;
}

bool matches(const char* regex, const char* text) {
  return *evaluate({"RegexFullMatch", {strings({1}, {text})}, pattern(regex)}).as<bool>();
}

TEST(Text, RegexMatchesTheWholeTextOnly) {
  EXPECT_TRUE(matches("a+b?", "aab"));
  EXPECT_FALSE(matches("a+b?", "aabc"));
  EXPECT_TRUE(matches("(?:a|ab)(c|bcd)", "abcd"));
  EXPECT_TRUE(matches("x{2,3}", "xxx"));
  EXPECT_FALSE(matches("x{2,3}", "xxxx"));
  EXPECT_TRUE(matches("[^\\W\\d]+", "abc"));
  EXPECT_TRUE(matches("caf.", "caf\u00e9"));  // a code point, not a byte
  EXPECT_FALSE(matches("a.b", "a\nb"));
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));  // no repetition: literal, as RE2 has it
}

TEST(Text, RegexDoesNotBacktrack) {
  EXPECT_FALSE(matches("(a*)*b", std::string(5000, 'a').c_str()));
}

TEST(Text, RegexRefusesWhatItDoesNotKnow) {
  for (const char* text : {"(?=a)", "(?i)a", "\\1", "\\pL", "a**", "*a", "(a", "a)", "[a", "[b-a]",
                           "a{2,1}", "x{1001}", "\\", "((((){1000}){1000}){1000}){1000}"})
    EXPECT_THAT(refusal({"RegexFullMatch", {strings({1}, {"a"})}, pattern(text)}),
                HasSubstr("pattern:"))
        << text;
}

TEST(Text, CaseOfLettersBeyondAscii) {
  Attributes a;
  a.set("case_change_action", std::string("UPPER"));
  a.set("stopwords", std::vector<std::string>{"FOO"});
  const Tensor y =
      evaluate({"StringNormalizer", {strings({3}, {"foo", "caf\u00e9", "\u0451"})}, a});
  EXPECT_THAT(elements<std::string>(y), ElementsAre("CAF\u00c9", "\u0401"));
}

TEST(Text, NormalizerRefusesBatchesAndUnknownActions) {
  EXPECT_THAT(refusal({"StringNormalizer", {strings({2, 1}, {"a", "b"})}}),
              HasSubstr("[1, C] expected"));
  Attributes a;
  a.set("case_change_action", std::string("TITLE"));
  EXPECT_THAT(refusal({"StringNormalizer", {strings({1}, {"a"})}, a}), HasSubstr("TITLE"));
}

Attributes grams() {
  Attributes a;
  a.set("mode", std::string("TFIDF"));
  a.set("min_gram_length", int64_t{1});
  a.set("max_gram_length", int64_t{2});
  a.set("max_skip_count", int64_t{0});
  a.set("ngram_counts", std::vector<int64_t>{0, 2});
  a.set("ngram_indexes", std::vector<int64_t>{2, 0, 1});
  a.set("pool_strings", std::vector<std::string>{"a", "b", "a", "b"});
  a.set("weights", std::vector<float>{2, 3, 5});
  return a;
}

TEST(Text, TfIdfWeighsStrings) {
  const Tensor x = strings({2, 3}, {"a", "b", "a", "b", "b", "z"});
  EXPECT_THAT(elements<float>(evaluate({"TfIdfVectorizer", {x}, grams()})),
              ElementsAre(3, 5, 4, 6, 0, 0));
}

// Grams longer than the pool's are never found: to look for them in a long input takes for ever.
TEST(Text, TfIdfLooksForNoGramsLongerThanThePools) {
  Attributes a = grams();
  a.set("max_gram_length", int64_t{1} << 62);
  std::vector<std::string> words(20'000, "a");
  words[7] = "b";
  const int64_t count = static_cast<int64_t>(words.size());
  EXPECT_THAT(elements<float>(evaluate({"TfIdfVectorizer", {strings({count}, words)}, a})),
              ElementsAre(3, 5, 2 * 19'999));
}

TEST(Text, TfIdfRefusesPoolsThatDoNotDivide) {
  Attributes a = grams();
  a.set("pool_strings", std::vector<std::string>{"a", "b", "a"});
  EXPECT_THAT(refusal({"TfIdfVectorizer", {strings({1}, {"a"})}, a}), HasSubstr("do not divide"));
}

}  // namespace
}  // namespace hologram::graph::testing
