#include "compiler/frontend/Fields.h"
#include "compiler/frontend/Files.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <vector>

using namespace llvm;

namespace kvc {

static const json::Value null = nullptr;

Fields::Fields(StringRef file, const json::Object &object, StringRef prefix)
    : file(file), prefix(prefix), fields(&object),
      problem(std::make_shared<std::string>()) {}

const json::Value *Fields::find(StringRef key) {
  read.insert(key);
  return fields->get(key);
}

void Fields::fail(StringRef key, const Twine &message) {
  if (problem->empty())
    *problem = (prefix + key + ": " + message).str();
}

void Fields::expected(StringRef key, const Twine &what) {
  const json::Value *value = fields->get(key);
  fail(key, "expected " + what + ", but got " +
                (value ? describe(*value) : "nothing"));
}

bool Fields::has(StringRef key) {
  const json::Value *value = fields->get(key);
  if (value && value->kind() == json::Value::Null)
    read.insert(key);
  return value && value->kind() != json::Value::Null;
}

int64_t Fields::size(StringRef key, std::optional<int64_t> fallback) {
  if (fallback && !has(key))
    return *fallback;
  const json::Value *value = find(key);
  std::optional<int64_t> number = value ? value->getAsInteger() : std::nullopt;
  if (number && *number >= 1 && *number <= maxSize)
    return *number;
  expected(key, "a whole number from 1 to 2147483647");
  return fallback.value_or(1);
}

double Fields::positive(StringRef key, std::optional<double> fallback) {
  if (fallback && !has(key))
    return *fallback;
  const json::Value *value = find(key);
  std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
  // The numbers that the dialect's attributes may have.
  float rounded = number ? float(*number) : 0;
  if (rounded > 0 && std::isfinite(rounded))
    return *number;
  expected(key, number && *number > 0 ? "a positive number within f32's range"
                                      : "a positive number");
  return fallback.value_or(1);
}

bool Fields::flag(StringRef key, std::optional<bool> fallback) {
  if (fallback && !has(key))
    return *fallback;
  const json::Value *value = find(key);
  std::optional<bool> flag = value ? value->getAsBoolean() : std::nullopt;
  if (!flag)
    expected(key, "true or false");
  return flag.value_or(false);
}

std::string Fields::text(StringRef key) {
  const json::Value *value = find(key);
  std::optional<StringRef> text = value ? value->getAsString() : std::nullopt;
  if (!text)
    expected(key, "a string");
  return text.value_or("").str();
}

const json::Value &Fields::any(StringRef key) {
  const json::Value *value = find(key);
  return value ? *value : null;
}

Fields Fields::object(StringRef key) {
  static const json::Object empty;
  const json::Value *value = find(key);
  const json::Object *nested = value ? value->getAsObject() : nullptr;
  if (!nested)
    expected(key, "an object");
  Fields result(file, nested ? *nested : empty, (prefix + key + ".").str());
  result.problem = problem;
  return result;
}

void Fields::ignore(ArrayRef<StringLiteral> keys) {
  for (StringRef key : keys)
    read.insert(key);
}

void Fields::require(StringRef key, const json::Value &value) {
  if (has(key) && any(key) != value)
    expected(key, describe(value));
}

void Fields::finish() {
  std::vector<StringRef> names;
  for (const auto &field : *fields)
    if (!read.contains(field.first))
      names.push_back(field.first);
  if (!names.empty())
    fail(*llvm::min_element(names), "is not understood");
}

Error Fields::takeError() {
  if (problem->empty())
    return Error::success();
  return invalid(file, *problem);
}

} // namespace kvc
