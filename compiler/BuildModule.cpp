// Builds the kvc module of a model: weights, one function for each kind of layer,
// and `@forward`, which loops over the layers.
#include "compiler/BuildModule.h"
#include "compiler/ForwardSignature.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace kvc;

namespace {

Activation activationOf(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::GELU:
    return Activation::GELU;
  case ActivationKind::GELUTanh:
    return Activation::GELUTanh;
  case ActivationKind::SiLU:
    return Activation::SiLU;
  case ActivationKind::ReLU:
    return Activation::ReLU;
  }
  llvm_unreachable("all activations have been named");
}

// The windows of layers, each once: 0 is none, and the first.
SmallVector<int64_t> windowsOf(const ModelSpec &spec) {
  std::set<int64_t> windows(spec.windows.begin(), spec.windows.end());
  return SmallVector<int64_t>(windows.begin(), windows.end());
}

class ModuleBuilder {
public:
  // `matrices`: how they are stored; null: as the file has them. `roundings`: what
  // inputs are rounded to where a matrix's storage is multiplied with such.
  ModuleBuilder(MLIRContext *context, const ModelSpec &spec, Type arithmetic,
                const Storage *matrices, ArrayRef<Rounding> roundings, CacheType cache)
      : spec(spec), b(UnknownLoc::get(context), context),
        arithmetic(arithmetic), matrices(matrices), roundings(roundings),
        cache(cache) {}

  OwningOpRef<ModuleOp> build();

private:
  RankedTensorType rows(int64_t width) {
    return RankedTensorType::get({ShapedType::kDynamic, width}, arithmetic);
  }
  RankedTensorType perToken(Type type) {
    return RankedTensorType::get({ShapedType::kDynamic}, type);
  }
  FlatSymbolRefAttr symbol(const WeightSpec &weight) {
    return FlatSymbolRefAttr::get(b.getContext(), weight.symbol);
  }
  FlatSymbolRefAttr symbol(const std::optional<WeightSpec> &weight) {
    return weight ? symbol(*weight) : FlatSymbolRefAttr();
  }

  // The name that the next values are printed with.
  ModuleBuilder &as(StringRef name) {
    b.setLoc(NameLoc::get(b.getStringAttr(name)));
    return *this;
  }
  // The entry block of `function`, with names for its arguments.
  Block *addEntry(func::FuncOp function, ArrayRef<StringRef> names);
  void nameArguments(Block *block, ArrayRef<StringRef> names);

  const Storage &storageFor(const WeightSpec &weight, const Storage *inFile);
  // The layers of each storage, in the order of their first.
  using LayersByStorage = llvm::MapVector<const Storage *, SmallVector<int64_t>>;
  LayersByStorage layersOf(const WeightSpec &weight);
  void declare(const WeightSpec &weight);
  void declare(const WeightSpec &weight, const Storage &storage, StringRef symbol,
               int64_t layers, DenseI64ArrayAttr fileLayers);
  void declare(const std::optional<WeightSpec> &weight) {
    if (weight)
      declare(*weight);
  }
  void declareAll();
  Value norm(Value x, const WeightSpec &weight,
             const std::optional<WeightSpec> &bias, Value layer);
  Value linear(Value x, const WeightSpec &weight,
               const std::optional<WeightSpec> &bias, Value layer);
  Value rotary(Value x, Value positions);
  std::string layerName(int64_t window);
  void buildLayer(int64_t window);
  // x and the cache, as they go from layer to layer.
  using State = SmallVector<Value>;
  // Whether layers stand in groups of the cache, one for each window.
  bool hasGroups() { return cache.getGroups().size() > 1; }
  Value layerAt(Value base, int64_t offset);
  Value cachedAt(Value number, int64_t offset);
  State loop(StringRef name, Value from, Value to, int64_t step, const State &state,
             function_ref<State(Value layer, const State &)> body);
  State decode(Value base, Value number, int64_t offset, ArrayRef<int64_t> windows,
               State state);
  State decodeAll(const State &state);
  void buildForward();

  const ModelSpec &spec;
  ImplicitLocOpBuilder b;
  Type arithmetic;
  const Storage *matrices;
  ArrayRef<Rounding> roundings;
  CacheType cache;
  int64_t period = 0; // after which kinds of layers return
  Value positions, sequences; // of @forward
};

