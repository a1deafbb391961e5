// Exhaustive over all 256 bytes and 96 classes; the constants are the published facts.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "atlas/address.h"
#include "atlas/resonance.h"
#include "atlas/sigil.h"
#include "atlas/torus.h"

namespace hologram::atlas {
namespace {

TEST(Sigil, KnownClassesHaveTheirBytes) {
  const std::map<int, int> facts = {{0, 0x00},  {5, 0x0A},  {13, 0x1A}, {21, 0x2A}, {42, 0x64},
                                    {45, 0x6A}, {50, 0x84}, {72, 0xC0}, {95, 0xEE}};
  for (const auto& [cls, byte] : facts) {
    EXPECT_EQ(canonical_byte(cls), byte) << "class " << cls;
    EXPECT_EQ(sigil_class_of_byte(byte), cls);
  }
}

TEST(Sigil, EveryByteHasOneClassAndClassesHaveFourOrTwoBytes) {
  std::map<int, int> members;
  for (int byte = 0; byte < 256; ++byte) {
    const uint8_t cls = sigil_class_of_byte(byte);
    ASSERT_LT(cls, kClassCount);
    ++members[cls];
    EXPECT_EQ(sigil_class(sigil_coordinates(cls)), cls);
    EXPECT_EQ(sigil_coordinates(cls), sigil_coordinates_of_byte(byte));
    EXPECT_EQ(sigil_class_of_byte(byte ^ 1), cls) << "bit 0 must not matter";
    EXPECT_LE(canonical_byte(cls), byte) << "the canonical byte is the smallest";
  }
  EXPECT_EQ(members.size(), 96u);
  for (const auto& [cls, count] : members) EXPECT_EQ(count, sigil_coordinates(cls).d == 0 ? 4 : 2);
}

TEST(Sigil, TransformsAreGroupsAndCommuteAsStated) {
  for (int c = 0; c < kClassCount; ++c) {
    EXPECT_EQ(transform_r(c, 4), c);
    EXPECT_EQ(transform_d(c, 3), c);
    EXPECT_EQ(transform_t(c, 8), c);
    EXPECT_EQ(transform_m(transform_m(c)), c);
    for (int64_t k : {-1000001L, -7L, -1L, 0L, 1L, 2L, 5L, 123456789012L}) {
      EXPECT_EQ(transform_r(transform_r(c, k), -k), c);
      EXPECT_EQ(transform_d(transform_d(c, k), -k), c);
      EXPECT_EQ(transform_t(transform_t(c, k), -k), c);
      for (int64_t j : {-3L, 1L, 2L, 7L}) {
        EXPECT_EQ(transform_r(transform_d(c, j), k), transform_d(transform_r(c, k), j));
        EXPECT_EQ(transform_r(transform_t(c, j), k), transform_t(transform_r(c, k), j));
        EXPECT_EQ(transform_d(transform_t(c, j), k), transform_t(transform_d(c, k), j));
        EXPECT_EQ(transform_r(transform_r(c, j), k), transform_r(c, j + k));
      }
      EXPECT_EQ(transform_m(transform_r(c, k)), transform_r(transform_m(c), k));
      EXPECT_EQ(transform_m(transform_t(c, k)), transform_t(transform_m(c), k));
      EXPECT_EQ(transform_m(transform_d(c, k)), transform_d(transform_m(c), -k)) << "M inverts D";
    }
  }
  EXPECT_EQ(transform_t(42, 3), 45);
}

TEST(Resonance, EveryByteHasAClassAndTheFactsHold) {
  EXPECT_EQ(resonance_class_of_byte(42), 31);
  std::set<int> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const uint8_t cls = resonance_class_of_byte(byte);
    ASSERT_LT(cls, kClassCount);
    seen.insert(cls);
    EXPECT_EQ(resonance_class_of_byte(byte ^ 0x80), cls) << "bit 7 must not matter";
    EXPECT_EQ(kClassOfByte[byte], cls);
  }
  EXPECT_EQ(seen.size(), 96u);
}

TEST(Resonance, MirrorPairsAllClasses) {
  int pairs = 0;
  for (int c = 0; c < kClassCount; ++c) {
    EXPECT_NE(mirror(c), c);
    EXPECT_EQ(mirror(mirror(c)), c);
    EXPECT_EQ(std::abs(mirror(c) - c), 3);
    pairs += mirror(c) > c;
  }
  EXPECT_EQ(pairs, 48);
  // Flipping e7, bit 4 of the byte, is the mirror.
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(resonance_class_of_byte(byte ^ 0x10), mirror(resonance_class_of_byte(byte)));
  EXPECT_TRUE(is_unity(1) && is_unity(4));
  for (int c = 0; c < kClassCount; ++c) EXPECT_EQ(is_unity(c), c == 1 || c == 4);
}

TEST(Resonance, TheGraphHasTheStatedDegreesAndEdges) {
  const auto list = [](int c) {
    const Neighbours n = neighbours(c);
    return std::vector<int>(n.list().begin(), n.list().end());
  };
  EXPECT_EQ(list(0), (std::vector<int>{1, 6, 12, 24, 48}));
  EXPECT_EQ(list(1), (std::vector<int>{0, 2, 7, 13, 25, 49}));
  int edges = 0, of_degree_six = 0, of_degree_five = 0;
  for (int c = 0; c < kClassCount; ++c) {
    const std::vector<int> near = list(c);
    EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
    edges += static_cast<int>(near.size());
    of_degree_six += near.size() == 6;
    of_degree_five += near.size() == 5;
    EXPECT_EQ(near.size(), c % 3 == 1 ? 6u : 5u);
    for (const int other : near) {
      const std::vector<int> back = list(other);
      EXPECT_NE(std::find(back.begin(), back.end(), c), back.end()) << c << " - " << other;
    }
    for (int k = 0; k < 8; ++k)
      EXPECT_EQ(neighbour(c, k), k < static_cast<int>(near.size()) ? near[k] : kNoClass);
  }
  EXPECT_EQ(edges / 2, 256);
  EXPECT_EQ(of_degree_six, 32);
  EXPECT_EQ(of_degree_five, 64);
}

TEST(Resonance, TablesAreTotal) {
  for (int c = kClassCount; c < 256; ++c) {
    EXPECT_EQ(kMirrorOfClass[c], kNoClass);
    EXPECT_EQ(neighbour(c, 0), kNoClass);
  }
  EXPECT_EQ(neighbour(0, 200), kNoClass);
}

TEST(Address, BeltRoundTripsEveryCell) {
  EXPECT_EQ(kBeltCells, 12288u);
  EXPECT_EQ(kBeltSize, 1179648u);
  for (uint32_t address = 0; address < kBeltSize; ++address) {
    const BeltCell cell = belt_cell(address).value();
    ASSERT_EQ(belt_address(cell).value(), address);
  }
  EXPECT_EQ(belt_address({0, 17, 0x6A}).value(), 4458u);
  EXPECT_EQ(belt_cell(kBeltSize).error().code(), ErrorCode::out_of_range);
  EXPECT_EQ(belt_address({96, 0, 0}).error().message(), "class 96 is not below 96");
  EXPECT_EQ(belt_address({0, 48, 0}).error().message(), "page 48 is not below 48");
}

TEST(Address, ExpandedRoundTripsAtEdgesAndAtRandom) {
  EXPECT_EQ(kExpandedSize, 773094113280u);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t offset = i == 0 ? 0 : i == 1 ? kExpandedSize - 1 : random() % kExpandedSize;
    ASSERT_EQ(expanded_offset(expanded_cell(offset).value()).value(), offset);
  }
  EXPECT_EQ(expanded_offset({1, 0, 0, 0}).value(), uint64_t{480} * 256 * 65536);
  EXPECT_FALSE(expanded_cell(kExpandedSize));
  EXPECT_FALSE(expanded_offset({0, 480, 0, 0}));
  EXPECT_FALSE(expanded_offset({96, 0, 0, 0}));
  EXPECT_EQ(phase(768 * 5 + 3), 3u);
}

