#include "compiler/output/Library.h"
#include "compiler/output/Version.h"
#include "compiler/ForwardSignature.h"
#include "compiler/cuda/Launch.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"

using namespace kvc;

namespace {

static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "expected a host that lays out the structs of abi.h as every target "
              "does");

// What a pointer of a struct leads to: its offset there, and the target.
using Pointer = std::pair<size_t, llvm::Constant *>;

// A struct of abi.h: its bytes, with pointers (in the order of their offsets) where
// the host has none.
template <typename Struct>
llvm::Constant *constantOf(llvm::LLVMContext &context, const Struct &value,
                           llvm::ArrayRef<Pointer> pointers) {
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(&value), sizeof value);
  llvm::SmallVector<llvm::Constant *> parts;
  size_t at = 0;
  for (auto [offset, target] : pointers) {
    parts.push_back(llvm::ConstantDataArray::get(context, bytes.slice(at, offset - at)));
    parts.push_back(target);
    at = offset + sizeof(void *);
  }
  parts.push_back(llvm::ConstantDataArray::get(context, bytes.drop_front(at)));
  return llvm::ConstantStruct::getAnon(context, parts, /*Packed=*/true);
}

llvm::Constant *text(llvm::Module &module, llvm::StringRef value) {
  auto *data = llvm::ConstantDataArray::getString(module.getContext(), value);
  auto *global = new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, data, "text");
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return global;
}

kvc_type typeCode(mlir::Type type) {
  if (type.isF64())
    return KVC_TYPE_F64;
  if (type.isF32())
    return KVC_TYPE_F32;
  if (type.isF16())
    return KVC_TYPE_F16;
  if (type.isBF16())
    return KVC_TYPE_BF16;
  llvm::reportFatalInternalError("expected an element type of abi.h");
}

// "contiguous" for #kvc.contiguous; with the dialect's name if it is another.
std::string layoutName(mlir::Attribute layout) {
  std::string name;
  llvm::raw_string_ostream(name) << layout;
  llvm::StringRef rest(name);
  rest.consume_front("#");
  rest.consume_front("kvc.");
  return rest.str();
}

llvm::GlobalVariable *makeGlobal(llvm::Module &module, llvm::Constant *value,
                                 llvm::StringRef name) {
  auto *global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage, value, name);
  global->setAlignment(llvm::Align(alignof(kvc_library)));
  return global;
}

llvm::Constant *arrayOf(llvm::Module &module, llvm::ArrayRef<llvm::Constant *> elements,
                        llvm::StringRef name) {
  auto *type = llvm::ArrayType::get(elements.front()->getType(), elements.size());
  return makeGlobal(module, llvm::ConstantArray::get(type, elements), name);
}

llvm::Constant *describe(llvm::Module &module, const Group &group) {
  llvm::SmallVector<llvm::Constant *> sections;
  for (const Section &s : group.getLayout().getSections(group))
    sections.push_back(constantOf(
        module.getContext(),
        kvc_section{s.offset, s.rows, s.pieces, s.lanes, s.bytes}, {}));
  kvc_group description = {};
  description.layers = group.layers;
  description.kv_heads = group.kvHeads;
  description.key_width = group.keyWidth;
  description.value_width = group.valueWidth;
  description.type = typeCode(group.elementType);
  description.positions_per_page = group.getPositionsPerPage();
  description.pages_per_sequence = group.getPagesPerSequence();
  description.page_bytes = group.getPageBytes();
  description.page_padding = group.getPagePadding();
  description.window = group.getLayout().getWindow(group);
  description.sections_count = sections.size();
  return constantOf(
      module.getContext(), description,
      {{offsetof(kvc_group, layout), text(module, layoutName(group.layout))},
       {offsetof(kvc_group, sections), arrayOf(module, sections, "sections")}});
}

} // namespace