// Matrices are stored as the command line asks or the file has them, but in floats
// where rows aren't whole blocks, and in no wider ones than the arithmetic's;
// vectors, which are small, in those.
const Storage &ModuleBuilder::storageFor(const WeightSpec &weight,
                                         const Storage *inFile) {
  const Storage &widest = *storageOf(arithmetic);
  if (weight.shape.size() != 2)
    return widest;
  auto fits = [&](const Storage *storage) {
    if (!storage)
      return false;
    if (storage->quants)
      return !weight.transposed && weight.shape[1] % storage->elements == 0;
    return storage->bytes <= widest.bytes;
  };
  for (const Storage *storage : {matrices, inFile})
    if (fits(storage))
      return *storage;
  return widest;
}

ModuleBuilder::LayersByStorage
ModuleBuilder::layersOf(const WeightSpec &weight) {
  LayersByStorage layers;
  for (auto [layer, inFile] : llvm::enumerate(weight.storages))
    layers[&storageFor(weight, inFile)].push_back(layer);
  return layers;
}

void ModuleBuilder::declare(const WeightSpec &weight, const Storage &storage,
                            StringRef symbol, int64_t layers,
                            DenseI64ArrayAttr fileLayers) {
  SmallVector<int64_t> shape;
  if (weight.perLayer)
    shape.push_back(layers);
  llvm::append_range(shape, weight.shape);
  WeightOp::create(
      b, symbol, RankedTensorType::get(shape, typeOf(b.getContext(), storage)),
      weight.source, weight.transposed,
      weight.firstRow ? b.getI64IntegerAttr(*weight.firstRow) : IntegerAttr(),
      weight.pairedHeadDim ? b.getI64IntegerAttr(weight.pairedHeadDim)
                           : IntegerAttr(),
      fileLayers, PackingAttr());
}

// Where layers are stored in several ways, those of each are a weight by themselves.
void ModuleBuilder::declare(const WeightSpec &weight) {
  LayersByStorage byStorage = layersOf(weight);
  if (byStorage.size() == 1)
    return declare(weight, *byStorage.front().first, weight.symbol, spec.layers, {});
  SmallVector<Attribute> parts;
  for (auto &[storage, layers] : byStorage) {
    std::string symbol = weight.symbol + "." + storage->name.str();
    declare(weight, *storage, symbol, layers.size(), b.getDenseI64ArrayAttr(layers));
    parts.push_back(FlatSymbolRefAttr::get(b.getContext(), symbol));
  }
  StackOp::create(b, weight.symbol, b.getArrayAttr(parts));
}

void ModuleBuilder::declareAll() {
  declare(spec.tokenEmbedding);
  declare(spec.positionEmbedding);
  declare(spec.attentionNorm);
  declare(spec.attentionNormBias);
  declare(spec.query);
  declare(spec.queryBias);
  declare(spec.key);
  declare(spec.keyBias);
  declare(spec.value);
  declare(spec.valueBias);
  declare(spec.output);
  declare(spec.outputBias);
  declare(spec.feedForwardNorm);
  declare(spec.feedForwardNormBias);
  declare(spec.gate);
  declare(spec.gateBias);
  declare(spec.up);
  declare(spec.upBias);
  declare(spec.down);
  declare(spec.downBias);
  declare(spec.finalNorm);
  declare(spec.finalNormBias);
  declare(spec.head);
  declare(spec.headBias);
}

Block *ModuleBuilder::addEntry(func::FuncOp function,
                               ArrayRef<StringRef> names) {
  Block *entry = function.addEntryBlock();
  nameArguments(entry, names);
  b.setInsertionPointToStart(entry);
  return entry;
}

void ModuleBuilder::nameArguments(Block *block, ArrayRef<StringRef> names) {
  for (auto [argument, name] : llvm::zip_equal(block->getArguments(), names))
    argument.setLoc(NameLoc::get(b.getStringAttr(name)));
}

