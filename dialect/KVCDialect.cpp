// Registration of the dialect, and the short names that its IR is printed with.
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;

#include "dialect/KVCDialect.cpp.inc"
#include "dialect/KVCEnums.cpp.inc"
#include "dialect/KVCTypeInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/KVCAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/KVCTypes.cpp.inc"

namespace {
// Prints the cache type once, as `!cache`.
struct KVCAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (!isa<CacheType>(type))
      return AliasResult::NoAlias;
    os << "cache";
    return AliasResult::FinalAlias;
  }
};

// Any kvc op may move into another function: none depends on where it stands.
struct KVCInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override {
    return true;
  }
};

// The storages that are MLIR's own types.
template <typename Float>
struct FloatStorage : WeightStorage::ExternalModel<FloatStorage<Float>, Float> {
  const Storage &getStorage(Type type) const {
    if (type.isF64())
      return f64Storage;
    if (type.isF32())
      return f32Storage;
    return type.isF16() ? f16Storage : bf16Storage;
  }
};

template <typename... Floats> void attachFloatStorages(MLIRContext *context) {
  (Floats::template attachInterface<FloatStorage<Floats>>(*context), ...);
}
} // namespace

Type kvc::typeOf(MLIRContext *context, const Storage &storage) {
  for (Type type : {Type(Float64Type::get(context)), Type(Float32Type::get(context)),
                    Type(Float16Type::get(context)), Type(BFloat16Type::get(context)),
                    Type(Q8_0Type::get(context)), Type(Q4_0Type::get(context)),
                    Type(Q4_1Type::get(context)), Type(Q5_0Type::get(context)),
                    Type(Q5_1Type::get(context)), Type(Q4_KType::get(context)),
                    Type(Q5_KType::get(context)), Type(Q6_KType::get(context))})
    if (storageOf(type) == &storage)
      return type;
  llvm_unreachable("each storage has a type");
}

const Storage *kvc::storageOf(Type type) {
  auto storage = dyn_cast<WeightStorage>(type);
  return storage ? &storage.getStorage() : nullptr;
}

bool kvc::isTiles(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto numerics =
      module ? module->getAttrOfType<StringAttr>(kNumericsAttr) : StringAttr();
  return numerics && numerics.getValue() == "tiles";
}

LogicalResult KVCDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != kNumericsAttr)
    return success();
  auto numerics = dyn_cast<StringAttr>(attribute.getValue());
  if (isa<ModuleOp>(op) && numerics &&
      (numerics.getValue() == "fma" || numerics.getValue() == "tiles"))
    return success();
  return op->emitOpError() << "expected " << kNumericsAttr
                           << " to be \"fma\" or \"tiles\", of a module, but got "
                           << attribute.getValue();
}

void KVCDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/KVCAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/KVCTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/KVCOps.cpp.inc"
      >();
  addInterfaces<KVCAliases, KVCInliner>();
  attachFloatStorages<Float64Type, Float32Type, Float16Type, BFloat16Type>(
      getContext());
}

//===----------------------------------------------------------------------===//
// Cache
//===----------------------------------------------------------------------===//

static ParseResult parseGroup(AsmParser &parser, Group &group) {
  return failure(
      parser.parseKeyword("layers") || parser.parseInteger(group.layers) ||
      parser.parseComma() || parser.parseKeyword("kv_heads") ||
      parser.parseInteger(group.kvHeads) || parser.parseComma() ||
      parser.parseKeyword("capacity") || parser.parseInteger(group.capacity) ||
      parser.parseComma() || parser.parseKeyword("key") ||
      parser.parseInteger(group.keyWidth) || parser.parseComma() ||
      parser.parseKeyword("value") || parser.parseInteger(group.valueWidth) ||
      parser.parseComma() || parser.parseType(group.elementType) ||
      parser.parseComma() || parser.parseAttribute(group.layout));
}

