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
    The memory of a cache is a pool of pages. A page holds a fixed number of
    consecutive positions of one sequence, for every layer and KV head, keys
    first and then values. A sequence owns a list of pages; position p is the
    p mod positionsPerPage-th of page p / positionsPerPage.

    What every layout promises to the code that reads it:
    - positionsPerPage is a multiple of 16 (`kLanes`);
    - the keys 16g to 16g+15 of a page stand with their elements interleaved:
      element e of all 16 is contiguous, so that scores need no horizontal add;
    - the elements of one value are contiguous.
  }];
  let methods = [
    InterfaceMethod<[{
        Positions that one page holds, where a sequence has `capacity` of them
        at most; a multiple of 16.
      }],
      "int64_t", "getPositionsPerPage", (ins "int64_t":$capacity)>,
    InterfaceMethod<"Bytes of one page, padding included.",
      "int64_t", "getPageBytes", (ins "::kvc::CacheType":$cache)>,
    InterfaceMethod<"Bytes of one page that can hold no position of the cache.",
      "int64_t", "getPagePadding", (ins "::kvc::CacheType":$cache)>,
    InterfaceMethod<[{
        The index, in elements from the page's start, of element `element` of
        the key of the page's position `inPage` (from 0) for `layer` and `head`.
        All are of index type.
      }],
      "::mlir::Value", "emitKeyIndex",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::kvc::CacheType":$cache, "::mlir::Value":$layer,
           "::mlir::Value":$head, "::mlir::Value":$inPage,
           "::mlir::Value":$element)>,
    InterfaceMethod<"The same for a value.",
      "::mlir::Value", "emitValueIndex",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::kvc::CacheType":$cache, "::mlir::Value":$layer,
           "::mlir::Value":$head, "::mlir::Value":$inPage,
           "::mlir::Value":$element)>,
    InterfaceMethod<[{
        Whether the layout keeps every position, so that attention over it is
        attention over the full prefix.
      }],
      "bool", "isExact", (ins)>
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