Value ModuleBuilder::norm(Value x, const WeightSpec &weight,
                          const std::optional<WeightSpec> &bias, Value layer) {
  FloatAttr epsilon = b.getF64FloatAttr(spec.normEpsilon);
  switch (spec.norm) {
  case NormKind::RMSNorm:
    return RMSNormOp::create(b, x.getType(), x, symbol(weight), layer, epsilon);
  case NormKind::LayerNorm:
    return LayerNormOp::create(b, x.getType(), x, symbol(weight), symbol(bias),
                               layer, epsilon);
  }
  llvm_unreachable("all norms have been named");
}

Value ModuleBuilder::linear(Value x, const WeightSpec &weight,
                            const std::optional<WeightSpec> &bias, Value layer) {
  auto isRounded = [&](Rounding rounding) {
    return llvm::is_contained(roundings, rounding) &&
           llvm::any_of(layersOf(weight), [&](const auto &layers) {
             return layers.first->rounding == rounding;
           });
  };
  return LinearOp::create(b, rows(weight.shape[0]), x, isRounded(Rounding::Bytes),
                          isRounded(Rounding::BF16), symbol(weight), symbol(bias),
                          layer);
}

Value ModuleBuilder::rotary(Value x, Value positions) {
  if (spec.positions != PositionKind::Rotary)
    return x;
  DenseF64ArrayAttr divisors;
  if (!spec.rotary.divisors.empty())
    divisors = b.getDenseF64ArrayAttr(spec.rotary.divisors);
  return RotaryOp::create(b, x.getType(), x, positions,
                          b.getI64IntegerAttr(spec.headDim),
                          b.getI64IntegerAttr(spec.rotary.dims),
                          b.getF64FloatAttr(spec.rotary.theta), divisors);
}

// A model of one kind of layer calls it so.
std::string ModuleBuilder::layerName(int64_t window) {
  if (llvm::all_equal(spec.windows))
    return "layer";
  return window ? "sliding_layer" : "full_layer";
}

// One layer: x += attention(norm(x)); x += feed_forward(norm(x)).
void ModuleBuilder::buildLayer(int64_t window) {
  SmallVector<Type> inputs(hasGroups() ? 2 : 1, b.getIndexType());
  inputs.append({rows(spec.width), perToken(b.getI64Type()),
                 perToken(b.getI32Type()), cache});
  auto function = func::FuncOp::create(
      b, layerName(window), b.getFunctionType(inputs, {rows(spec.width), cache}));
  function.setPrivate();
  OpBuilder::InsertionGuard guard(b);
  SmallVector<StringRef> names{"layer", "x", "positions", "sequences", "cache"};
  if (hasGroups())
    names.insert(names.begin() + 1, "cached");
  Block *entry = addEntry(function, names);
  Value layer = entry->getArgument(0);
  Value cached = hasGroups() ? entry->getArgument(1) : layer; // in the cache's group
  auto rest = entry->getArguments().take_back(4);
  Value x = rest[0], positions = rest[1], sequences = rest[2], previous = rest[3];
  SmallVector<int64_t> windows = windowsOf(spec);
  int64_t group = hasGroups() ? llvm::find(windows, window) - windows.begin() : 0;

  Value h = as("h").norm(x, spec.attentionNorm, spec.attentionNormBias, layer);
  Value q = as("q").linear(h, spec.query, spec.queryBias, layer);
  q = as("q_rotated").rotary(q, positions);
  Value k = as("k").linear(h, spec.key, spec.keyBias, layer);
  k = as("k_rotated").rotary(k, positions);
  Value v = as("v").linear(h, spec.value, spec.valueBias, layer);
  as("next");
  Value next = AppendOp::create(b, cache, k, v, previous, group, cached,
                                positions, sequences);
  as("attended");
  Value attended =
      AttendOp::create(b, q.getType(), q, next, b.getI64IntegerAttr(group), cached,
                       positions, sequences, b.getF64FloatAttr(spec.attentionScale),
                       window ? b.getI64IntegerAttr(window) : IntegerAttr());
  Value o = as("o").linear(attended, spec.output, spec.outputBias, layer);
  as("x_attended");
  x = arith::AddFOp::create(b, x, o);

  h = as("h").norm(x, spec.feedForwardNorm, spec.feedForwardNormBias, layer);
  auto activation =
      ActivationAttr::get(b.getContext(), activationOf(spec.activation));
  Value hidden;
  if (spec.gated) {
    Value gate = as("gate").linear(h, *spec.gate, spec.gateBias, layer);
    Value up = as("up").linear(h, spec.up, spec.upBias, layer);
    as("open");
    Value open = ActivateOp::create(b, gate.getType(), gate, activation);
    as("hidden");
    hidden = arith::MulFOp::create(b, open, up);
  } else {
    Value up = as("up").linear(h, spec.up, spec.upBias, layer);
    as("hidden");
    hidden = ActivateOp::create(b, up.getType(), up, activation);
  }
  Value down = as("down").linear(hidden, spec.down, spec.downBias, layer);
  as("y");
  x = arith::AddFOp::create(b, x, down);
  func::ReturnOp::create(b, ValueRange{x, next});
}