static_assert(project(-1) == TorusPoint{47, 95});
static_assert(project(uint64_t{961}) == TorusPoint{1, 1});

TEST(Torus, LawsOfAddAndMultiplyHoldExhaustively) {
  // 48 divides 96, so the projection has 96 images: one for each residue.
  std::set<std::pair<int, int>> images;
  for (int n = -1000; n < 1000; ++n) images.emplace(project(n).page, project(n).resonance);
  EXPECT_EQ(images.size(), 96u);
  for (int a = 0; a < 96; ++a) {
    const TorusPoint p = project(a);
    EXPECT_EQ(add(p, kTorusZero), p);
    EXPECT_EQ(multiply(p, kTorusOne), p);
    EXPECT_EQ(add(p, negate(p)), kTorusZero);
    for (int b = 0; b < 96; ++b) {
      const TorusPoint q = project(b);
      EXPECT_EQ(add(p, q), add(q, p));
      EXPECT_EQ(multiply(p, q), multiply(q, p));
      EXPECT_EQ(project(a + b), add(p, q));
      EXPECT_EQ(project(a * b), multiply(p, q));
      for (int c = 0; c < 96; c += 7) {
        const TorusPoint r = project(c);
        EXPECT_EQ(add(add(p, q), r), add(p, add(q, r)));
        EXPECT_EQ(multiply(multiply(p, q), r), multiply(p, multiply(q, r)));
        EXPECT_EQ(multiply(p, add(q, r)), add(multiply(p, q), multiply(p, r)));
      }
    }
  }
}

TEST(Torus, CoherenceHoldsForNegativesAnd128BitValues) {
  std::mt19937_64 random(2);
  const auto draw = [&](int bits) {  // |value| < 2^bits, either sign
    const unsigned __int128 raw = static_cast<unsigned __int128>(random()) << 64 | random();
    return static_cast<__int128>(raw) >> (127 - bits);
  };
  for (int i = 0; i < 100000; ++i) {
    const __int128 a = draw(126), b = draw(126), x = draw(62), y = draw(62), k = draw(60);
    ASSERT_EQ(project(a + b), add(project(a), project(b)));
    ASSERT_EQ(project(x * y), multiply(project(x), project(y)));
    ASSERT_EQ(project(k * x), scale(k, project(x)));
    ASSERT_EQ(project(-a), negate(project(a)));
  }
  // The largest unsigned value is 2^128 - 1; 2^128 = 16 mod 48 and 64 mod 96.
  EXPECT_EQ(project(~static_cast<unsigned __int128>(0)), (TorusPoint{15, 63}));
}

}  // namespace
}  // namespace hologram::atlas
