/* kvc/abi.h: what a generated library and the runtime say to each other.
 *
 * An application includes kvc/kvc.h instead; it needs from here only the name
 * `kvc_library`, which the generated header's accessor returns. The compiler
 * reads this file so that the constants below are written down once.
 *
 * All sizes are bytes and 64-bit unless a comment says otherwise.
 */
#ifndef KVC_ABI_H
#define KVC_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a struct below, the packed weight file or the meaning of an
 * argument changes. A library of another version is refused. */
#define KVC_ABI_VERSION 4

/* Bytes of a model's identity (BLAKE3 over the canonical IR and the packed
 * weights). */
#define KVC_IDENTITY_BYTES 32

/* Element types; the values are part of the ABI. */
typedef enum kvc_type {
  KVC_TYPE_F64 = 0,
  KVC_TYPE_F32 = 1,
  KVC_TYPE_F16 = 2,
  KVC_TYPE_BF16 = 3
} kvc_type;

/* How sums and products of floats are computed; the values are part of the ABI. The
 * same bits on every machine in either class, and others in the other. */
typedef enum kvc_numerics {
  /* Fused multiply-adds, denormals kept. */
  KVC_NUMERICS_FMA = 0,
  /* As tile instructions for bf16 do it, of inputs that are sums of three bf16:
   * denormals are zero, as operands and as results. */
  KVC_NUMERICS_TILES = 1
} kvc_numerics;

/* A rank-1 MLIR memref descriptor, `memref<?xT>`, passed by address. The
 * element i stands at ((T *)aligned)[offset + i * stride]. The runtime always
 * passes offset 0 and stride 1. */
typedef struct kvc_buffer {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t size; /* elements */
  int64_t stride;
} kvc_buffer;

/* One parallel region's body: does tasks [begin, end). Tasks are independent. */
typedef void (*kvc_task)(void *context, int64_t begin, int64_t end);

/* How generated code asks for parallelism. `parallel_for` returns when all
 * `count` tasks, 0 to count - 1, are done, each once: in calls of `task` for ranges of
 * them, on any threads, the caller's among them, at the same time or not. Which
 * thread does which task changes no bit. What the tasks have written is seen by who
 * called. A task starts no region. An application's own is a struct that begins with
 * this, so that `self` leads to the rest. */
typedef struct kvc_executor {
  void (*parallel_for)(const struct kvc_executor *self, kvc_task task,
                       void *context, int64_t count);
} kvc_executor;

/* Computes one slice of a ragged batch, for a session of s sequences: n tokens,
 * each with the number of its sequence; the tokens of one sequence stand together
 * and are consecutive positions from its length on. Writes the keys and values of
 * every layer at those positions, and the logits of the m chosen rows. Does not
 * change `lengths`: committing is the runtime's. Cannot fail.
 *
 *   weights    i8[weights_bytes]      data section of the packed file
 *   pool       i8                     cache pages
 *   pages      i64[s * P]             page tables: of each sequence the pages of
 *                                     one group of layers after the other, P the
 *                                     sum of their pages_per_sequence, by byte
 *                                     offset in pool; -1: none, since no position
 *                                     stands there
 *   lengths    i64[s]                 cached positions before this slice
 *   tokens     i32[n]                 0 <= token < vocab
 *   sequences  i32[n]                 of each token
 *   outputs    i64[m]                 rows of this slice whose logits are wanted
 *   logits     T[m * vocab]           T is the library's arithmetic type
 *   workspace  i8[workspace_bytes]    64-byte aligned
 * with 1 <= n <= max_tokens and 0 <= m <= n, and of each sequence no more tokens
 * than a slice has where a group of layers keeps a window.
 */
typedef void (*kvc_forward_function)(const kvc_buffer *weights,
                                     const kvc_buffer *pool,
                                     const kvc_buffer *pages,
                                     const kvc_buffer *lengths,
                                     const kvc_buffer *tokens,
                                     const kvc_buffer *sequences,
                                     const kvc_buffer *outputs,
                                     const kvc_buffer *logits,
                                     const kvc_buffer *workspace,
                                     const kvc_executor *executor);

/* The same program compiled for one CPU level. All levels of a library give
 * the same bits. */
typedef struct kvc_kernels {
  const char *level; /* "x86-64-v3" to "x86-64-v4-amx" */
  /* Names of the CPU features it needs, in the spelling of /proc/cpuinfo,
   * separated by single blanks: "avx2 fma f16c bmi2". */
  const char *features;
  kvc_forward_function forward;
} kvc_kernels;

/* How the host's part of a device's code starts its kernels, each after those that it
 * has started before: `tasks` blocks of kernel number `kernel`, none where `tasks` is
 * 0. `arguments` are the kernel's parameters behind each other, as C lays them out,
 * read before `launch` returns. A launcher is a struct that begins with this, so that
 * `self` leads to the rest; what goes wrong it keeps there. */
