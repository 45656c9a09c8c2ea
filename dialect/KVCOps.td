//===- KVCOps.td - operations of the kvc dialect --------------------------===//
//
// Shapes: N is the number of tokens of a step, one row each; a weight that is
// stacked over layers is indexed by `layer`.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_OPS
#define KVC_OPS

include "dialect/KVCTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class KVC_Op<string mnemonic, list<Trait> traits = []>
    : Op<KVC_Dialect, mnemonic, traits>;

def KVC_Float : AnyTypeOf<[F64, F32]>;
def KVC_HasWidth : CPred<
    "::llvm::cast<::mlir::ShapedType>($_self).getDimSize(1) > 0">;
// Activations: [N, width], a row a token.
def KVC_Rows : RankedTensorOf<[KVC_Float],
    [And<[HasAnyRankOfPred<[2]>, KVC_HasWidth]>],
    "rows of a known width above 0">;
// One number a token: [N].
class KVC_PerToken<list<Type> types, string what>
    : RankedTensorOf<types, [HasAnyRankOfPred<[1]>], what>;
def KVC_Ids : KVC_PerToken<[I32, I64], "ids, one a token">;
def KVC_Sequences : KVC_PerToken<[I32], "sequences (i32), one a token">;
def KVC_Positions : KVC_PerToken<[I64], "positions (i64), one a token">;

// A number above 0 that stays one as an f32, since rows may be of either type.
def KVC_Positive : AttrConstraint<
    CPred<"::kvc::isPositive(::llvm::cast<::mlir::FloatAttr>($_self).getValueAsDouble())">,
    "whose value is above 0 and finite, also in f32">;
def KVC_PositiveAttr : ConfinedAttr<F64Attr, [KVC_Positive]>;
def KVC_AllPositive : AttrConstraint<
    CPred<"::llvm::all_of(::llvm::cast<::mlir::DenseF64ArrayAttr>($_self).asArrayRef(), ::kvc::isPositive)">,
    "whose values are above 0 and finite, also in f32">;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

