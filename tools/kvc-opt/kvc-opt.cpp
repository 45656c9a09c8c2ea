#include "tools/kvc-opt/Driver.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  return kvc::runDriver(argc, argv, registry);
}
