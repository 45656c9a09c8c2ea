// Runs a model over a prompt and goes on from there.
#ifndef KVC_RUN_GENERATION_H
#define KVC_RUN_GENERATION_H

#include "Npy.h"
#include "Options.h"

#include <functional>
#include <kvc/kvc.h>
#include <vector>

class Generation {
public:
  Generation(const kvc_model *model, kvc_session *session,
             const Options &options, std::vector<int32_t> prompt);
  ~Generation();
  Generation(const Generation &) = delete;
  Generation &operator=(const Generation &) = delete;

  // Tokens to generate: what was asked for, which must fit, or what fits.
  int64_t count() const { return wanted; }

  // Forwards the prompt and generates; hands on each token, until there are
  // count() of them or a receiver returns false. `progress` hears, before each
  // chunk of the prompt, how many of its tokens are done.
  void run(const std::function<bool(int64_t)> &progress,
           const std::function<bool(int32_t)> &receive);

private:
  bool forwardPrompt(const std::function<bool(int64_t)> &progress);
  void forwardNext(int32_t token);
  // Appends tokens [begin, begin + tokens) of `ids`; rows land in `logits`.
  void forward(int64_t begin, int64_t tokens, kvc_outputs outputs);

  kvc_session *session;
  const Options &options;
  kvc_model_info info;
  kvc_sampler *sampler = nullptr;
  std::vector<int32_t> ids; // the prompt, then what was generated
  int64_t promptCount;
  int64_t wanted;
  std::vector<char> logits; // [rows of the last forward, vocab]
  int64_t rowBytes;
};

#endif
