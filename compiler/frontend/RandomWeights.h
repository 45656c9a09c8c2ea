#ifndef KVC_COMPILER_FRONTEND_RANDOMWEIGHTS_H
#define KVC_COMPILER_FRONTEND_RANDOMWEIGHTS_H

#include "compiler/frontend/WeightFile.h"

namespace kvc {

// Opens "random:<seed>". It has a tensor of any name and shape (rank 1 or 2).
llvm::Expected<std::unique_ptr<WeightFile>>
openRandomWeights(llvm::StringRef path);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_RANDOMWEIGHTS_H
