#include "codegen/disassembler.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <map>
#include <memory>

namespace hologram::codegen {

Result<std::vector<MachineInstruction>> disassemble(const isa::NativeCode& code) {
  static const bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    return true;
  }();
  (void)initialised;
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (!target) return fail(ErrorCode::internal, "disassembler: {}", error);
  const std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(triple.str()));
  const std::unique_ptr<llvm::MCAsmInfo> syntax(
      target->createMCAsmInfo(*registers, triple.str(), llvm::MCTargetOptions()));
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple.str(), code.level, ""));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  const std::unique_ptr<llvm::MCInstrAnalysis> analysis(
      target->createMCInstrAnalysis(instructions.get()));
  llvm::MCContext context(triple, syntax.get(), registers.get(), subtarget.get());
  const std::unique_ptr<llvm::MCDisassembler> decoder(
      target->createMCDisassembler(*subtarget, context));
  const std::unique_ptr<llvm::MCInstPrinter> printer(
      target->createMCInstPrinter(triple, /*SyntaxVariant=*/1, *syntax, *instructions, *registers));

  const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(code.code.data()),
                                      code.code.size());
  std::map<uint64_t, std::string> found;
  std::vector<uint64_t> starts = {code.entry_offset};
  while (!starts.empty()) {
    uint64_t at = starts.back();
    starts.pop_back();
    while (!found.contains(at)) {
      llvm::MCInst instruction;
      uint64_t size = 0;
      if (at >= bytes.size() ||
          decoder->getInstruction(instruction, size, bytes.slice(at), at, llvm::nulls()) !=
              llvm::MCDisassembler::Success)
        return fail(ErrorCode::corrupt, "native code: no instruction at offset {}", at);
      std::string text;
      llvm::raw_string_ostream stream(text);
      printer->printInst(&instruction, at, "", *subtarget, stream);
      found.emplace(at, llvm::StringRef(text).ltrim().str());
      uint64_t to = 0;
      if ((analysis->isBranch(instruction) || analysis->isCall(instruction)) &&
          analysis->evaluateBranch(instruction, at, size, to))
        starts.push_back(to);
      if (analysis->isUnconditionalBranch(instruction) || analysis->isReturn(instruction)) break;
      at += size;
    }
  }
  std::vector<MachineInstruction> result;
  for (auto& [offset, text] : found) result.push_back({offset, std::move(text)});
  return result;
}

}  // namespace hologram::codegen
