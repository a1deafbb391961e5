#include "codegen/machine.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>
#include <vector>

namespace hologram::codegen {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

const llvm::Target* x86() {
  static std::once_flag once;
  static const llvm::Target* target = nullptr;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    std::string error;
    target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  });
  return target;
}

// A number known to fit a narrow type is itself when widened again. Indices of 32 bits go that way:
// without the detour they are part of an address instead of an instruction each.
struct FoldExactTruncation : llvm::PassInfoMixin<FoldExactTruncation> {
  static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& widened : block) {
        if (!llvm::isa<llvm::ZExtInst, llvm::SExtInst>(widened)) continue;
        const auto* const cut = llvm::dyn_cast<llvm::TruncInst>(widened.getOperand(0));
        if (!cut || cut->getSrcTy() != widened.getType()) continue;
        if (llvm::isa<llvm::ZExtInst>(widened) ? cut->hasNoUnsignedWrap() : cut->hasNoSignedWrap())
          widened.replaceAllUsesWith(cut->getOperand(0));
      }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
  }
};

}  // namespace

Result<Machine*> Machine::of(const Target& target, Effort effort) {
  thread_local std::vector<std::unique_ptr<Machine>> machines;
  for (const auto& known : machines)
    if (known->target_.level() == target.level() && known->effort_ == effort &&
        known->target_.tuned_for() == target.tuned_for())
      return known.get();
  if (!x86()) return fail(ErrorCode::internal, "LLVM has no x86-64 code generator");
  llvm::TargetOptions options;
  options.UniqueSectionNames = false;
  std::unique_ptr<llvm::TargetMachine> machine(x86()->createTargetMachine(
      kTriple, llvm::StringRef(target.level_name()), "", options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small,
      effort == Effort::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
  if (!machine) return fail(ErrorCode::internal, "LLVM does not know {}", target.level_name());
  machines.push_back(std::unique_ptr<Machine>(new Machine(target, effort, std::move(machine))));
  return machines.back().get();
}

void Machine::prepare(llvm::Module& module) const {
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine_->createDataLayout());
}

void Machine::prepare(llvm::Function& function) const {
  function.addFnAttr("target-cpu", llvm::StringRef(target_.level_name()));
  if (!target_.tuned_for().empty()) function.addFnAttr("tune-cpu", target_.tuned_for());
  const std::string bits = std::to_string(target_.vector_bits());
  function.addFnAttr("prefer-vector-width", bits);
  function.addFnAttr("min-legal-vector-width", bits);
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("no-builtins");
}

void Machine::optimise(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Nothing may become a call of the C library.
  llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  llvm::PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  const auto run = [&](llvm::FunctionPassManager& wanted) {
    for (llvm::Function& function : module)
      if (!function.isDeclaration()) wanted.run(function, functions);
  };
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  if (effort_ == Effort::quick) return run(passes);
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(FoldExactTruncation());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::DCEPass());
  run(passes);
}

Result<llvm::SmallVector<char, 0>> Machine::assemble(llvm::Module& module) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                    /*DisableVerify=*/true))
    return fail(ErrorCode::internal, "LLVM cannot write objects for {}", target_.level_name());
  passes.run(module);
  return object;
}

}  // namespace hologram::codegen
