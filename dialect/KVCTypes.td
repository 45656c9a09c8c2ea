//===- KVCTypes.td - cache type, layouts and other attributes -------------===//
#ifndef KVC_TYPES
#define KVC_TYPES

include "dialect/KVCDialect.td"
include "dialect/KVCInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def KVC_CacheType : TypeDef<KVC_Dialect, "Cache"> {
  let mnemonic = "cache";
  let summary = "the keys and values of every layer for a set of sequences";
  let description = [{
    The state of a decoder: for each sequence a length, and for each layer and
    KV head the keys and values of its first `length` positions, or of the last of
    these that the layout keeps.

    A cache is one group of layers or several, each with its own geometry, element
    type and layout; layers are numbered within their group, and a group by its place
    in the list. `capacity` is the number of positions that one sequence can hold at
    most, the same in all groups; it is no length. The element type is that of the
    cached numbers: f64, f32, f16 or bf16. The layout implements
    `LayoutAttrInterface`.

    ```mlir
    !kvc.cache<layers 30, kv_heads 3, capacity 2048, key 64, value 64, f32, #kvc.contiguous>
    ```
    ```mlir
    !kvc.cache<layers 5, kv_heads 1, capacity 2048, key 64, value 64, f16, #kvc.ring<512, 128>,
               layers 1, kv_heads 1, capacity 2048, key 64, value 64, f16, #kvc.paged<16>>
    ```
    Of each group:
    - C1: layers, KV heads, capacity and widths are positive.
    - C2: the element type is f64, f32, f16 or bf16.
    - C3: the layout implements the layout interface.
    - C4: the keys and values of one sequence take at most 2^56 bytes.
    - C5: a page takes at most 2^56 bytes.

    Of all of them:
    - C6: there is one at least, and they have one capacity.
  }];
  let parameters = (ins ArrayRefParameter<"::kvc::Group">:$groups);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getCapacity() const;
    // Of all groups.
    int64_t getLayers() const;
    int64_t getBytesPerPosition() const;
    int64_t getPagesPerSequence() const;
    // Where the pages of a group begin among those of a sequence.
    int64_t getFirstPage(int64_t group) const;
  }];
}

def KVC_ContiguousAttr : AttrDef<KVC_Dialect, "Contiguous",
    [DeclareAttrInterfaceMethods<KVC_LayoutAttrInterface>]> {
  let mnemonic = "contiguous";
  let summary = "a sequence is one page that holds its whole capacity";
  let description = [{
    Keys `[layers, kv_heads, capacity/16, key, 16]`, then values
    `[layers, kv_heads, capacity, value]`, with the capacity rounded up to a
    multiple of 16; what the rounding adds is padding.
  }];
}

def KVC_PagedAttr : AttrDef<KVC_Dialect, "Paged",
    [DeclareAttrInterfaceMethods<KVC_LayoutAttrInterface>]> {
  let mnemonic = "paged";
  let summary = "a sequence is a list of pages of a fixed number of positions";
  let description = [{
    `#kvc.paged<16>`: keys `[layers, kv_heads, positions/16, key, 16]`, then
    values `[layers, kv_heads, positions, value]`, for each page of `positions`
    positions. A sequence holds as many pages as its length needs.
    - C1: the number of positions is a positive multiple of 16.
  }];
  let parameters = (ins "int64_t":$positions);
  let assemblyFormat = "`<` $positions `>`";
  let genVerifyDecl = 1;
}

def KVC_RingAttr : AttrDef<KVC_Dialect, "Ring",
    [DeclareAttrInterfaceMethods<KVC_LayoutAttrInterface,
        ["getPagesPerSequence", "getWindow"]>]> {
  let mnemonic = "ring";
  let summary = "a sequence is pages of its last positions, written round and round";
  let description = [{
    `#kvc.ring<512, 128>` keeps `window` positions for each token, its own among
    them, in slices of at least `slice` tokens: pages of 16 positions, as those of
    `#kvc.paged<16>`, which hold `window + slice - 1` positions and what rounding
    adds, and no more than the capacity needs. Page 0 follows the last one.

    Attention with a window as large or smaller finds every position that it sees,
    and has the bits of any other layout.
    - C1: window and slice are above 0, and their sum at most 2^56.
  }];
  let parameters = (ins "int64_t":$window, "int64_t":$slice);
  let assemblyFormat = "`<` $window `,` $slice `>`";
  let genVerifyDecl = 1;
}