Value ModuleBuilder::layerAt(Value base, int64_t offset) {
  if (base && offset == 0)
    return base;
  as(offset == 0 ? "first" : offset == spec.layers ? "layers" : "offset");
  Value constant = arith::ConstantIndexOp::create(b, offset);
  if (!base)
    return constant;
  as("layer");
  return arith::AddIOp::create(b, base, constant);
}

// Which layer of its cache's group the layer at `offset` of the period `number` is.
Value ModuleBuilder::cachedAt(Value number, int64_t offset) {
  auto before = [&](int64_t layers) {
    return llvm::count(ArrayRef(spec.windows).take_front(layers),
                       spec.windows[offset]);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  as("cached");
  if (!number)
    return constant(before(offset));
  Value first = arith::MulIOp::create(b, number, constant(before(period)));
  return before(offset) == 0
             ? first
             : arith::AddIOp::create(b, first, constant(before(offset)));
}

ModuleBuilder::State
ModuleBuilder::loop(StringRef name, Value from, Value to, int64_t step,
                    const State &state,
                    function_ref<State(Value, const State &)> body) {
  as(step == 1 ? "one" : "period");
  Value distance = arith::ConstantIndexOp::create(b, step);
  as("decoded");
  auto loop = scf::ForOp::create(b, from, to, distance, state);
  nameArguments(loop.getBody(), {name, "x", "cache"});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(
      b, body(loop.getInductionVar(), State(loop.getRegionIterArgs())));
  return State(loop.getResults());
}

// Decodes the layers from `base` + `offset` on, which have these windows: in a loop
// those of one kind that follow each other. Without a base it is 0; with one it is the
// first layer of the period `number`, if layers stand in groups of the cache.
ModuleBuilder::State ModuleBuilder::decode(Value base, Value number, int64_t offset,
                                           ArrayRef<int64_t> windows,
                                           State state) {
  while (!windows.empty()) {
    int64_t window = windows.front();
    Value first = layerAt(base, offset), firstCached;
    if (hasGroups())
      firstCached = cachedAt(number, offset);
    auto call = [&](Value layer, const State &state) {
      SmallVector<Value> arguments{layer};
      if (hasGroups()) {
        as("cached");
        Value cached = firstCached;
        if (layer != first)
          cached = arith::AddIOp::create(
              b, arith::SubIOp::create(b, layer, first), firstCached);
        arguments.push_back(cached);
      }
      arguments.append({state[0], positions, sequences, state[1]});
      as("y");
      auto op = func::CallOp::create(b, layerName(window),
                                     TypeRange{rows(spec.width), cache}, arguments);
      return State(op.getResults());
    };
    int64_t count =
        windows.take_while([&](int64_t w) { return w == window; }).size();
    state = count == 1 ? call(first, state)
                       : loop("layer", first, layerAt(base, offset + count), 1, state,
                              call);
    windows = windows.drop_front(count);
    offset += count;
  }
  return state;
}

// Decodes all layers: kinds that return periodically in a loop over the periods.
ModuleBuilder::State ModuleBuilder::decodeAll(const State &state) {
  ArrayRef<int64_t> windows = spec.windows;
  int64_t layers = windows.size();
  period = 1;
  while (windows.drop_front(period) != windows.drop_back(period))
    ++period;
  int64_t whole = layers / period * period;
  if (period == 1 || whole == period)
    return decode({}, {}, 0, windows, state);
  auto decodePeriod = [&](Value base, Value number, const State &state) {
    return decode(base, number, 0, windows.take_front(period), state);
  };
  State decoded;
  if (hasGroups())
    decoded = loop("number", layerAt({}, 0), layerAt({}, whole / period), 1, state,
                   [&](Value number, const State &state) {
                     as("period");
                     Value size = arith::ConstantIndexOp::create(b, period);
                     as("layer");
                     Value base = arith::MulIOp::create(b, number, size);
                     return decodePeriod(base, number, state);
                   });
  else
    decoded = loop("layer", layerAt({}, 0), layerAt({}, whole), period, state,
                   [&](Value base, const State &state) {
                     return decodePeriod(base, {}, state);
                   });
  return decode({}, {}, whole, windows.drop_front(whole), decoded);
}

// tokens, sequences, outputs, cache -> logits of the rows `outputs`, cache.
void ModuleBuilder::buildForward() {
  auto type = b.getFunctionType({perToken(b.getI32Type()),
                                 perToken(b.getI32Type()),
                                 perToken(b.getI64Type()), cache},
                                {rows(spec.vocab), cache});
  auto function = func::FuncOp::create(b, kForward, type);
  OpBuilder::InsertionGuard guard(b);
  Block *entry =
      addEntry(function, {"tokens", "sequences", "outputs", "cache"});
  Value tokens = entry->getArgument(ForwardArgument::Tokens),
        outputs = entry->getArgument(ForwardArgument::Outputs),
        before = entry->getArgument(ForwardArgument::Cache);

  sequences = entry->getArgument(ForwardArgument::Sequences);
  as("positions");
  positions =
      PositionsOp::create(b, perToken(b.getI64Type()), before, sequences);
  as("x");
  Value x =
      EmbedOp::create(b, rows(spec.width), tokens, symbol(spec.tokenEmbedding));
  if (spec.positions == PositionKind::Learned) {
    as("p");
    Value p = EmbedOp::create(b, rows(spec.width), positions,
                              symbol(spec.positionEmbedding));
    as("x");
    x = arith::AddFOp::create(b, x, p);
  }

  State decoded = decodeAll({x, before});
  as("after");
  Value after = AdvanceOp::create(b, cache, decoded[1], sequences);

  as("chosen");
  Value chosen = SelectOp::create(b, rows(spec.width), decoded[0], outputs);
  Value h = as("h").norm(chosen, spec.finalNorm, spec.finalNormBias, Value());
  Value logits = as("logits").linear(h, spec.head ? *spec.head : spec.tokenEmbedding,
                        spec.headBias, Value());
  func::ReturnOp::create(b, ValueRange{logits, after});
}

OwningOpRef<ModuleOp> ModuleBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc(), spec.name);
  (*module)->setAttr(kWeightsAttr, b.getStringAttr(spec.weights));
  b.setInsertionPointToStart(module->getBody());
  declareAll();
  for (int64_t window : windowsOf(spec))
    buildLayer(window);
  buildForward();
  return module;
}

