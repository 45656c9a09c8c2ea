/* kvc/kvc.h: run a decoder language model that kvc-opt compiled.
 *
 * `kvc-opt story.json -o story` writes story/libstory.a, story/story.h and
 * story/story.safetensors. This program, linked with libstory.a and libkvc,
 * continues four tokens by eight more:
 *
 *   #include <kvc/kvc.h>
 *   #include <stdio.h>
 *   #include <story.h>
 *
 *   static int check(kvc_status status) {
 *     if (status != KVC_OK)
 *       fprintf(stderr, "error: %s\n", kvc_last_error());
 *     return status == KVC_OK;
 *   }
 *
 *   int main(void) {
 *     const int32_t prompt[] = {1, 5, 2, 7};
 *     int32_t tokens[8];
 *     int64_t count = 0;
 *     kvc_model *model = NULL;
 *     kvc_session *session = NULL;
 *     int ok =
 *         check(kvc_model_open(story_library(), "story.safetensors", NULL,
 *                              &model)) &&
 *         check(kvc_session_create(model, NULL, &session)) &&
 *         check(kvc_generate(session, 0, prompt, 4, 8, NULL, NULL, 0, NULL,
 *                            NULL, tokens, &count));
 *     for (int64_t i = 0; i < count; ++i)
 *       printf("%d\n", (int)tokens[i]);
 *     kvc_session_destroy(session);
 *     kvc_model_close(model);
 *     return ok ? 0 : 1;
 *   }
 *
 * Words. A *sequence* is a list of tokens, numbered from 0 within its session;
 * its *length* is the number of tokens whose keys and values are cached. A token
 * stands at the *position* that its sequence's length gives it: no call takes a
 * position. A *chunk* is a run of tokens appended to one sequence. *Capacity* is
 * the number of positions that a sequence can hold.
 *
 * Errors. A function that can fail returns a kvc_status and writes results
 * through its out_ parameters only on KVC_OK, except where its comment says
 * otherwise. A call that fails leaves model, session and sampler as they were.
 * kvc_last_error() says what was expected and what came. NULL where a pointer is
 * required is KVC_INVALID_ARGUMENT.
 *
 * Structs that carry their size are set to zero, but for the size, by their init
 * functions: inline ones, so that the size is the one that the application was
 * compiled with, and exported ones, for other languages, that are told it. The
 * fields within the size are read and written, and no byte beyond. What an
 * application newer than the library knows beyond the library's fields must be
 * zero. Zero is the default of each parameter, and a struct of nothing but zeros,
 * its size included, means the defaults as NULL does.
 *
 * Threads. A model can be shared by threads. A session or a sampler belongs to
 * one thread at a time; sessions of one model run side by side. A call with a
 * session that another thread's call is using is KVC_BUSY and does nothing,
 * except that none may run or start when the session is destroyed. A sampler has
 * no such check. What a model computes does not depend on threads, chunks,
 * slices or neighbours in a batch: the logits are the same bits. A thread that is
 * cancelled in a call, or in a callback of one, ends after the call.
 *
 * Processes. A child made by fork can go on with models and samplers. A session's
 * threads aren't there: the child can destroy it, and every other call with it is
 * KVC_INVALID_ARGUMENT.
 */
#ifndef KVC_KVC_H
#define KVC_KVC_H

#include <kvc/abi.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KVC_API __attribute__((visibility("default")))
#else
#define KVC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kvc_status {
  KVC_OK = 0,
  KVC_INVALID_ARGUMENT, /* an argument that no state would make right */
  KVC_OUT_OF_CAPACITY,  /* a sequence or the pool of pages has less left */
  KVC_OUT_OF_MEMORY,    /* the system gave no memory or no thread */
  KVC_IO,               /* a file that can't be read, or is malformed */
  KVC_INCOMPATIBLE,     /* ABI, identity or CPU do not fit together */
  KVC_BUSY              /* something is in use that must not be now */
} kvc_status;

/* A lower-case name such as "out of capacity"; "unknown status" for a value
 * that is none of the above. Static. */
KVC_API const char *kvc_status_string(kvc_status status);