def KVC_WeightOp : KVC_Op<"weight", [Symbol, KVC_NamedWeight]> {
  let summary = "names a tensor of the model's file";
  let description = [{
    Declares a weight. `source` is the tensor's name in the file that the
    module's attribute `kvc.weights` names; `{}` in it stands for the number of
    a layer, and the weight is then stacked over layers, its first axis. A
    matrix is `[outputs, inputs]`.

    `transposed`: the file has `[inputs, outputs]`. `first_row`: our rows start
    there among the outputs of the file's tensor (fused projections).
    `paired_heads d`: the rows of each head of width d stand in pair order
    (2i, 2i+1) in the file and are read in half order (i, i + d/2). `layers`: the
    numbers of those of the file's layers that are stacked; all where it is absent.

    Created by BuildModule; `kvc-assign-packing` adds the packing. No effect.
    - C1: the shape is static, of extents above 0, of rank 1 or 2 after the axis
      of layers if any.
    - C2: the element type is a storage: f64, f32, f16, bf16, or one of blocks
      (`!kvc.q8_0`, `!kvc.q4_k`, ...).
    - C3: `transposed` needs a matrix.
    - C4: `paired_heads` is above 0 and even, and divides the rows.
    - C5: the source has `{}` once at most.
    - C6: `first_row` is not negative.
    - C7: the weight has at most 2^56 bytes.
    - C8: the symbol is UTF-8, a name of the packed file, and doesn't begin with
      `__`, as that file's own entries do.
    - C9: a weight in blocks is a matrix that isn't transposed, and its rows are
      whole blocks.
    - C10: `layers` has a number for each layer, from 0 up, each above the one before.

    ```mlir
    kvc.weight @blk.attn_q : tensor<30x576x576xf32> from "blk.{}.attn_q.weight" paired_heads 64
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
      StrAttr:$source, UnitAttr:$transposed,
      OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$first_row,
      OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$paired_heads,
      OptionalAttr<DenseI64ArrayAttr>:$file_layers,
      OptionalAttr<KVC_PackingAttr>:$packing);
  let assemblyFormat = [{
    $sym_name `:` $type `from` $source (`transposed` $transposed^)?
    (`first_row` $first_row^)? (`paired_heads` $paired_heads^)? (`layers` $file_layers^)?
    (`packed` $packing^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getWeightType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    // Whether the first axis is the layer.
    bool isStacked() { return getSource().contains("{}"); }
    const ::kvc::Storage &getStorage() {
      return *::kvc::storageOf(getWeightType().getElementType());
    }
    int64_t getLayers() {
      return isStacked() ? getWeightType().getDimSize(0) : 1;
    }
    // The shape of one layer's weight: [rows, columns] or [rows].
    ::llvm::ArrayRef<int64_t> getLayerShape() {
      return getWeightType().getShape().drop_front(isStacked() ? 1 : 0);
    }
    ::std::vector<::kvc::WeightOp> getParts() { return {*this}; }
    // The name in the file of what stands in the stack at `layer`.
    ::std::string getTensorName(int64_t layer);
  }];
}

def KVC_StackOp : KVC_Op<"stack", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<KVC_NamedWeight>]> {
  let summary = "makes one weight of layers that are stored in several ways";
  let description = [{
    Layer l of the weight is the one that a `kvc.weight` names l among its `layers`.
    What reads the weight takes each layer as it is stored, so that a file's layers
    need not be alike in it.

    Created by BuildModule, a part for each storage. No effect.
    - C1: the symbols are of weights that say their layers, matrices of one shape.
    - C2: of the layers, from 0 to as many as there are, each stands in one of them.

    ```mlir
    kvc.weight @blk.ffn_down.q4_k : tensor<2x576x1536x!kvc.q4_k> from "blk.{}.ffn_down.weight" layers [0, 2]
    kvc.weight @blk.ffn_down.q6_k : tensor<1x576x1536x!kvc.q6_k> from "blk.{}.ffn_down.weight" layers [1]
    kvc.stack @blk.ffn_down of [@blk.ffn_down.q4_k, @blk.ffn_down.q6_k]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      TypedArrayAttrBase<FlatSymbolRefAttr, "symbols of weights">:$weights);
  let assemblyFormat = "$sym_name `of` $weights attr-dict";
  let extraClassDeclaration = [{
    // Of each layer the number of its part, and where it stands in that:
    // tensor<layers x 2 x i64>.
    ::mlir::DenseElementsAttr getPlaces();
  }];
}

// An op that reads weights by symbol.
class KVC_WeightUserOp<string mnemonic, list<Trait> traits = []>
    : KVC_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        KVC_WeightUser], traits)> {
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::kvc::WeightUse> getWeights();
  }];
}

def KVC_EmbedOp : KVC_WeightUserOp<"embed", [KVC_Positioned]> {
  let summary = "looks up rows of a table";
  let description = [{
    `result[n] = table[ids[n]]`, converted to the result's type. Ids are token
    ids, or positions for a learned position table.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`. An id outside the table is excluded by the plan of
    the forward call.
    - C1: the table is a matrix [entries, width] that is not stacked.
    - C2: the result's width is the table's.
    - C3: ids and result have one number of rows.

    ```mlir
    %x = kvc.embed %tokens in @token_embd : tensor<?xi32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KVC_Ids:$ids, FlatSymbolRefAttr:$table);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = "$ids `in` $table attr-dict `:` type($ids) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::kvc::WeightUse> getWeights();
    ::mlir::Value getLayer() { return {}; }
    // The ids, if they are positions (i64): tokens are i32.
    ::mlir::Value getPositions();
    ::mlir::Value getSequences() { return {}; }
  }];
}

class KVC_Norm<string mnemonic> : KVC_WeightUserOp<mnemonic,
    [AllTypesMatch<["input", "result"]>]>;