llvm::Error invalidOption(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
kvc::buildModule(MLIRContext *context, const ModelSpec &spec,
                 const BuildOptions &options) {
  context->loadDialect<KVCDialect, arith::ArithDialect, func::FuncDialect,
                       scf::SCFDialect>();
  const Storage &widest = *Storage::named(spec.arithmetic);
  auto chosen = [&](StringRef option, StringRef name,
                    bool mayHaveBlocks) -> llvm::Expected<const Storage *> {
    const Storage *storage = Storage::named(name);
    auto isChoice = [&](const Storage *one) {
      return one && (!one->quants || (mayHaveBlocks && one->encodes()));
    };
    if (!isChoice(storage)) {
      std::vector<StringRef> names;
      for (const Storage *other : Storage::all())
        if (isChoice(other))
          names.push_back(other->name);
      return invalidOption("--" + option + ": expected one of " +
                           llvm::join(names, ", ") + ", but got " + name);
    }
    if (!storage->quants && storage->bytes > widest.bytes)
      return invalidOption("--" + option + ": expected at most the width of the "
                           "arithmetic (" + spec.arithmetic + "), but got " + name);
    return storage;
  };
  const Storage *matrices = nullptr, *cached = &widest;
  if (!options.weightType.empty()) {
    auto storage = chosen("weights", options.weightType, true);
    if (!storage)
      return storage.takeError();
    matrices = *storage;
  }
  if (!options.cacheType.empty()) {
    auto storage = chosen("cache", options.cacheType, false);
    if (!storage)
      return storage.takeError();
    cached = *storage;
  }
  bool isQ8 = options.activations == "q8", isBF16 = options.activations == "bf16";
  if (!options.activations.empty() && options.activations != "f32" && !isQ8 && !isBF16)
    return invalidOption("--activations: expected f32, q8 or bf16, but got " +
                         options.activations);
  if ((isQ8 || isBF16) && &widest != &f32Storage)
    return invalidOption("--activations: expected f32, which rounds nothing, for "
                         "arithmetic in " + spec.arithmetic + ", but got " +
                         options.activations);
  SmallVector<Rounding, 2> roundings;
  if (options.activations != "f32" && &widest == &f32Storage)
    roundings.push_back(Rounding::Bytes);
  if (isBF16)
    roundings.push_back(Rounding::BF16);
  if (options.numerics != "fma" && options.numerics != "tiles")
    return invalidOption("--numerics: expected fma or tiles, but got " +
                         options.numerics);
  bool isTiles = options.numerics == "tiles";
  if (isTiles && &widest != &f32Storage)
    return invalidOption("--numerics: expected fma, the class of arithmetic in " +
                         spec.arithmetic + ", but got tiles");
  Type arithmetic = typeOf(context, widest);
  int64_t capacity = options.capacity ? options.capacity : spec.context;
  if (capacity < 1 || capacity > spec.context)
    return invalidOption("--capacity: expected 1 to " + llvm::Twine(spec.context) +
                         " (the model's context), but got " +
                         llvm::Twine(capacity));
  // The dialect says what layouts and caches there are.
  std::string problem;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    problem = diagnostic.str();
  });
  auto complain = [&] { return emitError(UnknownLoc::get(context)); };
  Attribute layout = ContiguousAttr::get(context);
  if (options.pagePositions)
    layout = PagedAttr::getChecked(complain, context, options.pagePositions);
  if (options.ringSlice && llvm::all_of(spec.windows, [](int64_t w) { return !w; }))
    return invalidOption("--cache: expected a model whose layers have a window for a "
                         "ring, but got none");
  if (options.ringSlice && options.pagePositions && !llvm::is_contained(spec.windows, 0))
    return invalidOption("--cache: expected layers without a window for pages beside a "
                         "ring, but got none");
  auto groupFor = [&](int64_t layers, Attribute layout) {
    return Group{layers,       spec.kvHeads, capacity, spec.headDim,
                 spec.headDim, typeOf(context, *cached), layout};
  };
  SmallVector<Group> groups;
  if (!options.ringSlice)
    groups.push_back(groupFor(spec.layers, layout));
  else
    for (int64_t window : windowsOf(spec)) {
      Attribute ring = layout;
      if (layout && window)
        ring = RingAttr::getChecked(complain, context, window, options.ringSlice);
      groups.push_back(groupFor(llvm::count(spec.windows, window), ring));
    }
  CacheType cache;
  if (llvm::all_of(groups, [](const Group &group) { return group.layout; }))
    cache = CacheType::getChecked(complain, context, ArrayRef(groups));
  if (!cache)
    return invalidOption("--cache: " + problem);
  OwningOpRef<ModuleOp> module =
      ModuleBuilder(context, spec, arithmetic, matrices, roundings, cache).build();
  if (isTiles)
    (*module)->setAttr(kNumericsAttr, StringAttr::get(context, "tiles"));
  auto has = [&](Rounding rounding) {
    return llvm::any_of(module->getOps<WeightOp>(), [&](WeightOp weight) {
      return weight.getLayerShape().size() == 2 &&
             weight.getStorage().rounding == rounding;
    });
  };
  bool hasBlocks = has(Rounding::Bytes);
  if (matrices && matrices->quants && !hasBlocks)
    return invalidOption("--weights: expected a model with a matrix whose rows are "
                         "whole blocks of " + options.weightType +
                         " and not transposed, but got one without");
  if (isQ8 && !hasBlocks)
    return invalidOption("--activations: expected a model with a matrix in blocks for "
                         "q8, but got one without");
  if (isBF16 && !has(Rounding::BF16))
    return invalidOption("--activations: expected a model with a matrix in bf16 for "
                         "bf16, but got one without");
  return module;
}
