#include "Text.h"

#include "Common.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <unistd.h>

// Dies with the tokenizers' message unless all went well.
static void mustText(kvc_status status) {
  if (status != KVC_OK)
    die("%s", kvc_tokenizer_last_error());
}

static void write(const char *text, int64_t bytes) {
  fwrite(text, 1, size_t(bytes), stdout);
  fflush(stdout);
}

static void warn(const std::string &message) {
  fprintf(stderr, "warning: %s\n", message.c_str());
}

Text::Text(const std::string &directory, bool optional) : directory(directory) {
  auto has = [&](const char *file) {
    return access((directory + file).c_str(), F_OK) == 0;
  };
  if (has("/tokenizer.json") || has("/tokenizer.gguf")) {
    kvc_status status = kvc_tokenizer_open(directory.c_str(), &tokenizer);
    if (!optional)
      mustText(status);
    if (status != KVC_OK)
      warn(kvc_tokenizer_last_error());
    std::istringstream warnings(kvc_tokenizer_warnings(tokenizer));
    for (std::string line; std::getline(warnings, line);)
      warn(line);
  }
  for (const char *file : {"/config.json", "/generation_config.json"})
    if (!tokenizer && has(file))
      addEnds(directory + file);
}

void Text::addEnds(const std::string &path) {
  std::vector<int32_t> found;
  int64_t count = 0;
  kvc_status status;
  while ((status = kvc_tokenizer_read_ends(path.c_str(), found.data(),
                                           int64_t(found.size()), &count)) ==
         KVC_OUT_OF_CAPACITY)
    found.resize(size_t(count));
  if (status != KVC_OK)
    warn(kvc_tokenizer_last_error());
  ends.insert(ends.end(), found.begin(), found.end());
}

Text::~Text() {
  kvc_decoder_destroy(decoder);
  kvc_tokenizer_close(tokenizer);
}

void Text::demand() const {
  if (!tokenizer)
    die("%s: expected tokenizer.json or tokenizer.gguf, but it has neither: "
        "give the prompt as --ids",
        directory.c_str());
}

std::vector<int32_t> Text::encode(const std::string &text, bool addSpecial,
                                  bool parseSpecial) const {
  std::vector<int32_t> tokens;
  int64_t count = 0;
  for (;;) {
    kvc_status status = kvc_tokenizer_encode(
        tokenizer, text.data(), int64_t(text.size()), addSpecial, parseSpecial,
        tokens.data(), int64_t(tokens.size()), &count);
    bool grow = status == KVC_OUT_OF_CAPACITY;
    if (!grow)
      mustText(status);
    tokens.resize(size_t(count));
    if (!grow)
      return tokens;
  }
}

std::vector<int32_t> Text::encodePrompt(const std::string &text) const {
  demand();
  return encode(text, /*addSpecial=*/true, /*parseSpecial=*/false);
}

std::vector<int32_t> Text::encodeChat(const std::string &message) const {
  demand();
  kvc_message messages[] = {{"user", message.c_str()}};
  int64_t bytes = 0;
  kvc_status status =
      kvc_tokenizer_chat(tokenizer, messages, 1,
                         /*add_generation_prompt=*/1, nullptr, 0, &bytes);
  if (status != KVC_OUT_OF_CAPACITY)
    mustText(status);
  std::string text(size_t(bytes), '\0');
  mustText(kvc_tokenizer_chat(tokenizer, messages, 1, 1, text.data(), bytes,
                              &bytes));
  return encode(text, /*addSpecial=*/false, /*parseSpecial=*/true);
}

bool Text::isEnd(int32_t token) const {
  return tokenizer ? kvc_tokenizer_is_end(tokenizer, token)
                   : std::count(ends.begin(), ends.end(), token);
}

void Text::begin(const std::vector<int32_t> &prompt) {
  mustText(kvc_decoder_create(tokenizer, /*skip_special=*/1, &decoder));
  const char *text;
  int64_t bytes;
  for (int32_t token : prompt)
    mustText(kvc_decoder_push(decoder, token, &text, &bytes));
}

void Text::print(int32_t token) {
  const char *text;
  int64_t bytes;
  mustText(kvc_decoder_push(decoder, token, &text, &bytes));
  write(text, bytes);
}

void Text::finish() {
  const char *text;
  int64_t bytes;
  mustText(kvc_decoder_finish(decoder, &text, &bytes));
  write(text, bytes);
}
