#include "PreTokenizers.h"

using namespace kvc::tokenizer;

// Llama 3's words, from the tokenizer.json of its release; Qwen 2's differ in
// taking digits one by one, and in NFC, which llama.cpp leaves out.
static constexpr std::string_view llama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
static constexpr std::string_view qwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// "default" is what llama.cpp's converter wrote where it did not know a model.
static constexpr PreTokenizer known[] = {
    {"gpt-2", {gpt2Words}, false, false, false},
    {"phi-2", {gpt2Words}, false, false, false},
    {"mpt", {gpt2Words}, false, false, false},
    {"olmo", {gpt2Words}, false, false, false},
    {"smollm", {oneDigit, gpt2Words}, false, false, false},
    {"starcoder", {oneDigit, gpt2Words}, false, false, false},
    {"refact", {oneDigit, gpt2Words}, false, false, false},
    {"codeshell", {oneDigit, gpt2Words}, false, false, false},
    {"llama-bpe", {llama3Words}, true, true, false},
    {"llama3", {llama3Words}, true, true, false},
    {"llama-v3", {llama3Words}, true, true, false},
    {"qwen2", {qwen2Words}, false, false, true},
    {"stablelm2", {qwen2Words}, false, false, false},
    {"default",
     {R"([\p{P}\$\+<=>\^~\|]+)", gpt2Words, R"(\p{N}+)", "[0-9][0-9][0-9]"},
     false,
     false,
     false},
};

const PreTokenizer *kvc::tokenizer::findPreTokenizer(std::string_view name) {
  for (const PreTokenizer &preTokenizer : known)
    if (preTokenizer.name == name)
      return &preTokenizer;
  return nullptr;
}