/* One sentence about the last call that failed on this thread; "" before the
 * first. Never NULL; valid until the next failing call on this thread. */
KVC_API const char *kvc_last_error(void);

/* The runtime's version, "0.1.0". Static. */
KVC_API const char *kvc_version(void);

/* kvc_<struct>_init_sized sets a struct of `size` bytes, its sizeof where the
 * application is compiled, as kvc_<struct>_init does.
 * Errors: KVC_INVALID_ARGUMENT for a size that no version of the struct has. */

/* Memory ------------------------------------------------------------------ */

/* Where a model, a session or a sampler takes its memory from. Both functions can
 * be called by any thread that uses it, and must not call the runtime. What the
 * struct says is copied. Weight files are mapped and threads are started by the
 * system in any case. Unlike the system's memory, an allocator's is touched in
 * full when a session is created. */
typedef struct kvc_allocator {
  /* `bytes` >= 1 at a multiple of 64, with any contents; NULL when there are
   * none, which makes the call of the runtime fail with KVC_OUT_OF_MEMORY. */
  void *(*allocate)(void *user, int64_t bytes);
  void (*release)(void *user, void *memory);
  void *user; /* passed on */
} kvc_allocator;

/* Model ------------------------------------------------------------------- */

/* A generated library bound to its packed weights. */
typedef struct kvc_model kvc_model;

typedef struct kvc_model_params {
  uint32_t size; /* sizeof(kvc_model_params), by the init function */
  const kvc_allocator *allocator; /* NULL: the system */
} kvc_model_params;

KVC_API kvc_status kvc_model_params_init_sized(kvc_model_params *params,
                                               size_t size);
static inline void kvc_model_params_init(kvc_model_params *params) {
  kvc_model_params_init_sized(params, sizeof *params);
}

/* Opens a model: `library` comes from the generated header's accessor and must
 * stay loaded while the model or a session of it lives; `weights_path` names the
 * .safetensors file that was written with it, which is mapped read-only. The
 * caller closes the model. The file's identity is read from its header and not
 * computed again: a byte that has changed in the weights goes unnoticed. Until
 * the model and its sessions are gone the file must not be written to or cut;
 * another one may be renamed to its path. `params` NULL means the defaults.
 * Errors: KVC_INCOMPATIBLE when the library speaks another ABI version, the
 * file has another identity or size, or this machine lacks a CPU feature that
 * every level of the library needs; KVC_IO when the file can't be read, is
 * truncated or malformed. */
KVC_API kvc_status kvc_model_open(const kvc_library *library,
                                  const char *weights_path,
                                  const kvc_model_params *params,
                                  kvc_model **out_model);

/* Closes a model, which no call takes then; NULL is fine. Sessions that are still
 * alive go on and keep its weights mapped until the last one is destroyed. */
KVC_API void kvc_model_close(kvc_model *model);

typedef struct kvc_model_info {
  uint32_t size;      /* sizeof(kvc_model_info), by the init function */
  const char *name;   /* strings live as long as the library is loaded */
  const char *layout; /* of the cache's first group, e.g. "contiguous" */
  const char *cpu_level; /* the best one that this machine runs */
  int64_t vocab;
  int64_t width;
  int64_t layers;
  int64_t heads;
  int64_t kv_heads;    /* of the cache's first group, as the next two */
  int64_t key_width;   /* elements of one key of one KV head */
  int64_t value_width; /* elements of one value of one KV head */
  int64_t capacity;    /* positions */
  int64_t max_tokens;  /* tokens computed at once; longer batches are sliced */
  kvc_type arithmetic; /* of logits: KVC_TYPE_F32 or KVC_TYPE_F64 */
  kvc_type cache_type; /* of the cache's first group */
  uint8_t identity[KVC_IDENTITY_BYTES];
  int64_t weights_bytes;   /* mapped, padding included */
  int64_t weights_padding; /* of these, bytes that hold no weight */
  /* layers * kv_heads * (key_width + value_width) * bytes of the type, of all
   * groups: what one cached token of one sequence takes, without padding. */
  int64_t cache_bytes_per_position;
  /* 1: the cache keeps every position that attention may see, and results are
   * those of the full prefix; 0: it forgets some, as the compiler was told to. */
  int32_t exact;
  kvc_numerics numerics; /* the class in which it computes */
  /* The cache's groups of layers, [groups_count]: see kvc/abi.h. They live as long
   * as the library is loaded. */
  int64_t groups_count;
  const kvc_group *groups;
} kvc_model_info;

