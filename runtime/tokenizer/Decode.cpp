#include "Decode.h"

#include "Error.h"
#include "Utf8.h"

using namespace kvc::tokenizer;

kvc_status Decoder::push(int32_t id, std::string &text) {
  if (id < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected a token of 0 or more, but got %d", id);
  // The head has more rows than there are tokens, and one of them may win.
  if (!tokenizer.isToken(id))
    return KVC_OK;
  Token token = tokenizer.tokens[static_cast<size_t>(id)];
  if (skipSpecial && token.kind == TokenKind::Special)
    return KVC_OK;

  std::string_view bytes = token.bytes;
  while (spacesToStrip > 0 && !bytes.empty()) {
    if (bytes[0] == ' ') {
      bytes.remove_prefix(1);
      --spacesToStrip;
    } else {
      spacesToStrip = 0;
    }
  }
  held += bytes;
  giveCharacters(text);
  return KVC_OK;
}

void Decoder::giveCharacters(std::string &text) {
  std::string_view rest = held;
  while (!rest.empty()) {
    Utf8Step step = utf8Step(rest);
    if (step.state == Utf8Step::Incomplete)
      break;
    text += step.state == Utf8Step::Valid ? rest.substr(0, step.length)
                                          : utf8Replacement;
    rest.remove_prefix(step.length);
  }
  held.erase(0, held.size() - rest.size());
}

void Decoder::finish(std::string &text) {
  if (!held.empty())
    text += utf8Replacement;
  held.clear();
  spacesToStrip = tokenizer.stripSpaces;
}
