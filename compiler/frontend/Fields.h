// Fields: reads an object of named values, one field a call, and keeps the
// first thing that is wrong. Whatever has not been read by the end is an error.
#ifndef KVC_COMPILER_FRONTEND_FIELDS_H
#define KVC_COMPILER_FRONTEND_FIELDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kvc {

// The largest extent of any axis: products of two fit in 64 bits.
constexpr int64_t maxSize = INT32_MAX;

class Fields {
public:
  // `object` outlives this; `prefix` stands before each key in messages.
  Fields(llvm::StringRef file, const llvm::json::Object &object,
         llvm::StringRef prefix = "");

  // Present, and not null. Counts as read only when null.
  bool has(llvm::StringRef key);
  // Present, be it null.
  bool given(llvm::StringRef key) const { return fields->get(key); }

  // A whole number from 1 to maxSize. Where it is absent, null or wrong: the
  // default if there is one, else an error and the value 1, which is safe to
  // go on computing with.
  int64_t size(llvm::StringRef key, std::optional<int64_t> fallback = {});
  // A number above 0 and finite, also in f32; the same otherwise.
  double positive(llvm::StringRef key, std::optional<double> fallback = {});
  bool flag(llvm::StringRef key, std::optional<bool> fallback = {});
  // A string; an error and "" where it is absent.
  std::string text(llvm::StringRef key);
  // Any value, null where it is absent.
  const llvm::json::Value &any(llvm::StringRef key);
  // A nested object, an error and an empty one where it is absent. Call
  // `finish` of the result before `takeError` of this.
  Fields object(llvm::StringRef key);

  // These can't change the function that the model computes.
  void ignore(llvm::ArrayRef<llvm::StringLiteral> keys);
  // Must have this value where it is present and not null.
  void require(llvm::StringRef key, const llvm::json::Value &value);

  // Records "file: key: expected <what>, but got <the field's value>", unless
  // something is wrong already.
  void expected(llvm::StringRef key, const llvm::Twine &what);
  // The same with a message of its own.
  void fail(llvm::StringRef key, const llvm::Twine &message);
  // Any field not read by now is not understood.
  void finish();
  // The first thing wrong, here or in a nested object.
  llvm::Error takeError();

private:
  const llvm::json::Value *find(llvm::StringRef key);

  std::string file;
  std::string prefix;
  const llvm::json::Object *fields;
  llvm::StringSet<> read;
  std::shared_ptr<std::string> problem; // shared with nested objects
};

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_FIELDS_H
