// The sequences of one user of a model, and all memory that a call needs.
#ifndef KVC_RUNTIME_SESSION_H
#define KVC_RUNTIME_SESSION_H

#include "application_executor.h"
#include "kvc/kvc.h"
#include "model.h"
#include "pool.h"
#include "threads.h"

#include <atomic>
#include <sys/types.h>

struct kvc_session {
  static constexpr uint32_t sessionTag = 0x7363766b; // "kvcs"
  uint32_t tag;
  // That created it: a forked child has none of its threads, and another number of
  // forks behind it.
  pid_t process;
  int64_t forks;
  mutable std::atomic<const void *> owner; // the thread that uses it, see turn.h
  kvc::Allocator allocator;
  const kvc_model *model;
  const kvc_kernels *kernels;
  int32_t threadCount;
  kvc::ThreadPool *threads;                // NULL: the application's
  kvc::ApplicationExecutor application;    // which are these

  int64_t sequences;
  int64_t capacity; // positions of one sequence
  // One for each of the library's groups, and one for tokens.
  kvc::PagePool *pools;
  kvc_group tokenGroup;
  kvc::Mapping cache, tokenPages; // their memory
  // [sequences, tablePages]: the tables of the library's groups beside each other,
  // which generated code reads, and those of tokens.
  int64_t *tables, *tokenTables;
  int64_t tablePages;
  int64_t *lengths; // [sequences], committed
  // [sequences], the largest length since it was 0. What stands beyond the length
  // may have been written over what stood before it.
  int64_t *reached;
  // Scratch of a reordering, as the ones above.
  int64_t *newTables, *newTokenTables, *newLengths, *newReached;

  // Of the forward call in progress. Between calls `computed` equals `lengths`.
  int64_t *computed; // [sequences], positions whose cells are written
  int64_t *planned;  // [sequences], number of the plan that last named it
  int64_t callNumber;
  int64_t regions; // parallel ones, of the last slice
  int32_t *tokens;        // [max_tokens], the slice
  int32_t *sequenceOf;    // [max_tokens], of each token
  int64_t *outputs;       // [max_tokens], rows whose logits are wanted
  kvc::Mapping workspace; // i8[workspace_bytes]
  kvc::Mapping logits;    // [vocab], the row that generation samples from
};

namespace kvc {

// Whether a parent of this process created it.
bool isInherited(const kvc_session *session);
// Error unless `session` is a session of this process.
kvc_status checkSession(const kvc_session *session);
// Error unless it has the sequence.
kvc_status checkSequence(const kvc_session *session, int64_t sequence);

} // namespace kvc

#endif
