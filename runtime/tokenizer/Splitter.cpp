#include "Splitter.h"

#include "Error.h"
#include "Utf8.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace kvc::tokenizer;

void Pcre2Deleter::operator()(pcre2_code *code) const { pcre2_code_free(code); }
void Pcre2Deleter::operator()(pcre2_match_data *data) const {
  pcre2_match_data_free(data);
}
void Pcre2Deleter::operator()(pcre2_match_context *context) const {
  pcre2_match_context_free(context);
}

// Unicode's White_Space, as the inside of a character class.
static constexpr char whiteSpace[] =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029})"
    R"(\x{202f}\x{205f}\x{3000})";

// Writes out \s, and \S outside a class: PCRE2's also count U+180E as space,
// which Unicode ceased to do in 6.3.
static std::string spellWhiteSpace(std::string_view expression) {
  std::string spelled;
  bool inClass = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      char escaped = expression[++i];
      if (escaped == 's')
        spelled += inClass ? whiteSpace : '[' + std::string(whiteSpace) + ']';
      else if (escaped == 'S' && !inClass)
        spelled += "[^" + std::string(whiteSpace) + ']';
      else
        spelled.append({c, escaped});
      continue;
    }
    inClass = inClass ? c != ']' : c == '[';
    spelled += c;
  }
  return spelled;
}

kvc_status Splitter::compile(const char *where, std::string_view expression,
                             Keep kept) {
  std::string spelled = spellWhiteSpace(expression);
  int error;
  size_t offset;
  keep = kept;
  code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()),
                           spelled.size(),
                           PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                           &error, &offset, nullptr));
  if (!code) {
    char reason[160];
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR *>(reason),
                            sizeof reason);
    return fail(KVC_INCOMPATIBLE,
                "%s: expected a regular expression, but got %s: %s", where,
                quotedText(expression).c_str(), reason);
  }
  // Without a just-in-time compiler the expression is interpreted.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return KVC_OK;
}

Splitter::Pieces::Pieces(const Splitter &splitter)
    : splitter(splitter),
      data(pcre2_match_data_create_from_pattern(splitter.code.get(), nullptr)),
      context(pcre2_match_context_create(nullptr)) {}

void Splitter::Pieces::start(std::string_view newText) {
  text = newText;
  at = matchBegin = matchEnd = 0;
}

// Finds the next match; the end of the text stands for none.
kvc_status Splitter::Pieces::match() {
  if (!data || !context)
    return fail(KVC_OUT_OF_MEMORY, "no memory for matching");
  auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  int found = pcre2_match(splitter.code.get(), subject, text.size(), matchEnd,
                          options, data.get(), context.get());
  // The machine's stack was too small for the compiled form; the interpreter
  // uses the heap.
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match(splitter.code.get(), subject, text.size(), matchEnd,
                        options | PCRE2_NO_JIT, data.get(), context.get());
  if (found == PCRE2_ERROR_NOMATCH) {
    matchBegin = matchEnd = text.size();
    return KVC_OK;
  }
  if (found < 0) {
    char reason[160];
    pcre2_get_error_message(found, reinterpret_cast<PCRE2_UCHAR *>(reason),
                            sizeof reason);
    return fail(KVC_INCOMPATIBLE, "cannot split the text into words: %s",
                reason);
  }
  const size_t *ends = pcre2_get_ovector_pointer(data.get());
  // \K in a lookahead could give a match that ends before it begins.
  matchBegin = std::max(ends[0], matchEnd);
  matchEnd = std::max(ends[1], matchBegin);
  return KVC_OK;
}

kvc_status Splitter::Pieces::next(std::string_view &piece) {
  while (at < text.size()) {
    if (at == matchEnd)
      KVC_TRY(match());
    size_t begin = at;
    bool gap = at < matchBegin;
    at = gap ? matchBegin : matchEnd;
    if (at > begin && splitter.keep != (gap ? Matches : Gaps)) {
      piece = text.substr(begin, at - begin);
      return KVC_OK;
    }
  }
  piece = {};
  return KVC_OK;
}
