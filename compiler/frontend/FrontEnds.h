// One reader for each form that a model comes in. Each checks the weight file
// too, and gives a complete ModelSpec.
#ifndef KVC_COMPILER_FRONTEND_FRONTENDS_H
#define KVC_COMPILER_FRONTEND_FRONTENDS_H

#include "compiler/frontend/Fields.h"
#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/TensorFile.h"

namespace kvc {

llvm::Expected<ModelSpec> readSpecJSON(llvm::StringRef path);
llvm::Expected<ModelSpec> readHuggingFace(llvm::StringRef directory);
llvm::Expected<ModelSpec> readGGUFModel(llvm::StringRef path);

// Parts of readHuggingFace: what config.json means for each family. They set
// all of `spec` but name and weights' path.
void readLlamaConfig(Fields &config, llvm::StringRef modelType,
                     ModelSpec &spec);
void readGPT2Config(Fields &config, const TensorFile &file, ModelSpec &spec);
// Transformers' names of activations.
ActivationKind readHuggingFaceActivation(Fields &config, llvm::StringRef key);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_FRONTENDS_H