Type CacheType::parse(AsmParser &parser) {
  SmallVector<Group> groups;
  auto parseOne = [&]() -> ParseResult {
    return parseGroup(parser, groups.emplace_back());
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), groups);
}

void CacheType::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getGroups(), printer, [&](const Group &group) {
    printer << "layers " << group.layers << ", kv_heads " << group.kvHeads
            << ", capacity " << group.capacity << ", key " << group.keyWidth
            << ", value " << group.valueWidth << ", " << group.elementType << ", "
            << group.layout;
  });
  printer << ">";
}

static LogicalResult verifyGroup(function_ref<InFlightDiagnostic()> emitError,
                                 const Group &group) {
  // C1: positive sizes.
  for (auto [name, size] : {std::pair{"number of layers", group.layers},
                            {"number of KV heads", group.kvHeads},
                            {"capacity", group.capacity},
                            {"key width", group.keyWidth},
                            {"value width", group.valueWidth}})
    if (size <= 0)
      return emitError() << "expected the " << name
                         << " of a cache to be positive, but got " << size;
  // C2: element type.
  Type element = group.elementType;
  if (!element.isF64() && !element.isF32() && !element.isF16() && !element.isBF16())
    return emitError()
           << "expected the element type of a cache to be f64, f32, f16 or "
              "bf16, but got "
           << element;
  // C4: sizes in 64 bits, with room for rounding the capacity up.
  int64_t bytes = group.getElementBytes(), width = 0;
  bool overflow = llvm::AddOverflow(group.keyWidth, group.valueWidth, width);
  for (int64_t factor : {group.layers, group.kvHeads, width, group.capacity})
    overflow |= llvm::MulOverflow(bytes, factor, bytes);
  if (overflow || bytes > kMaxBytes)
    return emitError() << "expected a sequence of a cache to have at most 2^56 "
                          "bytes, but the product of layers, KV heads, widths, "
                          "capacity and element size is larger";
  // C3: layout.
  if (!isa<LayoutAttrInterface>(group.layout))
    return emitError() << "expected the layout of a cache to be a layout "
                          "attribute such as #kvc.contiguous, but got "
                       << group.layout;
  // C5: the same for a page, which may hold more than a sequence can have.
  int64_t page = group.getPositionsPerPage();
  if (llvm::MulOverflow(bytes / group.capacity, page, bytes) || bytes > kMaxBytes)
    return emitError() << "expected a page of a cache to have at most 2^56 "
                          "bytes, but its "
                       << page << " positions have more";
  return success();
}

LogicalResult CacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<Group> groups) {
  // C6: groups.
  if (groups.empty())
    return emitError() << "expected a cache to have a group of layers, but got none";
  for (const Group &group : groups) {
    if (failed(verifyGroup(emitError, group)))
      return failure();
    // C6: of one capacity.
    if (group.capacity != groups.front().capacity)
      return emitError() << "expected the groups of a cache to have one capacity ("
                         << groups.front().capacity << "), but got "
                         << group.capacity;
  }
  return success();
}

int64_t CacheType::getCapacity() const { return getGroups().front().capacity; }

int64_t CacheType::getLayers() const {
  int64_t layers = 0;
  for (const Group &group : getGroups())
    layers += group.layers;
  return layers;
}

int64_t CacheType::getBytesPerPosition() const {
  int64_t bytes = 0;
  for (const Group &group : getGroups())
    bytes += group.getBytesPerPosition();
  return bytes;
}

int64_t CacheType::getFirstPage(int64_t group) const {
  int64_t pages = 0;
  for (const Group &before : getGroups().take_front(group))
    pages += before.getPagesPerSequence();
  return pages;
}

int64_t CacheType::getPagesPerSequence() const {
  return getFirstPage(getGroups().size());
}

LogicalResult PackingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t offset, int64_t panel) {
  // C1: not negative.
  if (offset < 0 || panel < 0)
    return emitError() << "expected the offset and the panel of a packing not "
                          "to be negative, but got "
                       << offset << " and " << panel;
  return success();
}
