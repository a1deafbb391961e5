#include "codegen/object_linker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace hologram::codegen {
namespace {

// Objects written by the assembler of LLVM, from source.
Result<LinkedCode> link_assembly(const std::string& source) {
  const std::string name = ::testing::TempDir() + "linker_test";
  std::ofstream(name + ".s") << source;
  const std::string command =
      std::string(HOLOGRAM_TEST_CLANG) + " -c " + name + ".s -o " + name + ".o";
  if (std::system(command.c_str()) != 0) return fail(ErrorCode::internal, "no assembler");
  std::ifstream file(name + ".o", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return link_object(std::as_bytes(std::span(bytes)), "entry");
}

constexpr const char* kStart = ".text\n.globl entry\nentry:\n";

TEST(ObjectLinker, JoinsCodeAndConstants) {
  const auto linked = link_assembly(std::string(kStart) +
                                    "  movl value(%rip), %eax\n  ret\n"
                                    ".section .rodata,\"a\"\n.p2align 6\nvalue:\n  .long 42\n");
  ASSERT_TRUE(linked) << linked.error().to_string();
  EXPECT_EQ(linked->entry_offset, 0u);
  // The data starts on the next multiple of 64; the distance is from the end of the instruction.
  ASSERT_EQ(linked->bytes.size(), 68u);
  EXPECT_EQ(static_cast<int>(linked->bytes[2]), 64 - 6);
  EXPECT_EQ(static_cast<int>(linked->bytes[64]), 42);
}

TEST(ObjectLinker, RefusesUndefinedSymbols) {
  const auto linked = link_assembly(std::string(kStart) + "  jmp memcpy\n");
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().code(), ErrorCode::internal);
  EXPECT_EQ(linked.error().message(), "object: undefined symbol 'memcpy'");
}

TEST(ObjectLinker, RefusesAbsoluteAddresses) {
  const auto linked = link_assembly(std::string(kStart) + "  movabsq $entry, %rax\n  ret\n");
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().message(), "object: relocation type 1 is not relative to the code");
}

TEST(ObjectLinker, RefusesDataThatCanBeWritten) {
  const auto linked = link_assembly(std::string(kStart) + "  ret\n.data\n  .long 1\n");
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().message(), "object: section '.data' can be written");
}

TEST(ObjectLinker, RefusesWhatIsNotAnObject) {
  const std::byte bytes[4] = {};
  EXPECT_EQ(link_object(bytes, "entry").error().code(), ErrorCode::internal);
  EXPECT_EQ(link_assembly(".text\n  ret\n").error().message(), "object: no symbol 'entry'");
}

}  // namespace
}  // namespace hologram::codegen