typedef struct kvc_launcher {
  void (*launch)(const struct kvc_launcher *self, int64_t kernel, int64_t tasks,
                 const void *arguments, int64_t arguments_bytes);
} kvc_launcher;

/* kvc_forward_function for a device: the buffers are the device's memory, of which the
 * host reads no element, so that calls with equal sizes and addresses launch the same
 * kernels with the same arguments. */
typedef void (*kvc_device_forward_function)(const kvc_buffer *weights,
                                            const kvc_buffer *pool,
                                            const kvc_buffer *pages,
                                            const kvc_buffer *lengths,
                                            const kvc_buffer *tokens,
                                            const kvc_buffer *sequences,
                                            const kvc_buffer *outputs,
                                            const kvc_buffer *logits,
                                            const kvc_buffer *workspace,
                                            const kvc_launcher *launcher);

/* A kernel of a device's code. */
typedef struct kvc_device_kernel {
  const char *name;
  int64_t threads; /* of a block */
} kvc_device_kernel;

/* The same program compiled for a kind of device: the same bits as the CPU's. */
typedef struct kvc_device_code {
  const char *device; /* "cuda" */
  const char *level;  /* the least architecture that runs it: "sm_80" */
  const char *code;   /* PTX, text that ends with a 0 */
  int64_t code_bytes; /* without the 0 */
  int64_t workspace_bytes;
  int64_t kernels_count;
  const kvc_device_kernel *kernels;
  kvc_device_forward_function forward;
} kvc_device_code;

/* Numbers of a page that stand in one array,
 *   [rows, positions_per_page / lanes, pieces, lanes, bytes]:
 * a position has `pieces` times `bytes` bytes in each row, and `lanes` positions
 * stand interleaved. */
typedef struct kvc_section {
  int64_t offset; /* of the array in the page */
  int64_t rows;   /* one for each layer and KV head */
  int64_t pieces;
  int64_t lanes; /* divides positions_per_page */
  int64_t bytes;
} kvc_section;

/* The cache of some layers: what is stored of a position, and how. Position p of a
 * sequence is the p mod positions_per_page-th of its page of index
 * p / positions_per_page mod pages_per_sequence: where these pages are fewer than
 * the capacity needs, a position is written over an older one. */
typedef struct kvc_group {
  int64_t layers;
  int64_t kv_heads;
  int64_t key_width;   /* elements of one key of one KV head */
  int64_t value_width; /* elements of one value of one KV head */
  kvc_type type;       /* of cached keys and values */
  const char *layout;  /* what the compiler calls it: "contiguous", "paged<16>" */
  int64_t positions_per_page;
  int64_t pages_per_sequence;
  int64_t page_bytes;   /* all layers, keys and values, padding included */
  int64_t page_padding; /* of these, bytes that hold no position */
  /* Positions that a token finds: the last ones up to its own, so that a slice has
   * at most positions_per_page * pages_per_sequence - window + 1 tokens of a
   * sequence; 0: all. */
  int64_t window;
  int64_t sections_count;
  const kvc_section *sections; /* behind each other */
} kvc_group;

/* What a generated library is: constants, and the code for each CPU level,
 * best first. Lives as long as the library is loaded. */
typedef struct kvc_library {
  uint32_t abi_version; /* KVC_ABI_VERSION */
  uint32_t struct_size; /* sizeof(kvc_library) of the compiler */
  const char *name;     /* a C identifier; lib<name>.a, <name>.h, ... */
  const char *compiler; /* "kvc 0.1.0" */
  uint8_t identity[KVC_IDENTITY_BYTES];

  int64_t vocab;
  int64_t width;
  int64_t layers; /* of all groups */
  int64_t heads;
  int64_t capacity; /* positions that one sequence can hold at most */

  kvc_type arithmetic; /* of activations and logits: F64 or F32 */
  kvc_numerics numerics; /* forward is called in its environment */
  /* 1: the cache keeps every position that attention may see; 0: it forgets some,
   * as the compiler was told to, and the model computes another function. */
  int64_t exact;

  int64_t weights_bytes; /* size of the packed file's data section */
  int64_t weights_padding; /* of these, bytes that hold no weight */
  int64_t max_tokens;    /* tokens of one call of forward at most */
  int64_t workspace_bytes;

  int64_t groups_count;    /* of layers; each has pages of its own */
  const kvc_group *groups;

  int64_t kernels_count;
  const kvc_kernels *kernels;

  int64_t device_codes_count; /* 0: the CPU alone; of a kind of device, best first */
  const kvc_device_code *device_codes;
} kvc_library;

#ifdef __cplusplus
}
#endif
#endif /* KVC_ABI_H */