KVC_API kvc_status kvc_model_info_init_sized(kvc_model_info *info, size_t size);
static inline void kvc_model_info_init(kvc_model_info *info) {
  kvc_model_info_init_sized(info, sizeof *info);
}
KVC_API kvc_status kvc_model_query(const kvc_model *model,
                                   kvc_model_info *out_info);

/* Session ----------------------------------------------------------------- */

/* A number of sequences with their cache, workspace and threads. */
typedef struct kvc_session kvc_session;

typedef struct kvc_session_params {
  uint32_t size;     /* sizeof(kvc_session_params), by the init function */
  int32_t threads;   /* caller included; 0: one for each CPU allowed to us */
  int64_t sequences; /* 0: one */
  int64_t capacity;  /* positions of a sequence; 0: as many as the model has */
  /* One of the library's; NULL: what the environment variable KVC_CPU names, else
   * the best that runs. */
  const char *cpu_level;
  /* 1 fills cache and workspace with bytes of 0xff, a NaN in every element
   * type, so that a read of what nobody wrote shows; a page that becomes free is
   * filled again, in full. For tests. */
  int32_t poison;
  /* Pages of the pool that the sequences share, at most what all of them can
   * hold at capacity; 0: so many, and the pool is never short of one. Each group
   * of layers has such a pool, of so many pages or as few as it can use. */
  int64_t pool_pages;
  const kvc_allocator *allocator; /* NULL: the model's */
  /* The application's own threads (see kvc_executor in kvc/abi.h), used by this
   * session's calls, one region after another; it lives as long as the session.
   * `threads` is 0 with it, and none are started. NULL: threads of the session's
   * own. They are pinned to no CPU; where there are more of them than CPUs, they
   * don't spin. */
  const kvc_executor *executor;
} kvc_session_params;

KVC_API kvc_status kvc_session_params_init_sized(kvc_session_params *params,
                                                 size_t size);
static inline void kvc_session_params_init(kvc_session_params *params) {
  kvc_session_params_init_sized(params, sizeof *params);
}

/* Creates a session whose sequences are empty. `params` NULL means the
 * defaults. Cache memory is reserved in full here, but takes physical memory
 * only as positions are written. The caller destroys the session.
 * Errors: KVC_INVALID_ARGUMENT for a value out of range or an unknown CPU
 * level; KVC_INCOMPATIBLE for a CPU level that this machine can't run;
 * KVC_OUT_OF_MEMORY. */
KVC_API kvc_status kvc_session_create(const kvc_model *model,
                                      const kvc_session_params *params,
                                      kvc_session **out_session);

/* Destroys a session and joins its threads; NULL is fine. Does nothing in a
 * callback of a kvc_generate that is using the session. */
KVC_API void kvc_session_destroy(kvc_session *session);

typedef struct kvc_session_info {
  uint32_t size;   /* sizeof(kvc_session_info), by the init function */
  int32_t threads; /* caller included; 0: those of an executor */
  int64_t sequences;
  int64_t capacity;      /* positions of one sequence */
  const char *cpu_level; /* lives as long as the library is loaded */
  /* Of all keys and values that sequences hold: the sum of lengths *
   * cache_bytes_per_position; of a group that keeps a window, of no more positions
   * than its pages hold. */
  int64_t cache_bytes;
  int64_t cache_reserved_bytes; /* address space of all pages, padding in it */
  int64_t workspace_bytes;
  int64_t pages;         /* of the pools */
  int64_t live_pages;    /* held by a sequence; held by several: counts once */
  int64_t partial_pages; /* of the live ones, filled in part */
  int64_t live_bytes;    /* of the live pages, padding in it */
  int64_t slack_bytes;   /* of these, bytes where no cached position stands */
  int64_t metadata_bytes; /* page tables, lists, lengths, cached token ids */
  int64_t parallel_regions; /* of several tasks, handed to the threads by the last
                             * forward call, in its last slice */
} kvc_session_info;