// An element type of weights: `tensor<576x576x!kvc.q4_0>`.
class KVC_BlockType<string name, string typeMnemonic>
    : TypeDef<KVC_Dialect, name, [DeclareTypeInterfaceMethods<KVC_WeightStorage>]> {
  let mnemonic = typeMnemonic;
  let description = [{
    32 or 256 consecutive numbers of a row, as small integers with scales that they
    share; see dialect/storage.
  }];
  let extraClassDefinition = "const ::kvc::Storage &$cppClass::getStorage() const { return ::kvc::"
      # typeMnemonic # "Storage; }";
}
def KVC_Q8_0Type : KVC_BlockType<"Q8_0", "q8_0"> {
  let summary = "blocks of bytes: scale * q";
}
def KVC_Q4_0Type : KVC_BlockType<"Q4_0", "q4_0"> {
  let summary = "blocks of nibbles: scale * (q - 8)";
}
def KVC_Q4_1Type : KVC_BlockType<"Q4_1", "q4_1"> {
  let summary = "blocks of nibbles: scale * q + minimum, an f16 too";
}
def KVC_Q5_0Type : KVC_BlockType<"Q5_0", "q5_0"> {
  let summary = "blocks of 5 bits: scale * (q - 16)";
}
def KVC_Q5_1Type : KVC_BlockType<"Q5_1", "q5_1"> {
  let summary = "blocks of 5 bits: scale * q + minimum";
}
def KVC_Q4_KType : KVC_BlockType<"Q4_K", "q4_k"> {
  let summary = "blocks of 8 times 32 nibbles, with scales and minima of 6 bits";
}
def KVC_Q5_KType : KVC_BlockType<"Q5_K", "q5_k"> {
  let summary = "blocks of 8 times 32 5 bits, with scales and minima of 6 bits";
}
def KVC_Q6_KType : KVC_BlockType<"Q6_K", "q6_k"> {
  let summary = "blocks of 16 times 16 6 bits, with scales of 8 bits";
}

def KVC_Activation : I32EnumAttr<"Activation", "an activation function", [
    // x * (1 + erf(x / sqrt 2)) / 2
    I32EnumAttrCase<"GELU", 0, "gelu">,
    // x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2
    I32EnumAttrCase<"GELUTanh", 1, "gelu_tanh">,
    // x / (1 + exp(-x))
    I32EnumAttrCase<"SiLU", 2, "silu">,
    // max(x, 0)
    I32EnumAttrCase<"ReLU", 3, "relu">]> {
  let cppNamespace = "::kvc";
  let genSpecializedAttr = 0;
}
def KVC_ActivationAttr : EnumAttr<KVC_Dialect, KVC_Activation, "activation"> {
  let assemblyFormat = "$value";
}

def KVC_PackingAttr : AttrDef<KVC_Dialect, "Packing"> {
  let mnemonic = "packing";
  let summary = "where a weight stands in the packed file";
  let description = [{
    `offset` is in bytes from the start of the file's data section. With
    `panel` 0 the weight is row-major, each row as a model's file has it. With
    `panel` P a matrix `[rows, columns]` stands in groups of P rows, so that P
    outputs stand in the lanes of vectors (see `Storage::pack`), and a vector `[n]`
    is padded to a multiple of P; padding is zero. Layers, if any, come first in
    either case.
    - C1: the offset and the panel are not negative.
  }];
  let genVerifyDecl = 1;
  let parameters = (ins "int64_t":$offset, "int64_t":$panel);
  let assemblyFormat = "`<` `offset` $offset `,` `panel` $panel `>`";
}

#endif // KVC_TYPES
