// The sizes of a decoder, which every format has under names of its own.
#ifndef KVC_COMPILER_FRONTEND_GEOMETRY_H
#define KVC_COMPILER_FRONTEND_GEOMETRY_H

#include "compiler/frontend/Fields.h"
#include "compiler/frontend/ModelSpec.h"

namespace kvc {

// A format's names for them; empty where it has none.
struct GeometryNames {
  llvm::StringRef vocab, width, layers, heads;
  llvm::StringRef kvHeads; // absent field: as many as heads
  llvm::StringRef headDim; // absent field: width / heads
  llvm::StringRef hidden, context;
};

// Reads the sizes into `spec`, their relations checked, and sets the usual
// scale of attention scores, 1/sqrt(headDim).
void readGeometry(Fields &fields, const GeometryNames &names, ModelSpec &spec,
                  std::optional<int64_t> defaultHidden = {});

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_GEOMETRY_H
