#include "runtime/embedded_bundle.h"

#include "support/log.h"

// HOLOGRAM_BUNDLE_FILE is the file that bundle_kernels wrote; the assembler copies it in.
asm(R"(
  .pushsection .rodata.hologram_bundle, "a", @progbits
  .balign 64
  .hidden hologram_bundle_begin
  .globl hologram_bundle_begin
hologram_bundle_begin:
  .incbin ")" HOLOGRAM_BUNDLE_FILE R"("
  .hidden hologram_bundle_end
  .globl hologram_bundle_end
hologram_bundle_end:
  .byte 0
  .popsection
)");

extern "C" __attribute__((visibility("hidden"))) const std::byte hologram_bundle_begin[];
extern "C" __attribute__((visibility("hidden"))) const std::byte hologram_bundle_end[];

namespace hologram::runtime {

const KernelBundle& embedded_bundle() {
  static const KernelBundle bundle = [] {
    auto opened = KernelBundle::open(
        {hologram_bundle_begin, static_cast<size_t>(hologram_bundle_end - hologram_bundle_begin)});
    if (!opened) log::error("the bundle of kernels is damaged: {}", opened.error().to_string());
    return opened.value_or(KernelBundle());
  }();
  return bundle;
}

}  // namespace hologram::runtime
