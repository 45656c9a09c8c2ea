/* hello [ID ...]: continues these token ids (default: 1) by 20 more, greedily.
 * Its CMakeLists.txt says which compiled model it is linked with. */
#include MODEL_HEADER
#include <kvc/kvc.h>
#include <stdio.h>
#include <stdlib.h>

enum { prompt_room = 100, count = 20 };

static int print_token(void *user, int32_t token) {
  (void)user;
  printf(" %d", (int)token);
  return 0; /* go on */
}

static int fail(void) {
  fprintf(stderr, "error: %s\n", kvc_last_error());
  return 1;
}

int main(int argc, char **argv) {
  int32_t prompt[prompt_room] = {1};
  int64_t prompt_count = argc > 1 ? argc - 1 : 1;
  if (prompt_count > prompt_room) {
    fprintf(stderr, "error: expected at most %d ids, but got %d\n", prompt_room,
            argc - 1);
    return 1;
  }
  for (int i = 1; i < argc; ++i) {
    char *end;
    long id = strtol(argv[i], &end, 10);
    if (end == argv[i] || *end || id < 0 || id > INT32_MAX) {
      fprintf(stderr, "error: expected a token id, but got \"%s\"\n", argv[i]);
      return 1;
    }
    prompt[i - 1] = (int32_t)id;
  }

  kvc_model *model = NULL;
  kvc_session *session = NULL;
  if (kvc_model_open(MODEL_LIBRARY(), MODEL_WEIGHTS, NULL, &model) != KVC_OK)
    return fail();
  if (kvc_session_create(model, NULL, &session) != KVC_OK)
    return fail();
  if (kvc_generate(session, 0, prompt, prompt_count, count, NULL, NULL, 0,
                   print_token, NULL, NULL, NULL) != KVC_OK)
    return fail();
  printf("\n");
  kvc_session_destroy(session);
  kvc_model_close(model);
  return 0;
}
