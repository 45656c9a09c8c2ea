#include "error.h"
#include "forward.h"
#include "page_table.h"
#include "sampling.h"
#include "session.h"
#include "turn.h"

using namespace kvc;

namespace {

struct Request {
  kvc_session *session;
  int64_t sequence;
  const int32_t *prompt;
  int64_t promptCount;
  int64_t count;
  kvc_sampler *sampler;
  const int32_t *stopTokens;
  int64_t stopCount;
  kvc_token_callback callback;
  void *user;
  int32_t *tokens;
};

// What the first forward can't check for us.
kvc_status check(const Request &request) {
  if (kvc_status status = checkSequence(request.session, request.sequence))
    return status;
  const kvc_library *library = request.session->model->library;
  if (request.count < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected count to be at least 0, but got %lld",
                static_cast<long long>(request.count));
  if (request.sampler) {
    if (kvc_status status = checkSampler(request.sampler))
      return status;
    if (request.sampler->vocab != library->vocab ||
        request.sampler->type != library->arithmetic)
      return fail(KVC_INVALID_ARGUMENT,
                  "expected a sampler of %lld tokens and type %s (the "
                  "model's), but got one of %lld and %s",
                  static_cast<long long>(library->vocab),
                  nameOf(library->arithmetic),
                  static_cast<long long>(request.sampler->vocab),
                  nameOf(request.sampler->type));
  }
  if (request.stopCount < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected stop_count to be at least 0, but got %lld",
                static_cast<long long>(request.stopCount));
  if (request.stopCount > 0 && !request.stopTokens)
    return failNull("stop_tokens");
  if (request.promptCount < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected prompt_count to be at least 0, but got %lld",
                static_cast<long long>(request.promptCount));
  if (request.count == 0)
    return KVC_OK;
  if (request.promptCount < 1)
    return fail(KVC_INVALID_ARGUMENT,
                "expected prompt to have at least one token, but got %lld",
                static_cast<long long>(request.promptCount));
  if (!request.prompt)
    return failNull("prompt");
  int64_t length = request.session->lengths[request.sequence];
  int64_t room = request.session->capacity - length;
  if (request.promptCount > room ||
      request.count - 1 > room - request.promptCount)
    return fail(KVC_OUT_OF_CAPACITY,
                "sequence %lld holds %lld of %lld positions, and a prompt of "
                "%lld tokens with %lld to generate takes %llu more",
                static_cast<long long>(request.sequence),
                static_cast<long long>(length),
                static_cast<long long>(request.session->capacity),
                static_cast<long long>(request.promptCount),
                static_cast<long long>(request.count),
                static_cast<unsigned long long>(request.promptCount) +
                    static_cast<unsigned long long>(request.count) - 1);
  for (const PagePool &pool : groupPools(request.session)) {
    PagesTaken taken = pagesToAppend(request.session, pool, request.sequence,
                                     request.promptCount + request.count - 1);
    if (kvc_status status = checkFree(request.session, pool, taken.all))
      return status;
  }
  return KVC_OK;
}

bool isStop(const Request &request, int32_t token) {
  for (int64_t i = 0; i < request.stopCount; ++i)
    if (request.stopTokens[i] == token)
      return true;
  return false;
}

// Forwards the prompt, then each token but the last.
kvc_status run(const Request &request, int64_t *made) {
  kvc_session *session = request.session;
  const kvc_library *library = session->model->library;
  void *logits = session->logits.address;
  kvc_chunk chunk = {request.sequence, request.prompt, request.promptCount,
                     KVC_OUTPUTS_LAST};
  int32_t token;
  for (*made = 0;;) {
    if (kvc_status status = forward(session, &chunk, 1, logits, 1))
      return status;
    kvc_status status =
        request.sampler
            ? kvc_sampler_sample(request.sampler, logits, &token)
            : sampleGreedy(logits, library->arithmetic, library->vocab, &token);
    if (status != KVC_OK)
      return status;
    if (request.tokens)
      request.tokens[*made] = token;
    ++*made;
    bool stopped = request.callback && request.callback(request.user, token);
    if ((status = checkSession(session))) // the callback may have forked
      return status;
    if (stopped || *made == request.count || isStop(request, token))
      return KVC_OK;
    chunk = {request.sequence, &token, 1, KVC_OUTPUTS_LAST};
  }
}

} // namespace

kvc_status kvc_generate(kvc_session *session, int64_t sequence,
                        const int32_t *prompt, int64_t prompt_count,
                        int64_t count, kvc_sampler *sampler,
                        const int32_t *stop_tokens, int64_t stop_count,
                        kvc_token_callback callback, void *user,
                        int32_t *out_tokens, int64_t *out_count) {
  Request request = {session,  sequence, prompt,      prompt_count,
                     count,    sampler,  stop_tokens, stop_count,
                     callback, user,     out_tokens};
  Turn turn(session, Use::changing);
  if (turn.status != KVC_OK)
    return turn.status;
  if (kvc_status status = check(request))
    return status;
  int64_t length = session->lengths[sequence];
  rememberPages(session, sequence);
  Generator generator = sampler ? sampler->generator : Generator{};
  int64_t made = 0;
  if (sampler)
    ++sampler->generations;
  kvc_status status = count > 0 ? run(request, &made) : KVC_OK;
  if (sampler)
    --sampler->generations;
  if (status == KVC_OK) {
    if (out_count)
      *out_count = made;
    return KVC_OK;
  }
  if (length == 0 || length >= shortestLength(session, sequence))
    restorePages(session, sequence, length);
  if (sampler)
    sampler->generator = generator;
  return status;
}