KVC_API kvc_status kvc_session_info_init_sized(kvc_session_info *info,
                                               size_t size);
static inline void kvc_session_info_init(kvc_session_info *info) {
  kvc_session_info_init_sized(info, sizeof *info);
}
KVC_API kvc_status kvc_session_query(const kvc_session *session,
                                     kvc_session_info *out_info);

/* The positions that each sequence of this session can hold. They never change,
 * so that this is never KVC_BUSY. */
KVC_API kvc_status kvc_session_capacity(const kvc_session *session,
                                        int64_t *out_capacity);

/* Sets every sequence to length 0. */
KVC_API kvc_status kvc_session_reset(kvc_session *session);

KVC_API kvc_status kvc_sequence_length(const kvc_session *session,
                                       int64_t sequence, int64_t *out_length);

/* Forgets the tokens at positions >= `length`. More than the present length is
 * KVC_INVALID_ARGUMENT, and so is less than the shortest that the sequence can be
 * cut back to (see kvc_sequence_info) and not 0: where the cache keeps a window, it
 * has forgotten what a token there needs. */
KVC_API kvc_status kvc_sequence_truncate(kvc_session *session, int64_t sequence,
                                         int64_t length);

/* Empties a sequence: truncation to 0. */
KVC_API kvc_status kvc_sequence_remove(kvc_session *session, int64_t sequence);

/* Makes `to` hold what `from` holds; what it held before is forgotten. Both hold
 * the same pages, and nothing is copied until one of them appends to a page that
 * both hold, which it then copies first. Takes no page. */
KVC_API kvc_status kvc_sequence_fork(kvc_session *session, int64_t from,
                                     int64_t to);

/* Makes each sequence i < count hold what sequence order[i] held before the
 * call, as kvc_sequence_fork does: the step of a beam search. A sequence can
 * come several times in `order` [count], or not at all. Sequences from `count`
 * on stay. 0 <= count <= sequences of the session. */
KVC_API kvc_status kvc_session_reorder(kvc_session *session,
                                       const int64_t *order, int64_t count);

/* Copies what `from` holds to sequence `to` of another session, whose model has
 * the same identity; within one session it is kvc_sequence_fork.
 * Errors: KVC_INCOMPATIBLE when the identities differ; KVC_OUT_OF_CAPACITY when
 * the other session's capacity or pool is too small. */
KVC_API kvc_status kvc_sequence_copy(const kvc_session *from_session,
                                     int64_t from, kvc_session *to_session,
                                     int64_t to);

/* Writes the cached tokens at positions first..first+count-1 to `out_tokens`
 * [count], which may be NULL when count is 0. They must be below the length. */
KVC_API kvc_status kvc_sequence_tokens(const kvc_session *session,
                                       int64_t sequence, int64_t first,
                                       int64_t count, int32_t *out_tokens);

/* Saves a sequence, its tokens with their keys and values, to a file that only
 * its owner can read. It is written aside, to .kvc-XXXXXX in the same folder, and
 * renamed at the end: it replaces a file or a link to a file that stood at `path`,
 * and on an error that still stands. Only a process that is killed leaves what it
 * has written aside. A folder, a device or a pipe, and links to these, are refused.
 * KVC_IO is the one error of files. */
KVC_API kvc_status kvc_sequence_save(const kvc_session *session,
                                     int64_t sequence, const char *path);

/* Fills an empty sequence from a file that kvc_sequence_save wrote; what follows
 * has the same bits as if it had never been away. On an error it stays empty.
 * Errors: KVC_INCOMPATIBLE when the file has another version, layout or identity
 * than the model; KVC_OUT_OF_CAPACITY when capacity or free pages are too few;
 * KVC_IO when the file can't be read, is truncated or altered (its CRC-32C is
 * another); KVC_INVALID_ARGUMENT when the sequence isn't empty. */
