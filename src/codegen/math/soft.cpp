#include "codegen/math/soft.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>

namespace hologram::codegen::soft {
namespace {

using llvm::Value;

constexpr unsigned char kBitcode[] = {
#include "soft_bitcode.inc"
};

llvm::Function* routine(llvm::Module& module, llvm::StringRef name, unsigned arguments) {
  if (llvm::Function* const known = module.getFunction(name)) return known;
  llvm::Type* const number = llvm::Type::getDoubleTy(module.getContext());
  const llvm::SmallVector<llvm::Type*, 3> types(arguments, number);
  auto* const type = llvm::FunctionType::get(number, types, false);
  auto* const function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  function->setMemoryEffects(llvm::MemoryEffects::none());
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

}  // namespace

Value* call(LaneOps& ops, llvm::StringRef name, llvm::ArrayRef<Value*> arguments, Value* where) {
  llvm::IRBuilder<>& b = ops.b;
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::Function* const callee =
      routine(*function->getParent(), name, static_cast<unsigned>(arguments.size()));
  const unsigned lanes = LaneOps::lanes_of(arguments[0]);
  if (lanes == 1 && !where) return b.CreateCall(callee, arguments);

  // The lanes go through memory, so that a loop can take them one by one.
  llvm::IRBuilder<> at_start(&function->getEntryBlock(), function->getEntryBlock().begin());
  const auto spill = [&](Value* value) {
    llvm::AllocaInst* const slot = at_start.CreateAlloca(value->getType());
    b.CreateStore(value, slot);
    return slot;
  };
  llvm::SmallVector<Value*, 3> slots;
  for (Value* argument : arguments) slots.push_back(spill(argument));
  llvm::Type* const type = arguments[0]->getType();
  Value* const results = spill(llvm::Constant::getNullValue(type));
  if (!where) where = llvm::Constant::getAllOnesValue(LaneOps::with_lanes(b.getInt1Ty(), lanes));
  Value* const wanted = spill(b.CreateZExt(where, LaneOps::with_lanes(b.getInt8Ty(), lanes)));

  const auto block = [&](const char* block_name) {
    return llvm::BasicBlock::Create(b.getContext(), block_name, function);
  };
  llvm::BasicBlock* const start = b.GetInsertBlock();
  llvm::BasicBlock* const head = block("soft");
  llvm::BasicBlock* const run = block("soft.lane");
  llvm::BasicBlock* const next = block("soft.next");
  llvm::BasicBlock* const end = block("soft.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* const lane = b.CreatePHI(b.getInt64Ty(), 2);
  lane->addIncoming(b.getInt64(0), start);
  Value* const is_wanted = b.CreateLoad(b.getInt8Ty(), b.CreateGEP(b.getInt8Ty(), wanted, lane));
  b.CreateCondBr(b.CreateICmpNE(is_wanted, b.getInt8(0)), run, next);
  b.SetInsertPoint(run);
  const auto of_lane = [&](Value* slot) { return b.CreateGEP(b.getDoubleTy(), slot, lane); };
  llvm::SmallVector<Value*, 3> values;
  for (Value* slot : slots) values.push_back(b.CreateLoad(b.getDoubleTy(), of_lane(slot)));
  b.CreateStore(b.CreateCall(callee, values), of_lane(results));
  b.CreateBr(next);
  b.SetInsertPoint(next);
  Value* const following = b.CreateAdd(lane, b.getInt64(1));
  lane->addIncoming(following, next);
  b.CreateCondBr(b.CreateICmpULT(following, b.getInt64(lanes)), head, end);
  b.SetInsertPoint(end);
  return b.CreateLoad(type, results);
}

Status link(llvm::Module& module) {
  llvm::SmallVector<std::string, 4> wanted;
  for (const llvm::Function& f : module)
    if (f.isDeclaration() && !f.isIntrinsic()) wanted.push_back(f.getName().str());
  if (wanted.empty()) return {};

  const llvm::StringRef bytes(reinterpret_cast<const char*>(kBitcode), sizeof kBitcode);
  auto parsed = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, "soft"), module.getContext());
  if (!parsed)
    return fail(ErrorCode::internal, "soft routines: {}", llvm::toString(parsed.takeError()));
  (*parsed)->setTargetTriple(module.getTargetTriple());
  (*parsed)->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(*parsed), llvm::Linker::LinkOnlyNeeded))
    return fail(ErrorCode::internal, "soft routines: linking failed");
  // They run on the machine the code is for, not on the one Hologram was built for.
  const llvm::AttributeList like = module.getFunction("entry")->getAttributes();
  for (const std::string& name : wanted) {
    llvm::Function* const f = module.getFunction(name);
    if (f->isDeclaration()) return fail(ErrorCode::internal, "there is no soft routine '{}'", name);
    f->setLinkage(llvm::GlobalValue::InternalLinkage);
    f->setAttributes(
        llvm::AttributeList::get(module.getContext(), llvm::AttributeList::FunctionIndex,
                                 llvm::AttrBuilder(module.getContext(), like.getFnAttrs())));
    f->addFnAttr(llvm::Attribute::NoInline);
  }
  for (llvm::GlobalVariable& g : module.globals())
    if (!g.isDeclaration()) g.setLinkage(llvm::GlobalValue::PrivateLinkage);
  return {};
}

}  // namespace hologram::codegen::soft
