#include "runtime/session/native_code.h"

#include <cstring>

#include "archive/code_section.h"
#include "backends/cpu/cpu_level.h"
#include "support/aligned.h"
#include "support/log.h"

namespace hologram::runtime {
namespace {

using archive::CodeEntry;
using archive::CodeSection;

// The ISA of a program, as stored.
std::span<const std::byte> program_bytes(const archive::Model& model, uint32_t index) {
  const auto* code = model.programs()->Get(index)->code();
  return code ? std::as_bytes(std::span(code->data(), code->size())) : std::span<const std::byte>();
}

Result<backends::CodeMap> attach(std::span<const std::byte> section,
                                 const archive::Archive& archive,
                                 std::span<kernels::Pointwise> programs) {
  // What is checked is what will run: a file that changes while it is mapped must not matter.
  HOLOGRAM_TRY(AlignedBytes copy, AlignedBytes::allocate(section.size()));
  std::memcpy(copy.data(), section.data(), section.size());
  const std::span<const std::byte> bytes(copy.data(), section.size());
  HOLOGRAM_TRY(const CodeSection code, CodeSection::open(bytes));
  if (!archive.trusted().has(code.signer()))
    return fail(ErrorCode::permission_denied,
                "it is signed by {}, which is not trusted (hologram trust {})",
                code.signer().to_text(), code.signer().to_text());
  if (!code.is_genuine()) return fail(ErrorCode::permission_denied, "its signature is not genuine");
  for (const CodeEntry& entry : code.entries())
    if (entry.program >= programs.size() ||
        archive::secure_hash(program_bytes(archive.model(), entry.program)) != entry.program_hash ||
        entry.scratch_fixed != 0 || entry.scratch_per_thread != 0)
      return fail(ErrorCode::corrupt, "it belongs to another program");
  HOLOGRAM_TRY(backends::CodeMap map, backends::CodeMap::map(bytes));
  for (const CodeEntry& entry : code.entries())
    programs[entry.program].attach(entry.uniform,
                                   reinterpret_cast<isa::NativeEntry>(const_cast<std::byte*>(
                                       map.data() + entry.code_offset + entry.entry_offset)));
  return map;
}

}  // namespace

backends::CodeMap attach_native_code(const archive::Archive& archive,
                                     std::span<kernels::Pointwise> programs) {
  const auto host = static_cast<uint32_t>(backends::level_rank(backends::host_level()));
  std::span<const std::byte> best;
  for (std::span<const std::byte> section : archive.code()) {
    const uint32_t level = archive::code_level(section);
    if (level >= 2 && level <= host && level > archive::code_level(best)) best = section;
  }
  if (archive.code().empty() || programs.empty()) return {};
  if (best.empty()) {
    log::warn("the archive's native code is for other processors; its programs are interpreted");
    return {};
  }
  auto map = attach(best, archive, programs);
  if (map) return *std::move(map);
  log::warn("the archive's native code is not used: {}; its programs are interpreted",
            map.error().message());
  return {};
}

}  // namespace hologram::runtime
