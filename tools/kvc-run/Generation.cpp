#include "Generation.h"

#include "Common.h"

#include <algorithm>

static kvc_model_info query(const kvc_model *model) {
  kvc_model_info info;
  kvc_model_info_init(&info);
  must(kvc_model_query(model, &info));
  return info;
}

Generation::Generation(const kvc_model *model, kvc_session *session,
                       const Options &options, std::vector<int32_t> prompt)
    : session(session), options(options), info(query(model)),
      ids(std::move(prompt)), promptCount(int64_t(ids.size())),
      rowBytes(info.vocab * (info.arithmetic == KVC_TYPE_F64 ? 8 : 4)) {
  int64_t capacity;
  must(kvc_session_capacity(session, &capacity));
  if (promptCount == 0)
    die("expected a prompt of at least one token, but got none");
  // The last token is never forwarded.
  int64_t room = capacity - promptCount + 1;
  wanted = options.count.value_or(std::min<int64_t>(128, room));
  if (room < 1 || wanted > room)
    die("expected the prompt's %lld tokens and %lld new ones, of which the "
        "last "
        "is not forwarded, to fit a capacity of %lld positions",
        static_cast<long long>(promptCount), static_cast<long long>(wanted),
        static_cast<long long>(capacity));

  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = options.temperature;
  params.top_k = options.topK;
  params.top_p = options.topP;
  params.seed = options.seed;
  must(kvc_sampler_create(&params, info.vocab, info.arithmetic, &sampler));
}

Generation::~Generation() { kvc_sampler_destroy(sampler); }

void Generation::forward(int64_t begin, int64_t tokens, kvc_outputs outputs) {
  int64_t rows = outputs == KVC_OUTPUTS_ALL    ? tokens
                 : outputs == KVC_OUTPUTS_LAST ? 1
                                               : 0;
  logits.resize(size_t(rows * rowBytes));
  kvc_chunk chunk = {0, &ids[size_t(begin)], tokens, outputs};
  must(kvc_forward(session, &chunk, 1, logits.data(), rows));
}

bool Generation::forwardPrompt(const std::function<bool(int64_t)> &progress) {
  std::vector<int64_t> sizes = options.chunks;
  if (sizes.empty()) // as the runtime would slice it
    sizes = {options.noCache ? promptCount : info.max_tokens};
  std::optional<NpyWriter> file;
  if (!options.logits.empty())
    file.emplace(options.logits, info.arithmetic, promptCount, info.vocab);
  size_t chunk = 0;
  for (int64_t done = 0; done < promptCount; ++chunk) {
    if (!progress(done)) {
      if (file)
        die("%s: expected to write %lld rows, but was interrupted after %lld",
            options.logits.c_str(), static_cast<long long>(promptCount),
            static_cast<long long>(done));
      return false;
    }
    int64_t tokens = std::min(sizes[chunk % sizes.size()], promptCount - done);
    bool last = done + tokens == promptCount;
    forward(done, tokens,
            file   ? KVC_OUTPUTS_ALL
            : last ? KVC_OUTPUTS_LAST
                   : KVC_OUTPUTS_NONE);
    if (file)
      file->write(logits.data(), tokens);
    done += tokens;
  }
  if (file)
    file->close();
  return true;
}

void Generation::forwardNext(int32_t token) {
  ids.push_back(token);
  int64_t length = int64_t(ids.size());
  if (!options.noCache)
    return forward(length - 1, 1, KVC_OUTPUTS_LAST);
  must(kvc_session_reset(session));
  forward(0, length, KVC_OUTPUTS_LAST);
}

void Generation::run(const std::function<bool(int64_t)> &progress,
                     const std::function<bool(int32_t)> &receive) {
  if (wanted == 0 && options.logits.empty())
    return;
  if (!forwardPrompt(progress))
    return;
  for (int64_t made = 0; made < wanted;) {
    int32_t token;
    const char *row = logits.data() + (int64_t(logits.size()) - rowBytes);
    must(kvc_sampler_sample(sampler, row, &token));
    ++made;
    if (!receive(token))
      return;
    if (made < wanted)
      forwardNext(token);
  }
}
