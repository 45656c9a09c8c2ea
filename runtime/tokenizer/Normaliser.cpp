#include "Normaliser.h"

#include "Nfc.h"

using namespace kvc::tokenizer;

static std::string replaceAll(std::string_view in, std::string_view from,
                              std::string_view by) {
  std::string result;
  result.reserve(in.size());
  for (;;) {
    size_t found = in.find(from);
    result += in.substr(0, found);
    if (found == in.npos)
      return result;
    result += by;
    in.remove_prefix(found + from.size());
  }
}

std::string NormaliserStep::apply(std::string_view to) const {
  if (kind == Replace)
    return replaceAll(to, text, by);
  if (kind == Nfc)
    return toNfc(to);
  std::string result;
  if (kind == Prepend || to.substr(0, text.size()) != text)
    result = text;
  result += to;
  return result;
}
