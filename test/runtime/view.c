#include "view.h"

#include "check.h"

void view_take(const kvc_session *session, const char *folder, view *v) {
  memset(v, 0, sizeof *v);
  kvc_session_info_init(&v->info);
  CHECK_OK(kvc_session_query(session, &v->info));
  v->info.parallel_regions = 0; /* tells of calls, also of one that was undone */
  for (int64_t s = 0; s < view_sequences; ++s) {
    kvc_sequence_info_init(&v->sequences[s]);
    CHECK_OK(kvc_sequence_query(session, s, &v->sequences[s]));
    char path[4096];
    snprintf(path, sizeof path, "%s/view", folder);
    CHECK_OK(kvc_sequence_save(session, s, path));
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(v->saved[s], 1, view_bytes, file) < view_bytes);
    fclose(file);
  }
}