def KVC_RMSNormOp : KVC_Norm<"rms_norm"> {
  let summary = "root-mean-square normalisation of each row";
  let description = [{
    `result[n, i] = input[n, i] / sqrt(mean_j input[n, j]^2 + epsilon) * weight[i]`

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`.
    - C1: the weight is a vector of the row's width.
    - C2: a stacked weight is indexed by a layer, another is not.
    - C3: epsilon is above 0 and finite, also in f32.

    ```mlir
    %h = kvc.rms_norm %x by @blk.attn_norm layer %layer epsilon 1.0e-05 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, FlatSymbolRefAttr:$weight,
                       Optional<Index>:$layer, KVC_PositiveAttr:$epsilon);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input `by` $weight (`layer` $layer^)? `epsilon` $epsilon attr-dict `:` type($input)
  }];
}

def KVC_LayerNormOp : KVC_Norm<"layer_norm"> {
  let summary = "normalisation of each row to mean 0 and variance 1";
  let description = [{
    `result[n, i] = (input[n, i] - mean) / sqrt(variance + epsilon) * weight[i] + bias[i]`
    with the mean and the (biased) variance of row n.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`.
    - C1: weight and bias are vectors of the row's width.
    - C2: stacked weights are indexed by a layer, others are not.
    - C3: epsilon is above 0 and finite, also in f32.

    ```mlir
    %h = kvc.layer_norm %x by @norm bias @norm.bias layer %layer epsilon 1.0e-05 : tensor<?x24xf64>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Index>:$layer, KVC_PositiveAttr:$epsilon);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input `by` $weight (`bias` $bias^)? (`layer` $layer^)? `epsilon` $epsilon
    attr-dict `:` type($input)
  }];
}

def KVC_LinearOp : KVC_WeightUserOp<"linear", [AttrSizedOperandSegments, KVC_RowTasks]> {
  let summary = "a linear layer";
  let description = [{
    `result[n, o] = activation(sum_i input[n, i] * weight[o, i] + bias[o]) + residual[n, o]`

    `rounded`: 32 consecutive inputs of a row at a time are rounded first, to whole
    numbers from -127 to 127 and a scale that they share, in f32:
    `scale = max_i |x[i]| / 127`, `x[i] = scale * roundeven(x[i] / scale)`; 0 where
    the scale is 0, and no number where an input isn't finite. The products of 32
    such inputs with a block of the weight are summed as an exact integer, which goes
    into the sum below as one product with `scale * the block's scale`, rounded once.
    A block's minimum times the scaled sum of its inputs comes after these, in the
    same order.

    `narrowed`: inputs are rounded to bf16, to nearest and ties to even, where they are
    multiplied with a weight that is stored in it.

    A layer whose weight is stored otherwise than an attribute speaks of (`kvc.stack`)
    takes its inputs as they are.

    The sum is taken in blocks of 256 elements of the row, the last one shorter: the
    products of a block are summed in the order of i with fused multiply-adds, from
    0, and the sums of the blocks are added in their order to the bias, or to 0. It
    is one order, whatever the number of rows and the machine; the reference
    lowering, which is compared within a tolerance, sums the whole row in the order
    of i.

    Created by BuildModule without activation and residual, which
    `kvc-fuse` adds; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`.
    - C1: the weight is a matrix [result's width, input's width].
    - C2: the bias is a vector of the result's width.
    - C3: stacked weights are indexed by a layer, others are not.
    - C4: the residual has the result's type.
    - C5: input and result have the same number of rows and element type.
    - C6: a rounded input is f32, and its weight, or a layer of it, is stored in blocks;
      a narrowed one is f32, and its weight, or a layer of it, is stored in bf16.

    ```mlir
    %q = kvc.linear %h by @attn_q bias @attn_q.bias layer %layer : tensor<?x576xf32> -> tensor<?x576xf32>
    %y = kvc.linear %a by @attn_o layer %layer residual(%x : tensor<?x576xf32>) : tensor<?x576xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, UnitAttr:$rounded, UnitAttr:$narrowed,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Index>:$layer,
                       OptionalAttr<KVC_ActivationAttr>:$activation,
                       Optional<KVC_Rows>:$residual);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input (`rounded` $rounded^)? (`narrowed` $narrowed^)? `by` $weight (`bias` $bias^)?
    (`layer` $layer^)? (`activation` `` $activation^)? (`residual` `(` $residual^ `:` type($residual) `)`)? attr-dict `:`
    type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input,
      "bool":$rounded, "bool":$narrowed, "::mlir::FlatSymbolRefAttr":$weight,
      "::mlir::FlatSymbolRefAttr":$bias, "::mlir::Value":$layer), [{
    auto unit = [&](bool is) {
      return is ? $_builder.getUnitAttr() : ::mlir::UnitAttr();
    };
    build($_builder, $_state, result, input, unit(rounded), unit(narrowed), weight,
          bias, layer, ActivationAttr(), ::mlir::Value());
  }]>];
  let hasVerifier = 1;
}

