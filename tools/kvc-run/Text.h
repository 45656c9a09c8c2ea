// A model's tokenizer, where it has one.
#ifndef KVC_RUN_TEXT_H
#define KVC_RUN_TEXT_H

#include <kvc/tokenizer.h>
#include <string>
#include <vector>

class Text {
public:
  // Opens the directory's tokenizer. One that can't be read is a warning where
  // the tokenizer is `optional`, else the end.
  Text(const std::string &directory, bool optional);
  ~Text();
  Text(const Text &) = delete;
  Text &operator=(const Text &) = delete;

  bool present() const { return tokenizer; }

  // Ids of a text to continue, and of a message to answer. Both die where there
  // is no tokenizer.
  std::vector<int32_t> encodePrompt(const std::string &text) const;
  std::vector<int32_t> encodeChat(const std::string &message) const;

  // Does the token end the text?
  bool isEnd(int32_t token) const;

  // Starts a text after these tokens; then takes the tokens that follow and
  // prints what they say, as soon as characters are whole.
  void begin(const std::vector<int32_t> &prompt);
  void print(int32_t token);
  void finish();

private:
  std::vector<int32_t> encode(const std::string &text, bool addSpecial,
                              bool parseSpecial) const;
  void demand() const; // dies without a tokenizer
  void addEnds(const std::string &path);

  std::string directory;
  kvc_tokenizer *tokenizer = nullptr;
  std::vector<int32_t> ends; // of an answer, as known without a tokenizer
  kvc_decoder *decoder = nullptr;
};

#endif
