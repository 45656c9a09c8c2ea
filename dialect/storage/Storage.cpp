#include "dialect/storage/Storage.h"

using namespace kvc;

llvm::ArrayRef<const Storage *> Storage::all() {
  static const Storage *const storages[] = {
      &f64Storage,  &f32Storage,  &f16Storage, &bf16Storage,
      &q8_0Storage, &q4_0Storage, &q4_1Storage};
  return storages;
}

const Storage *Storage::named(llvm::StringRef name) {
  for (const Storage *storage : all())
    if (storage->name == name)
      return storage;
  return nullptr;
}

const Storage *Storage::namedInFile(llvm::StringRef name) {
  return name == name.upper() ? named(name.lower()) : nullptr;
}