KVC_API kvc_status kvc_sequence_restore(kvc_session *session, int64_t sequence,
                                        const char *path);

typedef struct kvc_sequence_info {
  uint32_t size; /* sizeof(kvc_sequence_info), by the init function */
  int64_t length;
  /* Positions that can be appended now: what capacity leaves and the pool's free
   * pages hold, if no other sequence takes them. */
  int64_t room;
  int64_t cache_bytes;  /* as in kvc_session_info, of this sequence */
  int64_t pages;        /* that it holds */
  int64_t shared_pages; /* of these, held by other sequences, too */
  /* The shortest length but 0 that it can be cut back to: 1 unless the cache keeps a
   * window and has written over older positions. */
  int64_t shortest;
} kvc_sequence_info;

KVC_API kvc_status kvc_sequence_info_init_sized(kvc_sequence_info *info,
                                                size_t size);
static inline void kvc_sequence_info_init(kvc_sequence_info *info) {
  kvc_sequence_info_init_sized(info, sizeof *info);
}
KVC_API kvc_status kvc_sequence_query(const kvc_session *session,
                                      int64_t sequence,
                                      kvc_sequence_info *out_info);

/* Forward ----------------------------------------------------------------- */

/* Which tokens of a chunk give a row of logits. */
typedef enum kvc_outputs {
  KVC_OUTPUTS_NONE = 0,
  KVC_OUTPUTS_LAST = 1,
  KVC_OUTPUTS_ALL = 2
} kvc_outputs;

typedef struct kvc_chunk {
  int64_t sequence;      /* 0 <= sequence < sequences of the session */
  const int32_t *tokens; /* [count], 0 <= token < vocab; read during the call */
  int64_t count;         /* at least 1 */
  kvc_outputs outputs;
} kvc_chunk;

/* Appends each chunk to its sequence: a ragged batch, in which prompts and
 * single steps of different sequences mix freely. Checks everything first, then
 * computes, then commits the new lengths; allocates nothing.
 *
 *   chunks       [chunk_count], at least one, no sequence twice
 *   logits       [rows, vocab] row-major, of the model's arithmetic type; a row
 *                for each token chosen by `outputs`, in the order of chunks and
 *                then of tokens. NULL is fine when no row is wanted. Aligned
 *                to its elements, and apart from chunks and tokens.
 *   logits_rows  rows that `logits` has room for; room left over is not touched
 *
 * Errors: KVC_OUT_OF_CAPACITY when a chunk does not fit its sequence, or the
 * batch the pages that are free; KVC_INVALID_ARGUMENT for everything else that
 * is out of range. */
KVC_API kvc_status kvc_forward(kvc_session *session, const kvc_chunk *chunks,
                               int64_t chunk_count, void *logits,
                               int64_t logits_rows);

/* What a batch of chunks takes. */
typedef struct kvc_plan_info {
  uint32_t size; /* sizeof(kvc_plan_info), by the init function */
  int64_t tokens;
  int64_t logits_rows;
  int64_t new_pages;    /* taken from the pool */
  int64_t copied_pages; /* of these, copies of pages that sequences share */
  int64_t free_pages;   /* of the pools, before the call */
} kvc_plan_info;

KVC_API kvc_status kvc_plan_info_init_sized(kvc_plan_info *info, size_t size);
static inline void kvc_plan_info_init(kvc_plan_info *info) {
  kvc_plan_info_init_sized(info, sizeof *info);
}

/* Makes the checks of kvc_forward, with the same errors, and nothing else:
 * kvc_forward with the same chunks and logits of `logits_rows` rows succeeds
 * when it is the next call that changes the session. */
KVC_API kvc_status kvc_plan(kvc_session *session, const kvc_chunk *chunks,
                            int64_t chunk_count, kvc_plan_info *out_info);

/* Sampling ---------------------------------------------------------------- */

