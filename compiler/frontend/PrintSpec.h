#ifndef KVC_COMPILER_FRONTEND_PRINTSPEC_H
#define KVC_COMPILER_FRONTEND_PRINTSPEC_H

#include "compiler/frontend/ModelSpec.h"
#include "llvm/Support/raw_ostream.h"

namespace kvc {

// Prints one `field: value` a line, then one `role: @symbol = "source" [shape]`
// a weight (--emit=spec).
void print(const ModelSpec &spec, llvm::raw_ostream &os);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_PRINTSPEC_H
