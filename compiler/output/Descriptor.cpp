#include "compiler/output/Descriptor.h"
#include "compiler/ForwardSignature.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"

using namespace kvc;

namespace {

// Constants in the order of a C struct's fields. LLVM lays out a struct of
// these types as C does.
class StructBuilder {
public:
  StructBuilder(llvm::Module &module) : module(module), context(module.getContext()) {}

  StructBuilder &i32(uint32_t value) { return add(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value)); }
  StructBuilder &i64(int64_t value) { return add(llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value)); }
  StructBuilder &text(llvm::StringRef value) {
    auto *data = llvm::ConstantDataArray::getString(context, value);
    auto *global = new llvm::GlobalVariable(
        module, data->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, data, "text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return add(global);
  }
  StructBuilder &bytes(llvm::ArrayRef<uint8_t> value) { return add(llvm::ConstantDataArray::get(context, value)); }
  StructBuilder &add(llvm::Constant *field) {
    fields.push_back(field);
    return *this;
  }
  llvm::Constant *finish() {
    llvm::Constant *result = llvm::ConstantStruct::getAnon(context, fields);
    fields.clear();
    return result;
  }

private:
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::SmallVector<llvm::Constant *> fields;
};

kvc_type typeCode(mlir::Type type) {
  return type.isF64()   ? KVC_TYPE_F64
         : type.isF32() ? KVC_TYPE_F32
         : type.isF16() ? KVC_TYPE_F16
                        : KVC_TYPE_BF16;
}

// "contiguous" for #kvc.contiguous; with the dialect's name if it is another.
std::string layoutName(CacheType cache) {
  std::string name;
  llvm::raw_string_ostream(name) << cache.getLayout();
  llvm::StringRef rest(name);
  rest.consume_front("#");
  rest.consume_front("kvc.");
  return rest.str();
}

llvm::GlobalVariable *makeGlobal(llvm::Module &module, llvm::Constant *value,
                                 llvm::StringRef name) {
  return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::InternalLinkage, value,
                                  name);
}

} // namespace

std::unique_ptr<llvm::Module>
kvc::buildDescriptor(llvm::LLVMContext &context,
                     const LibraryDescription &d,
                     llvm::ArrayRef<LevelCode> levels) {
  auto module = std::make_unique<llvm::Module>("descriptor", context);
  auto *pointer = llvm::PointerType::get(context, 0);
  StructBuilder builder(*module);

  // kvc_kernels
  llvm::SmallVector<llvm::Constant *> kernels;
  for (const LevelCode &level : levels) {
    auto *type = llvm::FunctionType::get(
        llvm::Type::getVoidTy(context),
        llvm::SmallVector<llvm::Type *>(AbiArgument::Count, pointer), /*isVarArg=*/false);
    auto *forward =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                               level.entry, *module);
    forward->setVisibility(llvm::GlobalValue::HiddenVisibility);
    kernels.push_back(builder.text(level.target.level)
                          .text(level.target.features)
                          .add(forward)
                          .finish());
  }
  auto *kernelArray = llvm::ConstantArray::get(
      llvm::ArrayType::get(kernels.front()->getType(), kernels.size()), kernels);

  // kvc_library
  LayoutAttrInterface layout = d.cache.getLayoutInterface();
  llvm::Constant *library =
      builder.i32(KVC_ABI_VERSION)
          .i32(sizeof(kvc_library))
          .text(d.name)
          .text(kCompilerVersion)
          .bytes(d.weights.identity)
          .i64(d.vocab)
          .i64(d.width)
          .i64(d.cache.getLayers())
          .i64(d.heads)
          .i64(d.cache.getKvHeads())
          .i64(d.cache.getKeyWidth())
          .i64(d.cache.getValueWidth())
          .i64(d.cache.getCapacity())
          .i32(typeCode(d.arithmetic))
          .i32(typeCode(d.cache.getElementType()))
          .text(layoutName(d.cache))
          .i64(layout.getPositionsPerPage(d.cache))
          .i64(d.cache.getPagesPerSequence())
          .i64(layout.getPageBytes(d.cache))
          .i64(layout.getPagePadding(d.cache))
          .i64(d.weights.bytes)
          .i64(d.weights.padding)
          .i64(d.maxTokens)
          .i64(d.workspaceBytes)
          .i64(levels.size())
          .add(makeGlobal(*module, kernelArray, "kernels"))
          .finish();

  auto *accessor = llvm::Function::Create(
      llvm::FunctionType::get(pointer, /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, d.name + "_library", *module);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(context, "", accessor));
  ir.CreateRet(makeGlobal(*module, library, "library"));
  // What the header calls: another model of this name has another.
  llvm::GlobalAlias::create(d.name + "_library_" + d.tag(), accessor);
  // Two models of one name in one program clash here.
  auto *byte = llvm::Type::getInt8Ty(context);
  auto *once = new llvm::GlobalVariable(
      *module, byte, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantInt::get(byte, 0),
      d.name + "_is_linked_twice_use_kvc_opt_name");
  once->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return module;
}