typedef struct kvc_sampler_params {
  uint32_t size;      /* sizeof(kvc_sampler_params), by the init function */
  double temperature; /* finite, >= 0; 0 takes the first maximum */
  int64_t top_k;      /* 1..vocab; 0: off */
  double top_p;       /* 0 < top_p <= 1; 0 or 1: off */
  uint64_t seed;
  const kvc_allocator *allocator; /* NULL: the system */
} kvc_sampler_params;

KVC_API kvc_status kvc_sampler_params_init_sized(kvc_sampler_params *params,
                                                 size_t size);
static inline void kvc_sampler_params_init(kvc_sampler_params *params) {
  kvc_sampler_params_init_sized(params, sizeof *params);
}

/* Chooses tokens from rows of logits. At temperature 0 the first maximum.
 * Otherwise the scores are divided by the temperature; top_k keeps every score
 * that is at least the k-th largest (ties stay, so it can keep more than k);
 * the softmax of what is left is taken in double; top_p keeps the smallest set
 * of the likeliest tokens whose probabilities sum to top_p or more (of equal
 * ones, the lower ids first); one uniform number chooses among the kept tokens,
 * taken in the order of their ids.
 *
 * Uniform numbers are the upper 53 bits of xoshiro256** (Blackman and Vigna,
 * "Scrambled linear pseudorandom number generators"), whose state is the first
 * four outputs of splitmix64 from `seed`. A greedy sample draws none. The same
 * seed gives the same tokens on every machine. */
typedef struct kvc_sampler kvc_sampler;

/* Creates a sampler for rows of `vocab` elements of `type` (KVC_TYPE_F32 or
 * KVC_TYPE_F64). `params` NULL means greedy. The caller destroys it. */
KVC_API kvc_status kvc_sampler_create(const kvc_sampler_params *params,
                                      int64_t vocab, kvc_type type,
                                      kvc_sampler **out_sampler);

/* Destroys a sampler; NULL is fine. Does nothing in a callback of a kvc_generate
 * that is using it. */
KVC_API void kvc_sampler_destroy(kvc_sampler *sampler);

/* Chooses a token from one row of logits [vocab], aligned to its elements. Minus
 * infinity is a token of probability zero; NaN, plus infinity, or a row of
 * nothing but minus infinity is KVC_INVALID_ARGUMENT. */
KVC_API kvc_status kvc_sampler_sample(kvc_sampler *sampler, const void *logits,
                                      int32_t *out_token);

/* Generation -------------------------------------------------------------- */

/* Receives each new token; a result other than 0 ends the generation after it.
 * It can ask the session about itself; a function that would change the session
 * is KVC_BUSY. It must return: not by longjmp, and not by an exception. */
typedef int (*kvc_token_callback)(void *user, int32_t token);

/* Appends `prompt` to a sequence and then generates up to `count` tokens, each
 * forwarded before the next is chosen. The last one is never forwarded, so that
 * prompt_count + count - 1 positions, and their pages, must be free: fewer is
 * KVC_OUT_OF_CAPACITY before anything is computed. A count of 0 forwards
 * nothing: the result is the prompt, which the caller has.
 *
 *   prompt       [prompt_count], at least one token unless count is 0
 *   sampler      for the model's vocab and arithmetic type; NULL: greedy
 *   stop_tokens  [stop_count]; one of them ends the generation as its last token
 *   callback     may be NULL; `user` is passed on to it
 *   out_tokens   [count], may be NULL; the new tokens, without the prompt. Each
 *                is written when it is chosen, so that after a failure those
 *                before it are there
 *   out_count    may be NULL; how many there are. Not written after a failure
 *
 * When a row can't be sampled (see kvc_sampler_sample), sequence and sampler go
 * back to where they were before the call. A sequence that can't be cut back so far
 * (see kvc_sequence_truncate) keeps what was appended. */
KVC_API kvc_status kvc_generate(kvc_session *session, int64_t sequence,
                                const int32_t *prompt, int64_t prompt_count,
                                int64_t count, kvc_sampler *sampler,
                                const int32_t *stop_tokens, int64_t stop_count,
                                kvc_token_callback callback, void *user,
                                int32_t *out_tokens, int64_t *out_count);

#ifdef __cplusplus
}
#endif
#endif /* KVC_KVC_H */
