// kvc-memory DIR N: feeds N tokens and prints what the session takes of memory, apart
// from the weights' file: at most the cache, and 5 % of weights and cache.
#include "compiled_model.h"

#include <cinttypes>
#include <vector>

// Bytes of the process that are no file's.
static int64_t ownBytes() {
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  long long kilobytes = -1;
  while (status && fgets(line, sizeof line, status) &&
         sscanf(line, "RssAnon: %lld kB", &kilobytes) != 1)
    ;
  if (kilobytes < 0)
    die("/proc/self/status: expected RssAnon");
  fclose(status);
  return kilobytes * 1024;
}

int main(int argc, char **argv) {
  if (argc != 3)
    die("expected a folder and a number of tokens");
  std::vector<int32_t> prompt(size_t(atoll(argv[2])), 1);
  int64_t before = ownBytes();
  CompiledModel model(argv[1]);
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 2;
  kvc_session *session = nullptr;
  must(kvc_session_create(model.model, &params, &session));
  std::vector<char> logits(size_t(model.rowBytes));
  kvc_chunk chunk = {0, prompt.data(), int64_t(prompt.size()), KVC_OUTPUTS_LAST};
  must(kvc_forward(session, &chunk, 1, logits.data(), 1));
  // Nothing is given back before the session ends, so that this is the most.
  int64_t taken = ownBytes() - before;
  kvc_session_info info;
  kvc_session_info_init(&info);
  must(kvc_session_query(session, &info));
  int64_t cache = info.cache_bytes;
  int64_t room = cache + (model.library->weights_bytes + cache) / 20;
  printf("%s tokens: %" PRId64 " bytes beside the weights: a cache of %" PRId64
         " and %" PRId64 " of %" PRId64 "\n",
         argv[2], taken, cache, taken - cache, room - cache);
  kvc_session_destroy(session);
  kvc_model_close(model.model);
  if (taken > room)
    die("expected at most %" PRId64 " bytes beside the weights", room);
}
