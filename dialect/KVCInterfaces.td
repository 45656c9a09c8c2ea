//===- KVCInterfaces.td - the layout interface ----------------------------===//
//
// A layout says where in memory the keys and values of a cache stand. Attention
// and append are written once, over this interface.
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
    first and then values. A sequence owns a list of pages; position p stands in
    page p / positionsPerPage, at place p mod positionsPerPage.

    What every layout promises to the code that reads it:
    - positionsPerPage is a multiple of 16 (`kLanes`);
    - the 16 keys at places 16g to 16g+15 stand with their elements interleaved:
      element e of all 16 is contiguous, so that scores need no horizontal add;
    - the elements of one value are contiguous.
  }];
  let methods = [
    InterfaceMethod<"Positions that one page holds; a multiple of 16.",
      "int64_t", "getPositionsPerPage", (ins "::kvc::CacheType":$cache)>,
    InterfaceMethod<"Bytes of one page, padding included.",
      "int64_t", "getPageBytes", (ins "::kvc::CacheType":$cache)>,
    InterfaceMethod<"Bytes of one page that can hold no position of the cache.",
      "int64_t", "getPagePadding", (ins "::kvc::CacheType":$cache)>,
    InterfaceMethod<[{
        The index, in elements from the page's start, of element `element` of
        the key at place `place` for `layer` and `head`. All are of index type.
      }],
      "::mlir::Value", "emitKeyIndex",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::kvc::CacheType":$cache, "::mlir::Value":$layer,
           "::mlir::Value":$head, "::mlir::Value":$place,
           "::mlir::Value":$element)>,
    InterfaceMethod<"The same for a value.",
      "::mlir::Value", "emitValueIndex",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::kvc::CacheType":$cache, "::mlir::Value":$layer,
           "::mlir::Value":$head, "::mlir::Value":$place,
           "::mlir::Value":$element)>,
    InterfaceMethod<[{
        Whether the layout keeps every position, so that attention over it is
        attention over the full prefix.
      }],
      "bool", "isExact", (ins)>
  ];
}

#endif // KVC_INTERFACES
