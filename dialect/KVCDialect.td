//===- KVCDialect.td - the kvc dialect ------------------------------------===//
//
// The dialect itself. Types and attributes stand in KVCTypes.td, the layout
// interface in KVCInterfaces.td, operations in KVCOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_DIALECT
#define KVC_DIALECT

include "mlir/IR/DialectBase.td"

def KVC_Dialect : Dialect {
  let name = "kvc";
  let cppNamespace = "::kvc";
  let summary = "decoder language models with an explicit KV cache";
  let description = [{
    A decoder step is a function of a ragged batch of tokens and of a cache. The
    cache is an SSA value of type `!kvc.cache`: `kvc.append` takes one and gives
    the next, so that what has been appended when is written in the program.
    Activations are tensors of rows, one row a token: `tensor<?x576xf32>`.
    Weights are symbols that name tensors of the model's file.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // KVC_DIALECT
