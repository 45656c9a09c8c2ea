#include "Error.h"
#include "Tokenizer.h"
#include "Utf8.h"

using namespace kvc::tokenizer;

// The ChatML template: a loop over the messages, and before the first one, if a
// system message is built in, the text of that. Written with real newlines.
static constexpr std::string_view loopBegin = "{% for message in messages %}";
static constexpr std::string_view systemBegin =
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\n";
static constexpr std::string_view systemEnd = "<|im_end|>\n' }}{% endif %}";
static constexpr std::string_view loopEnd =
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static bool takePrefix(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

// In a template's strings a newline is itself or the two characters \n.
static std::string withRealNewlines(std::string_view text) {
  std::string real;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escaped = text.substr(i, 2) == "\\n";
    real += escaped ? '\n' : text[i];
    i += escaped;
  }
  return real;
}

/// Recognises ChatML; `system` becomes the built-in system message, if any.
static bool matchChatMl(std::string_view text, std::string &system,
                        bool &hasSystem) {
  if (!takePrefix(text, loopBegin))
    return false;
  hasSystem = takePrefix(text, systemBegin);
  if (hasSystem) {
    size_t end = text.find(systemEnd);
    if (end == text.npos)
      return false;
    system = text.substr(0, end);
    // The message ends where its string does, and holds no other escapes.
    if (system.find_first_of("'\\") != system.npos)
      return false;
    text.remove_prefix(end + systemEnd.size());
  }
  return text == loopEnd;
}

kvc_status kvc::tokenizer::renderChat(const Tokenizer &tokenizer,
                                      const kvc_message *messages,
                                      int64_t count, bool addGenerationPrompt,
                                      std::string &text) {
  if (tokenizer.chatTemplate.empty())
    return fail(KVC_INCOMPATIBLE,
                "%s: expected a chat template, but the model has none",
                tokenizer.chatTemplateSource.c_str());
  std::string system;
  bool hasSystem;
  if (!matchChatMl(withRealNewlines(tokenizer.chatTemplate), system, hasSystem))
    return fail(KVC_INCOMPATIBLE,
                "%s: expected a ChatML template, but got one that is not "
                "understood: %s",
                tokenizer.chatTemplateSource.c_str(),
                quotedText(tokenizer.chatTemplate).c_str());

  auto append = [&](std::string_view role, std::string_view content) {
    for (std::string_view part :
         {std::string_view("<|im_start|>"), role, std::string_view("\n"),
          content, std::string_view("<|im_end|>\n")})
      text += part;
  };
  for (int64_t i = 0; i < count; ++i) {
    if (!messages[i].role || !messages[i].content)
      return fail(KVC_INVALID_ARGUMENT,
                  "messages[%lld]: expected a role and a content, but got NULL",
                  static_cast<long long>(i));
    if (i == 0 && hasSystem && std::string_view(messages[0].role) != "system")
      append("system", system);
    append(messages[i].role, messages[i].content);
  }
  if (addGenerationPrompt)
    text += "<|im_start|>assistant\n";
  return KVC_OK;
}