def KVC_GatedLinearOp : KVC_WeightUserOp<"gated_linear", [KVC_RowTasks]> {
  let summary = "two linear layers, one gating the other";
  let description = [{
    `result = activation(input gate^T + gate_bias) * (input up^T + up_bias)`,
    each sum as in `kvc.linear`, of an input that is `rounded` or `narrowed` as there or
    not.

    Created by `kvc-fuse` from two `kvc.linear`, a `kvc.activate` and a product;
    lowered by `kvc-lower-to-linalg` and `kvc-lower-to-kernels`.
    - C1: both weights are matrices [result's width, input's width].
    - C2: the biases are vectors of the result's width.
    - C3: stacked weights are indexed by a layer, others are not.
    - C4: input and result have the same number of rows and element type.
    - C5: a rounded input is f32, and the weights are stored in blocks, a narrowed one
      is f32, and they are stored in bf16, as in `kvc.linear`.

    ```mlir
    %g = kvc.gated_linear %h by @gate, @up layer %layer activation silu : tensor<?x576xf32> -> tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, UnitAttr:$rounded, UnitAttr:$narrowed,
                       FlatSymbolRefAttr:$gate,
                       FlatSymbolRefAttr:$up,
                       OptionalAttr<FlatSymbolRefAttr>:$gate_bias,
                       OptionalAttr<FlatSymbolRefAttr>:$up_bias,
                       Optional<Index>:$layer, KVC_ActivationAttr:$activation);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input (`rounded` $rounded^)? (`narrowed` $narrowed^)? `by` $gate `,` $up
    (`gate_bias` $gate_bias^)? (`up_bias` $up_bias^)? (`layer` $layer^)? `activation` `` $activation attr-dict `:`
    type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVC_TogetherOp : KVC_Op<"together",
    [RecursiveMemoryEffects, RecursivelySpeculatable, NoRegionArguments, SingleBlock,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "ops that are dispatched as one parallel region";
  let description = [{
    Gives the results of the ops in its body. None of them needs another, so that
    their tasks may run in any order: one dispatch to the threads instead of one for
    each op.

    Created by `kvc-fuse` from ops of the interface `RowTasks`; dissolved by
    `kvc-inline` and `kvc-lower-to-linalg`, to which it means its body; lowered by
    `kvc-lower-to-kernels`.
    - C1: the body's ops are of the interface `RowTasks`, before a `kvc.yield`.
    - C2: they have one input.
    - C3: none uses the result of another.
    - C4: the yield gives the result of each, in their order, and no more; so many
      results, of these types, has the op.

    ```mlir
    %q, %k = kvc.together {
      %0 = kvc.linear %h by @attn_q bias @attn_q.bias layer %layer : tensor<?x576xf32> -> tensor<?x576xf32>
      %1 = kvc.linear %h by @attn_o layer %layer : tensor<?x576xf32> -> tensor<?x576xf32>
      kvc.yield %0, %1 : tensor<?x576xf32>, tensor<?x576xf32>
    } : tensor<?x576xf32>, tensor<?x576xf32>
    ```
  }];
  let results = (outs Variadic<KVC_Rows>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict `:` type($results)";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // The ops of the body, and those that give its results.
    auto getOps() { return getBody().front().without_terminator(); }
    // Puts the body's ops in the place of the op, which ceases to be.
    void dissolve();
  }];
}

def KVC_YieldOp : KVC_Op<"yield", [Pure, Terminator, HasParent<"TogetherOp">]> {
  let summary = "what the ops of a kvc.together give";
  let description = [{
    Ends the body of a `kvc.together`. No constraints beyond those of its parent.

    ```mlir
    %q, %k = kvc.together {
      %0 = kvc.linear %h by @attn_q layer %layer : tensor<?x576xf32> -> tensor<?x576xf32>
      %1 = kvc.linear %h by @attn_o layer %layer : tensor<?x576xf32> -> tensor<?x576xf32>
      kvc.yield %0, %1 : tensor<?x576xf32>, tensor<?x576xf32>
    } : tensor<?x576xf32>, tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Variadic<KVC_Rows>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

def KVC_ActivateOp : KVC_Op<"activate", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "an activation function, element by element";
  let description = [{
    `gelu`: x (1 + erf(x / sqrt 2)) / 2; `gelu_tanh`:
    x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2; `silu`: x / (1 + exp(-x));
    `relu`: max(x, 0).

    Created by BuildModule; fused by `kvc-fuse`; lowered by
    `kvc-lower-to-linalg` and `kvc-lower-to-kernels`. No constraints beyond the
    types.

    ```mlir
    %a = kvc.activate %h gelu : tensor<?x96xf64>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, KVC_ActivationAttr:$activation);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = "$input `` $activation attr-dict `:` type($input)";
}

def KVC_SelectOp : KVC_Op<"select", [Pure]> {
  let summary = "chooses rows";
  let description = [{
    `result[m] = input[rows[m]]`: the rows whose logits are wanted.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`.
    - C1: input and result have the same width and element type.
    - C2: the rows to choose and the result have one number of rows.

    ```mlir
    %last = kvc.select %x rows %outputs : tensor<?x576xf32>, tensor<?xi64> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, KVC_Positions:$rows);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input `rows` $rows attr-dict `:` type($input) `,` type($rows) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVC_RotaryOp : KVC_Op<"rotary", [Pure, KVC_Positioned, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding of each head";
  let description = [{
    Rotates the first `dims` elements of each head of width `head_dim`. With
    `angle(i) = position * theta^(-2i / dims) / divisor(i)`, computed in f64,
    pair i is (x[i], x[i + dims/2]) (half order):
    `y[i] = x[i] cos - x[i + dims/2] sin`, `y[i + dims/2] = x[i + dims/2] cos + x[i] sin`.
    `divisors` holds one number for all pairs (linear scaling) or one a pair
    (llama3 scaling); absent means 1.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`.
    - C1: `head_dim` is above 0, and the row's width a multiple of it.
    - C2: `dims` is above 0, even and at most `head_dim`.
    - C3: there is one divisor, or dims/2.
    - C4: theta and the divisors are above 0 and finite, also in f32.
    - C5: input and positions have one number of rows.

    ```mlir
    %r = kvc.rotary %q at %positions head_dim 64 dims 64 theta 1.0e+05 : tensor<?x576xf32>, tensor<?xi64>
    ```
  }];
  let arguments = (ins KVC_Rows:$input, KVC_Positions:$positions,
                       ConfinedAttr<I64Attr, [IntPositive]>:$head_dim,
                       ConfinedAttr<I64Attr, [IntPositive]>:$dims,
                       KVC_PositiveAttr:$theta,
                       OptionalAttr<ConfinedAttr<DenseF64ArrayAttr, [KVC_AllPositive]>>:$divisors);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $input `at` $positions `head_dim` $head_dim `dims` $dims `theta` $theta
    `` custom<Divisors>($divisors) attr-dict `:` type($input) `,` type($positions)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // theta^(-2i/dims) / divisor(i) for i in [0, dims/2).
    ::llvm::SmallVector<double> getFrequencies();
    ::mlir::Value getSequences() { return {}; }
  }];
}

