//===- Splitter.h - cuts a text by a regular expression ---------*- C++ -*-===//
#ifndef KVC_TOKENIZER_SPLITTER_H
#define KVC_TOKENIZER_SPLITTER_H

#include "kvc/kvc.h"

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace kvc::tokenizer {

struct Pcre2Deleter {
  void operator()(pcre2_real_code_8 *code) const;
  void operator()(pcre2_real_match_data_8 *data) const;
  void operator()(pcre2_real_match_context_8 *context) const;
};

/// One step of a pre-tokenizer: a compiled expression, and which of the pieces
/// it cuts a text into are kept.
class Splitter {
public:
  enum Keep {
    Both,    ///< the matches and what stands between them
    Gaps,    ///< what stands between the matches
    Matches, ///< the matches
  };

  /// Compiles `expression`, in the syntax of Oniguruma as far as PCRE2 shares
  /// it. An error is KVC_INCOMPATIBLE and begins with `where`.
  kvc_status compile(const char *where, std::string_view expression, Keep keep);

  /// A cutting of one text; uses the splitter and the text while it lives.
  class Pieces {
  public:
    explicit Pieces(const Splitter &splitter);

    void start(std::string_view text);

    /// Gives the next piece, never empty; `out_piece` is empty at the end.
    kvc_status next(std::string_view &out_piece);

  private:
    kvc_status match();

    const Splitter &splitter;
    std::unique_ptr<pcre2_real_match_data_8, Pcre2Deleter> data;
    std::unique_ptr<pcre2_real_match_context_8, Pcre2Deleter> context;
    std::string_view text;
    size_t at = 0;                       // everything before has been given
    size_t matchBegin = 0, matchEnd = 0; // the match at or after `at`
  };

private:
  std::unique_ptr<pcre2_real_code_8, Pcre2Deleter> code;
  Keep keep = Both;
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_SPLITTER_H
