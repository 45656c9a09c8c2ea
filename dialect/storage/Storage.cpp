#include "dialect/storage/Storage.h"

using namespace kvc;

llvm::ArrayRef<const Storage *> Storage::all() {
  static const Storage *const storages[] = {
      &f64Storage,  &f32Storage,  &f16Storage, &bf16Storage,
      &q8_0Storage, &q4_0Storage, &q4_1Storage, &q5_0Storage,
      &q5_1Storage, &q4_kStorage, &q5_kStorage, &q6_kStorage};
  return storages;
}

const Storage *Storage::named(llvm::StringRef name) {
  for (const Storage *storage : all())
    if (storage->name == name)
      return storage;
  return nullptr;
}

BlockLayout Storage::blockLayout(int64_t panel) const {
  int64_t subBlocks = quants->hasSubScales ? elements / quants->subBlock : 0;
  int64_t minima = quants->hasMinimum ? 1 : 0;
  BlockLayout at;
  at.minimum = 2 * panel;
  at.scales = 2 * panel * (1 + minima);
  at.minima = at.scales + subBlocks * panel;
  at.quants = at.minima + minima * subBlocks * panel;
  at.upper = 16 * panel;
  at.quantsStride = 4 * panel * quants->bits;
  at.bytes = at.quants + elements / 32 * at.quantsStride;
  return at;
}

const Storage *Storage::namedInFile(llvm::StringRef name) {
  return name == name.upper() ? named(name.lower()) : nullptr;
}