//===----------------------------------------------------------------------===//
// Cache
//===----------------------------------------------------------------------===//

def KVC_PositionsOp : KVC_Op<"positions", [Pure]> {
  let summary = "the positions of a step's tokens, from the cache's lengths";
  let description = [{
    `positions[n] = length(sequences[n]) + number of m < n with sequences[m] = sequences[n]`.
    The tokens of one sequence stand together. The only source of positions:
    `kvc-verify-cache-contract` rejects any other.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`. Reads the cache's lengths.
    - C1: sequences and positions have one number of rows.

    ```mlir
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    ```
  }];
  let arguments = (ins KVC_CacheType:$cache, KVC_Sequences:$sequences);
  let results = (outs KVC_Positions:$positions);
  let assemblyFormat = [{
    $cache `of` $sequences attr-dict `:` type($cache) `,` type($sequences) `->` type($positions)
  }];
  let hasVerifier = 1;
}

// Of the cache's groups of layers, by its place in the type.
def KVC_GroupNumber
    : ConfinedAttr<DefaultValuedAttr<I64Attr, "0">, [IntNonNegative]>;
// The group of an op that names one.
defvar KVC_OfGroup = [{
    const ::kvc::Group &getCacheGroup() {
      return getCache().getType().getGroups()[getGroup()];
    }
  }];

// Ops that take a cache and give the next one.
class KVC_CacheUpdateOp<string mnemonic, list<Trait> traits = []>
    : KVC_Op<mnemonic, !listconcat([Pure, KVC_CacheUpdate,
        AllTypesMatch<["cache", "result"]>], traits)>;

def KVC_AppendOp : KVC_CacheUpdateOp<"append", [KVC_Positioned]> {
  let summary = "writes the keys and values of a step into one layer";
  let description = [{
    Stores keys[n] and values[n] as the key and value of `layer` of the cache's
    `group` (0 where none is named) of `sequences[n]` at `positions[n]`, converted to the cache's element type
    (f64 through f32 where that is narrower), each NaN as one and the same. Lengths change by `kvc.advance`
    only, after every layer has appended.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`, in place.
    - C1: the keys' width is KV heads times key width of the group.
    - C2: the values' width is KV heads times value width of the group.
    - C3: keys, values, positions and sequences have one number of rows.
    - C4: the cache has the group.

    ```mlir
    %next = kvc.append %k, %v to %cache layer %layer at %positions of %sequences : tensor<?x24xf64>, tensor<?x24xf64>, !cache, tensor<?xi64>, tensor<?xi32>
    ```
  }];
  let arguments = (ins KVC_Rows:$keys, KVC_Rows:$values, KVC_CacheType:$cache,
                       KVC_GroupNumber:$group, Index:$layer, KVC_Positions:$positions,
                       KVC_Sequences:$sequences);
  let results = (outs KVC_CacheType:$result);
  let assemblyFormat = [{
    $keys `,` $values `to` $cache (`group` $group^)? `layer` $layer `at` $positions `of` $sequences
    attr-dict `:` type($keys) `,` type($values) `,` type($cache) `,`
    type($positions) `,` type($sequences)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = KVC_OfGroup;
}

def KVC_AttendOp : KVC_Op<"attend", [Pure, KVC_Positioned, AllTypesMatch<["queries", "result"]>]> {
  let summary = "causal attention of a step's queries over the cache";
  let description = [{
    For each token n and query head h, with g the KV head of h:
    `result[n, h] = sum_p softmax_p(scale * queries[n, h] . key[p]) * value[p]`
    over the positions p <= positions[n] of `sequences[n]` in KV head g of `layer` of
    the cache's `group` (0 where none is named). A query sees a key iff its position is not later than the query's; with a
    `window` w the last w of these alone, positions[n] - w < p <= positions[n].
    One that sees none, at a position below 0, gives zeros.

    Keys are walked in tiles of 64 positions that are aligned to absolute
    position, so that the result doesn't depend on how the prompt was cut.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`. Reads the cache.
    - C1: the queries' width is a multiple of KV heads times key width of the group.
    - C2: key and value widths of the group are equal.
    - C3: queries, positions and sequences have one number of rows.
    - C4: the scale is above 0 and finite, also in f32.
    - C5: a window is above 0.
    - C6: the cache has the group.

    ```mlir
    %a = kvc.attend %q to %cache layer %layer at %positions of %sequences scale 0.125 window 512 : tensor<?x576xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    ```
  }];
  let arguments = (ins KVC_Rows:$queries, KVC_CacheType:$cache,
                       KVC_GroupNumber:$group, Index:$layer,
                       KVC_Positions:$positions, KVC_Sequences:$sequences,
                       KVC_PositiveAttr:$scale,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$window);
  let results = (outs KVC_Rows:$result);
  let assemblyFormat = [{
    $queries `to` $cache (`group` $group^)? `layer` $layer `at` $positions `of` $sequences
    `scale` $scale (`window` $window^)? attr-dict `:` type($queries) `,` type($cache) `,`
    type($positions) `,` type($sequences)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = KVC_OfGroup;
}

def KVC_AdvanceOp : KVC_CacheUpdateOp<"advance"> {
  let summary = "makes a step's positions part of the sequences";
  let description = [{
    `length(s) += number of n with sequences[n] = s`. The last op of a step.

    Created by BuildModule; lowered by `kvc-lower-to-linalg` and
    `kvc-lower-to-kernels`. A generated library leaves it to the runtime, which
    does it after a whole call. No constraints beyond the types.

    ```mlir
    %next = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
    ```
  }];
  let arguments = (ins KVC_CacheType:$cache, KVC_Sequences:$sequences);
  let results = (outs KVC_CacheType:$result);
  let assemblyFormat = "$cache `by` $sequences attr-dict `:` type($cache) `,` type($sequences)";
}

def KVC_TruncateOp : KVC_CacheUpdateOp<"truncate"> {
  let summary = "forgets the positions of a sequence from a length on";
  let description = [{
    `length(sequence) = min(length(sequence), length)`. What stands behind the
    length is never read.

    Created by hand, and lowered by `kvc-lower-to-linalg` alone: a library has no
    entry for it, since its runtime does the same to its page tables. Truncating
    twice is truncating once to the smaller length. No constraints beyond the types.

    ```mlir
    %shorter = kvc.truncate %cache sequence %s to %length : !cache
    ```
  }];
  let arguments = (ins KVC_CacheType:$cache, Index:$sequence, Index:$length);
  let results = (outs KVC_CacheType:$result);
  let assemblyFormat = "$cache `sequence` $sequence `to` $length attr-dict `:` type($cache)";
  let hasCanonicalizeMethod = 1;
}

def KVC_ForkOp : KVC_CacheUpdateOp<"fork"> {
  let summary = "makes one sequence equal to another";
  let description = [{
    Sequence `to` gets the length and the positions of sequence `from`; the two
    are independent afterwards.

    Created by hand, and lowered by `kvc-lower-to-linalg` alone, as
    `kvc.truncate`. A fork onto itself folds away. No constraints beyond the types.

    ```mlir
    %forked = kvc.fork %cache from %a to %b : !cache
    ```
  }];
  let arguments = (ins KVC_CacheType:$cache, Index:$from, Index:$to);
  let results = (outs KVC_CacheType:$result);
  let assemblyFormat = "$cache `from` $from `to` $to attr-dict `:` type($cache)";
  let hasFolder = 1;
}

def KVC_ReorderOp : KVC_CacheUpdateOp<"reorder"> {
  let summary = "replaces every sequence by a chosen one";
  let description = [{
    `sequence(i)` becomes what `sequence(order[i])` was, for all i: beams that
    survive, numbered anew; duplicates and dropped beams are allowed.

    Created by hand, and lowered by `kvc-lower-to-linalg` alone, as
    `kvc.truncate`. A reorder by a constant that keeps every sequence folds away.
    - C1: a constant order has no negative entry.

    ```mlir
    %beams = kvc.reorder %cache by %order : !cache, tensor<4xi32>
    ```
  }];
  let arguments = (ins KVC_CacheType:$cache, KVC_Sequences:$order);
  let results = (outs KVC_CacheType:$result);
  let assemblyFormat = "$cache `by` $order attr-dict `:` type($cache) `,` type($order)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // KVC_OPS