std::unique_ptr<llvm::Module>
kvc::buildDescriptor(llvm::LLVMContext &context,
                     const LibraryDescription &d,
                     llvm::ArrayRef<LevelCode> levels,
                     llvm::ArrayRef<DeviceCode> devices) {
  auto module = std::make_unique<llvm::Module>("descriptor", context);
  auto *pointer = llvm::PointerType::get(context, 0);

  // kvc_kernels
  auto forwardOf = [&](llvm::StringRef entry) {
    auto *type = llvm::FunctionType::get(
        llvm::Type::getVoidTy(context),
        llvm::SmallVector<llvm::Type *>(AbiArgument::Count, pointer), /*isVarArg=*/false);
    auto *forward = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                           entry, *module);
    forward->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return forward;
  };
  llvm::SmallVector<llvm::Constant *> kernels;
  for (const LevelCode &level : levels)
    kernels.push_back(constantOf(
        context, kvc_kernels{},
        {{offsetof(kvc_kernels, level), text(*module, level.target.level)},
         {offsetof(kvc_kernels, features), text(*module, level.target.features)},
         {offsetof(kvc_kernels, forward), forwardOf(level.entry)}}));

  // kvc_device_code
  llvm::SmallVector<llvm::Constant *> codes;
  for (const DeviceCode &device : devices) {
    kvc_device_kernel shape = {};
    shape.threads = kLaneThreads * kTasksOfBlock;
    auto launched = llvm::map_to_vector(
        device.kernels, [&](const std::string &name) -> llvm::Constant * {
          return constantOf(context, shape,
                            {{offsetof(kvc_device_kernel, name), text(*module, name)}});
        });
    kvc_device_code code = {};
    code.code_bytes = device.ptx.size();
    code.workspace_bytes = device.workspaceBytes;
    code.kernels_count = launched.size();
    codes.push_back(constantOf(
        context, code,
        {{offsetof(kvc_device_code, device), text(*module, "cuda")},
         {offsetof(kvc_device_code, level), text(*module, device.level)},
         {offsetof(kvc_device_code, code), text(*module, device.ptx)},
         {offsetof(kvc_device_code, kernels), arrayOf(*module, launched, "launched")},
         {offsetof(kvc_device_code, forward), forwardOf(device.entry)}}));
  }

  // kvc_group
  llvm::SmallVector<llvm::Constant *> groups;
  for (const Group &group : d.cache.getGroups())
    groups.push_back(describe(*module, group));

  // kvc_library
  static_assert(KVC_ABI_VERSION == 4 && sizeof(kvc_library) == 192 &&
                    sizeof(kvc_group) == 104 && sizeof(kvc_section) == 40,
                "expected every field of these to be set here");
  kvc_library library = {};
  library.abi_version = KVC_ABI_VERSION;
  library.struct_size = sizeof library;
  llvm::copy(d.weights.identity, library.identity);
  library.vocab = d.vocab;
  library.width = d.width;
  library.layers = d.cache.getLayers();
  library.heads = d.heads;
  library.capacity = d.cache.getCapacity();
  library.arithmetic = typeCode(d.arithmetic);
  library.numerics = d.isTiles ? KVC_NUMERICS_TILES : KVC_NUMERICS_FMA;
  library.exact = d.exact;
  library.weights_bytes = d.weights.bytes;
  library.weights_padding = d.weights.padding;
  library.max_tokens = d.maxTokens;
  library.workspace_bytes = d.workspaceBytes;
  library.groups_count = groups.size();
  library.kernels_count = levels.size();
  library.device_codes_count = devices.size();
  llvm::SmallVector<Pointer> pointers{
      {offsetof(kvc_library, name), text(*module, d.name)},
      {offsetof(kvc_library, compiler), text(*module, kCompilerVersion)},
      {offsetof(kvc_library, groups), arrayOf(*module, groups, "groups")},
      {offsetof(kvc_library, kernels), arrayOf(*module, kernels, "kernels")}};
  if (!codes.empty())
    pointers.push_back({offsetof(kvc_library, device_codes),
                        arrayOf(*module, codes, "device_codes")});
  llvm::Constant *constant = constantOf(context, library, pointers);

  auto *accessor = llvm::Function::Create(
      llvm::FunctionType::get(pointer, /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, d.name + "_library", *module);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(context, "", accessor));
  ir.CreateRet(makeGlobal(*module, constant, "library"));
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
