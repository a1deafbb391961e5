#include "isa/binary.h"

#include <gtest/gtest.h>

#include "isa/builder.h"
#include "isa/testing/random.h"
#include "isa/testing/random_program.h"

namespace hologram::isa {
namespace {

TEST(Binary, RandomProgramsSurviveTheRoundTrip) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Program program = testing::draw_case(seed, testing::FloatMode::math).program;
    const std::vector<std::byte> bytes = encode(program);
    const auto back = decode(bytes);
    ASSERT_TRUE(back) << back.error().to_string();
    ASSERT_EQ(*back, program);
  }
}

// Files are out there: this must never change.
TEST(Binary, TheBytesAreThese) {
  Builder b("k");
  const auto x = b.array("x", DType::f32, Access::read_write);
  b.shared("s", DType::u8, 300);
  const Register i = b.id(Opcode::global_id, 1, DType::u64);
  b.store(x, i, b.floating(DType::f32, 1.0));
  const auto program = b.finish();
  ASSERT_TRUE(program);
  const uint8_t expected[] = {
      'H', 'I', 'S', 'A',  1,                       // magic, version
      1,   'k',                                     // name
      1,   1,   'x', 3,    11,                      // one parameter: read_write f32
      1,   1,   's', 5,    0xac, 2,                 // one shared array: u8[300]
      2,   8,   11,                                 // registers: u64, f32
      3,                                            // instructions
      124, 8,   1,   0,                             // %0 = global_id.y.u64
      1,   11,  1,   0x80, 0x80, 0x80, 0xfc, 0x03,  // %1 = imm.f32 1.0
      131, 11,  0,   1,    0,                       // store x[%0], %1
  };
  const std::vector<std::byte> bytes = encode(*program);
  EXPECT_EQ(bytes, std::vector<std::byte>(reinterpret_cast<const std::byte*>(std::begin(expected)),
                                          reinterpret_cast<const std::byte*>(std::end(expected))));
}

TEST(Binary, EveryOperationHasItsNumber) {
  for (uint8_t i = 0; i < kOpcodeCount; ++i) {
    const auto op = static_cast<Opcode>(i);
    EXPECT_EQ(opcode_from_binary_code(binary_code(op)), op);
  }
  EXPECT_FALSE(opcode_from_binary_code(0));
  EXPECT_FALSE(opcode_from_binary_code(255));
}

TEST(Binary, EveryTruncationIsRefused) {
  const std::vector<std::byte> bytes = encode(testing::draw_case(3).program);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto program = decode(std::span(bytes).first(size));
    ASSERT_FALSE(program) << size;
    ASSERT_EQ(program.error().code(), ErrorCode::corrupt);
  }
}

// A flipped byte is refused, or is another valid program with exactly these bytes.
TEST(Binary, DamagedBytesNeverCrash) {
  testing::Random random(11);
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<std::byte> bytes = encode(testing::draw_case(seed).program);
    for (int k = 0; k < 200; ++k) {
      std::vector<std::byte> damaged = bytes;
      for (uint32_t flips = 1 + random.below(3); flips > 0; --flips)
        damaged[random.below(static_cast<uint32_t>(damaged.size()))] =
            std::byte{static_cast<uint8_t>(random.next())};
      const auto program = decode(damaged);
      if (!program) continue;
      ++accepted;
      ASSERT_EQ(encode(*program), damaged);
    }
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace hologram::isa
