//===- KVCInterfaces.td - what layouts and ops answer ---------------------===//
//
// A layout says where in memory the keys and values of a cache stand, a storage
// how the numbers of a weight do. An op says
// which weights it reads, and at which positions it works.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_INTERFACES
#define KVC_INTERFACES

include "mlir/IR/OpBase.td"

def KVC_LayoutAttrInterface : AttrInterface<"LayoutAttrInterface"> {
  let cppNamespace = "::kvc";
  let description = [{
    How the keys and values of a group of layers stand in memory. The memory of a
    group is a pool of pages, of which a sequence has a number. A page holds a fixed
    number of consecutive positions of one sequence, for every layer and KV head of
    the group. Position p is the p mod positionsPerPage-th of the sequence's page
    p / positionsPerPage mod pagesPerSequence: where these pages are fewer than the
    capacity needs, a position is written over an older one.

    Numbers and arrays are what the runtime is told (kvc_group in
    runtime/include/kvc/abi.h), and all that it knows; the code that reads and writes
    numbers is emitted here, and all that attention and append know. What a layout
    doesn't say itself is so:

    - keys are `[layers * kv_heads, positions / 16, key, 16]` of the group's element
      type: the elements of 16 keys (`kLanes`) stand interleaved, so that scores need
      no horizontal add;
    - behind them are the values, `[layers * kv_heads, positions, value]`;
    - a sequence has as many pages as its capacity needs, and keeps all positions.

    A layout that stores numbers in another way says which arrays these are, and
    emits how numbers of the group's element type are read from and written to them.
  }];
  let methods = [
    InterfaceMethod<"Positions that one page holds; a multiple of 16.",
      "int64_t", "getPositionsPerPage", (ins "const ::kvc::Group &":$group)>,
    InterfaceMethod<"Pages that a sequence has at most.",
      "int64_t", "getPagesPerSequence", (ins "const ::kvc::Group &":$group), "", [{
        return ::llvm::divideCeil(group.capacity,
                                  $_attr.getPositionsPerPage(group));
      }]>,
    InterfaceMethod<[{
        How many positions, the last ones up to its own, a token is sure to find,
        whatever was appended with it in a slice of at most positionsPerPage *
        pagesPerSequence - window + 1 tokens; 0: all.
      }],
      "int64_t", "getWindow", (ins "const ::kvc::Group &":$group), "", "return 0;">,
    InterfaceMethod<"The arrays of a page, behind each other.",
      "::llvm::SmallVector<::kvc::Section>", "getSections",
      (ins "const ::kvc::Group &":$group), "",
      "return ::kvc::sectionsOf(group);">,
    InterfaceMethod<[{
        Element `element` (of type index) of `count` keys from the cell on, in the
        group's element type: a vector of 16, of a cell at a multiple of 16, or a
        number.
      }],
      "::mlir::Value", "emitLoadKeys",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvc::Group &":$group, "const ::kvc::CacheCell &":$cell,
           "::mlir::Value":$element, "int64_t":$count), "",
      "return ::kvc::loadKeys(b, loc, group, cell, element, count);">,
    InterfaceMethod<[{
        `count` elements of the cell's value from `element` on: a vector of at most
        16, or a number.
      }],
      "::mlir::Value", "emitLoadValue",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvc::Group &":$group, "const ::kvc::CacheCell &":$cell,
           "::mlir::Value":$element, "int64_t":$count), "",
      "return ::kvc::loadValue(b, loc, group, cell, element, count);">,
    InterfaceMethod<[{
        Stores the cell's key, whose elements are `numbers(element, 1)`, of the
        group's element type.
      }],
      "void", "emitStoreKey",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvc::Group &":$group, "const ::kvc::CacheCell &":$cell,
           "::kvc::NumbersOf":$numbers), "",
      "::kvc::storeKey(b, loc, group, cell, numbers);">,
    InterfaceMethod<[{
        Stores the cell's value, whose elements are `numbers(element, count)`: vectors
        of at most `most` elements, and numbers.
      }],
      "void", "emitStoreValue",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvc::Group &":$group, "const ::kvc::CacheCell &":$cell,
           "::kvc::NumbersOf":$numbers, "int64_t":$most), "",
      "::kvc::storeValue(b, loc, group, cell, numbers, most);">,
    InterfaceMethod<[{
        Asks the memory for `count` of the numbers that the keys (or the values) of
        the cell and those behind it have, from the `number`-th on in the order in
        which they stand, without waiting. They may lie outside of the page.
      }],
      "void", "emitPrefetch",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvc::Group &":$group, "const ::kvc::CacheCell &":$cell,
           "bool":$keys, "::mlir::Value":$number, "int64_t":$count), "",
      "::kvc::prefetch(b, loc, group, cell, keys, number, count);">
  ];
}

def KVC_WeightStorage : TypeInterface<"WeightStorage"> {
  let cppNamespace = "::kvc";
  let description = [{
    The element type of a weight: f64, f32, f16, bf16, or one of blocks. It says
    how numbers stand in memory, are read, rounded and packed.
  }];
  let methods = [
    InterfaceMethod<"What the type stands for.", "const ::kvc::Storage &",
      "getStorage">
  ];
}

def KVC_NamedWeight : OpInterface<"NamedWeight"> {
  let cppNamespace = "::kvc";
  let description = "An op whose symbol names a weight.";
  let methods = [
    InterfaceMethod<"The shape of one layer's weight: [rows, columns] or [rows].",
      "::llvm::ArrayRef<int64_t>", "getLayerShape">,
    InterfaceMethod<"Whether a layer chooses one of several.", "bool", "isStacked">,
    InterfaceMethod<"How many there are; 1 where none is chosen.", "int64_t",
      "getLayers">,
    InterfaceMethod<[{
        The weights of one storage each that it is made of; itself where it is one.
      }], "::std::vector<::kvc::WeightOp>", "getParts">
  ];
}

def KVC_WeightUser : OpInterface<"WeightUser"> {
  let cppNamespace = "::kvc";
  let description = "An op that reads weights, by symbol.";
  let methods = [
    InterfaceMethod<"The weights, without those that the op does without.",
      "::llvm::SmallVector<::kvc::WeightUse>", "getWeights">,
    InterfaceMethod<"The layer that stacked weights are indexed by, or null.",
      "::mlir::Value", "getLayer">
  ];
}

def KVC_RowTasks : OpInterface<"RowTasks"> {
  let cppNamespace = "::kvc";
  let description = [{
    An op that is computed by tasks which read its operands and write its result,
    and nothing else, as many as there are rows of `input` and columns of the
    result to divide. Of several such ops of one input, none of which needs
    another's result, the tasks can be dispatched together (`kvc.together`).
  }];
  let methods = [
    InterfaceMethod<"The rows that the tasks walk.",
      "::mlir::Value", "getInput">
  ];
}

def KVC_Positioned : OpInterface<"Positioned"> {
  let cppNamespace = "::kvc";
  let description = "An op that works at the positions of a step's tokens.";
  let methods = [
    InterfaceMethod<"The positions, or null where what the op takes are tokens.",
      "::mlir::Value", "getPositions">,
    InterfaceMethod<"The sequences that they are of, or null.",
      "::mlir::Value", "getSequences">
  ];
}

def KVC_CacheUpdate : OpInterface<"CacheUpdate"> {
  let cppNamespace = "::kvc";
  let description = "An op that takes a cache and gives the next one.";
}

#endif // KVC_INTERFACES
