// Machine: LLVM's optimiser and machine code generator for one target.
//
// Internal to the layer (LLVM types). Making one takes milliseconds, so every thread keeps those it
// has used.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "support/result.h"

namespace hologram::codegen {

class Machine {
 public:
  // This thread's machine for `target`; it lives as long as the thread.
  static Result<Machine*> of(const Target& target, Effort effort);

  // Gives a new module and its entry function what the target needs.
  void prepare(llvm::Module& module) const;
  void prepare(llvm::Function& function) const;
  // The passes that pay: the emitters already write what most others would look for.
  void optimise(llvm::Module& module);
  // The module as an ELF object.
  Result<llvm::SmallVector<char, 0>> assemble(llvm::Module& module);

 private:
  Machine(const Target& target, Effort effort, std::unique_ptr<llvm::TargetMachine> machine)
      : target_(target), effort_(effort), machine_(std::move(machine)) {}

  Target target_;
  Effort effort_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace hologram::codegen
