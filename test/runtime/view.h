/* What can be seen of a session, down to the bytes of its cache. A call that
 * fails leaves it as it was. */
#ifndef KVC_TEST_VIEW_H
#define KVC_TEST_VIEW_H

#include <kvc/kvc.h>

enum { view_sequences = 3, view_bytes = 8192 };

typedef struct view {
  kvc_session_info info;
  kvc_sequence_info sequences[view_sequences];
  char saved[view_sequences][view_bytes]; /* tokens, keys and values */
} view;

/* Looks at a session of view_sequences sequences, which it saves in `folder`. */
void view_take(const kvc_session *session, const char *folder, view *v);

#endif
