#include "AddedTokens.h"

#include <algorithm>

using namespace kvc::tokenizer;

void AddedTokens::add(std::string_view spelling, int32_t id, bool special) {
  if (spelling.empty())
    return;
  std::vector<Entry> &entries = byFirstByte[static_cast<uint8_t>(spelling[0])];
  auto place =
      std::find_if(entries.begin(), entries.end(), [&](const Entry &e) {
        return e.spelling.size() < spelling.size();
      });
  entries.insert(place, {std::string(spelling), id, special});
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from,
                                     bool parseSpecial) const {
  for (size_t at = from; at < text.size(); ++at)
    for (const Entry &entry : byFirstByte[static_cast<uint8_t>(text[at])])
      if ((parseSpecial || !entry.special) &&
          text.compare(at, entry.spelling.size(), entry.spelling) == 0)
        return {at, at + entry.spelling.size(), entry.id};
  return {text.size(), text.size(), -1};
}
