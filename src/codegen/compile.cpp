#include "codegen/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "codegen/flat_emitter.h"
#include "codegen/function_emitter.h"
#include "codegen/machine.h"
#include "codegen/math/soft.h"
#include "codegen/object_linker.h"
#include "isa/verifier.h"

namespace hologram::codegen {
namespace {

constexpr const char* kEntry = "entry";
constexpr const char* kWords = "words";

llvm::Function* declare_entry(llvm::Module& module, const char* name, bool is_public) {
  using Linkage = llvm::GlobalValue::LinkageTypes;
  const Linkage linkage = is_public ? Linkage::ExternalLinkage : Linkage::InternalLinkage;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* const number = llvm::Type::getInt64Ty(context);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                             {pointer, number, number, pointer}, false);
  auto* const entry = llvm::Function::Create(type, linkage, name, module);
  for (unsigned argument : {0u, 3u}) entry->addParamAttr(argument, llvm::Attribute::NoAlias);
  return entry;
}

llvm::Function* declare_words(llvm::Module& module, size_t count) {
  llvm::LLVMContext& context = module.getContext();
  const llvm::SmallVector<llvm::Type*> words(count, llvm::Type::getInt64Ty(context));
  return llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), words, false),
      llvm::GlobalValue::ExternalLinkage, kWords, module);
}

// Behind every jump the code nests one deeper, and so do we.
constexpr ptrdiff_t kMaxJumps = 1000;

Status check_size(const isa::Program& program) {
  const ptrdiff_t jumps = std::ranges::count_if(program.body, [](const isa::Instruction& i) {
    return isa::info(i.op).form == isa::Form::jump;
  });
  if (jumps <= kMaxJumps) return {};
  return fail(ErrorCode::unsupported,
              "kernel '{}' has {} breaks, continues and returns; native code is made for at most "
              "{}: split the kernel, or let the interpreter run it",
              program.name, jumps, kMaxJumps);
}

// Goes on where a launch has blocks of `threads` along x; others are handed to `general`.
void check_block(llvm::IRBuilder<>& b, llvm::Function* function, llvm::Function* general,
                 unsigned threads) {
  const auto matches = [&](int axis, unsigned size) {
    const size_t offset = offsetof(isa::NativeLaunch, block) + 4 * static_cast<size_t>(axis);
    llvm::Value* const address = b.CreateConstGEP1_64(b.getInt8Ty(), function->getArg(0), offset);
    return b.CreateICmpEQ(b.CreateAlignedLoad(b.getInt32Ty(), address, llvm::Align(4)),
                          b.getInt32(size));
  };
  llvm::Value* const whole =
      b.CreateAnd(matches(0, threads), b.CreateAnd(matches(1, 1), matches(2, 1)));
  auto* const other = llvm::BasicBlock::Create(b.getContext(), "other", function);
  auto* const block = llvm::BasicBlock::Create(b.getContext(), "whole", function);
  b.CreateCondBr(whole, block, other);
  b.SetInsertPoint(other);
  llvm::SmallVector<llvm::Value*, 4> arguments;
  for (llvm::Argument& argument : function->args()) arguments.push_back(&argument);
  b.CreateCall(general, arguments)->setTailCallKind(llvm::CallInst::TCK_MustTail);
  b.CreateRetVoid();
  b.SetInsertPoint(block);
}

// What the steps of a compilation hand to each other.
struct Compilation {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  Machine* machine = nullptr;
  uint64_t scratch_fixed = 0;
  uint64_t scratch_per_thread = 0;
};

Status write_ir(Compilation& c, const isa::Program& program, const Target& target, Effort effort) {
  HOLOGRAM_CHECK(isa::verify(program));
  HOLOGRAM_CHECK(check_size(program));
  HOLOGRAM_TRY(c.machine, Machine::of(target, effort));
  c.module = std::make_unique<llvm::Module>(program.name, c.context);
  c.machine->prepare(*c.module);
  const auto declare = [&](const char* name, bool is_public) {
    llvm::Function* const function = declare_entry(*c.module, name, is_public);
    c.machine->prepare(*function);
    return function;
  };
  // Code that runs once has no use for the second function.
  const bool flat = effort == Effort::full && FlatEmitter::suits(program);
  const unsigned whole = effort == Effort::full ? whole_block_of(program, target) : 0;
  const bool two = flat || whole;
  llvm::Function* const entry = declare(two ? "grid" : kEntry, !two);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(c.context, "start", entry));
  FunctionEmitter emitter(program, target, entry, builder);
  emitter.emit();
  if (flat) {
    llvm::Function* const row = declare(kEntry, true);
    builder.SetInsertPoint(llvm::BasicBlock::Create(c.context, "start", row));
    FlatEmitter(program, target, row, builder).emit(entry);
    if (FlatEmitter::needs_words_alone(program)) {
      llvm::Function* const words = declare_words(*c.module, program.parameters.size());
      c.machine->prepare(*words);
      builder.SetInsertPoint(llvm::BasicBlock::Create(c.context, "start", words));
      FlatEmitter(program, target, words, builder, true).emit();
    }
  } else if (whole) {
    llvm::Function* const block = declare(kEntry, true);
    builder.SetInsertPoint(llvm::BasicBlock::Create(c.context, "start", block));
    check_block(builder, block, entry, whole);
    FunctionEmitter(program, target, block, builder, whole).emit();
  }
  c.scratch_fixed = emitter.scratch_fixed();
  c.scratch_per_thread = emitter.scratch_per_thread();
  HOLOGRAM_CHECK(soft::link(*c.module));
#ifndef NDEBUG
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(*c.module, &stream))
    return fail(ErrorCode::internal, "kernel '{}': {}", program.name, message);
#endif
  return {};
}

}  // namespace

Result<isa::NativeCode> compile(const isa::Program& program, const Target& target, Effort effort) {
  Compilation c;
  HOLOGRAM_CHECK(write_ir(c, program, target, effort));
  c.machine->optimise(*c.module);
  HOLOGRAM_TRY(const auto object, c.machine->assemble(*c.module));
  HOLOGRAM_TRY(LinkedCode linked, link_object(std::as_bytes(std::span(object)), kEntry, kWords));
  isa::NativeCode code;
  code.level = target.level_name();
  code.code = std::move(linked.bytes);
  code.entry_offset = linked.entry_offset;
  code.words_offset = linked.second_offset;
  code.scratch_fixed = c.scratch_fixed;
  code.scratch_per_thread = c.scratch_per_thread;
  return code;
}

Result<std::string> compile_to_ir(const isa::Program& program, const Target& target,
                                  bool optimised) {
  Compilation c;
  HOLOGRAM_CHECK(write_ir(c, program, target, Effort::full));
  if (optimised) c.machine->optimise(*c.module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  c.module->print(stream, nullptr);
  return text;
}

}  // namespace hologram::codegen
