// #kvc_test.forgetting: a layout that doesn't keep every position.
#ifndef KVC_TEST_LIB_FORGETTINGLAYOUT_H
#define KVC_TEST_LIB_FORGETTINGLAYOUT_H

#include "mlir/IR/DialectRegistry.h"

namespace kvc::test {
void registerForgettingLayout(mlir::DialectRegistry &registry);
} // namespace kvc::test

#endif // KVC_TEST_LIB_FORGETTINGLAYOUT_H
