/* Saved sequences: restored they go on with the same bits; a file that is not
 * exactly what was saved is refused and leaves the sequence empty. */
#include "check.h"
#include "fake_model.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const fake_shape contiguous = {160, 160, 32, KVC_TYPE_F64};
static const fake_shape paged = {160, 16, 32, KVC_TYPE_F64};
static const int32_t text[30] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7};

enum { header_bytes = 96, most_bytes = 4096 };

static kvc_session *create(const kvc_model *model, int64_t capacity,
                           int64_t pool_pages) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 2;
  params.capacity = capacity;
  params.threads = 1;
  params.poison = 1;
  params.pool_pages = pool_pages;
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &session));
  return session;
}

static void append(kvc_session *session, int64_t sequence, int64_t count,
                   double *row) {
  kvc_chunk chunk = {sequence, text, count, KVC_OUTPUTS_LAST};
  CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
}

static int64_t read_file(const char *path, char *bytes) {
  FILE *file = fopen(path, "rb");
  CHECK(file);
  size_t count = fread(bytes, 1, most_bytes, file);
  CHECK(count < most_bytes && fclose(file) == 0);
  return (int64_t)count;
}

static void write_file(const char *path, const char *bytes, int64_t count) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, (size_t)count, file) == (size_t)count);
  CHECK(fclose(file) == 0);
}

static void check_empty(const kvc_session *session, int64_t sequence) {
  int64_t length = -1;
  CHECK_OK(kvc_sequence_length(session, sequence, &length));
  CHECK_EQUAL(length, 0);
  kvc_session_info info;
  kvc_session_info_init(&info);
  CHECK_OK(kvc_session_query(session, &info));
  CHECK_EQUAL(info.live_pages, 0);
}

static void goes_on(const fake_shape *shape, const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, shape, folder);
  kvc_session *session = create(model, 0, 0), *other = create(model, 90, 0);
  char path[4096], saved[most_bytes], again[most_bytes];
  snprintf(path, sizeof path, "%s/state", folder);
  double row[fake_vocab], expected[fake_vocab];
  for (int64_t length = 0; length <= 60; length += 20) {
    CHECK_OK(kvc_sequence_save(session, 0, path));
    int64_t bytes = read_file(path, saved);
    CHECK_EQUAL(bytes, header_bytes + length * (4 + 16) + 4);
    CHECK_OK(kvc_sequence_restore(other, 1, path));
    /* The same tokens are saved as the same bytes, whoever saves. */
    CHECK_OK(kvc_sequence_save(other, 1, path));
    CHECK_EQUAL(read_file(path, again), bytes);
    CHECK(memcmp(again, saved, (size_t)bytes) == 0);
    append(session, 0, 20, expected);
    append(other, 1, 20, row);
    CHECK(memcmp(row, expected, sizeof row) == 0 && row[0] == row[0]);
    int32_t tokens[80];
    CHECK_OK(kvc_sequence_tokens(other, 1, 0, length + 20, tokens));
    CHECK(memcmp(tokens + length, text, 20 * sizeof *text) == 0);
    CHECK_OK(kvc_sequence_remove(other, 1));
  }
  kvc_session_destroy(session);
  kvc_session_destroy(other);
  kvc_model_close(model);
}

/* Gives the file its checksum. */
static void seal(char *bytes, int64_t count) {
  uint32_t sum = UINT32_MAX;
  for (int64_t i = 0; i < count - 4; ++i) {
    sum ^= (uint8_t)bytes[i];
    for (int bit = 0; bit < 8; ++bit)
      sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
  }
  sum = ~sum;
  memcpy(bytes + count - 4, &sum, 4);
}

/* Every byte altered, every shorter file, a longer one. */
static void refuses_damage(const kvc_model *model, const char *folder) {
  kvc_session *session = create(model, 0, 0);
  char path[4096], bytes[most_bytes];
  double row[fake_vocab];
  snprintf(path, sizeof path, "%s/damaged", folder);
  append(session, 0, 20, row);
  CHECK_OK(kvc_sequence_save(session, 0, path));
  CHECK_OK(kvc_sequence_remove(session, 0));
  int64_t count = read_file(path, bytes);
  for (int64_t i = 0; i < count; ++i) {
    bytes[i] ^= 0x10;
    write_file(path, bytes, count);
    kvc_status status = kvc_sequence_restore(session, 0, path);
    CHECK(status == KVC_IO ||
          (i < header_bytes - 16 && status == KVC_INCOMPATIBLE));
    bytes[i] ^= 0x10;
    check_empty(session, 0);
  }
  char message[8192];
  for (int64_t shorter = 0; shorter < count; ++shorter) {
    write_file(path, bytes, shorter);
    if (shorter < header_bytes)
      sprintf(message, "%s: can't read it: it ends too early", path);
    else
      sprintf(message,
              "%s: expected 20 positions in a file of 500 bytes, but it has %d",
              path, (int)shorter);
    CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_IO, message);
    check_empty(session, 0);
  }
  write_file(path, bytes, count + 1);
  sprintf(message,
          "%s: expected 20 positions in a file of 500 bytes, but it has 501",
          path);
  CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_IO, message);
  check_empty(session, 0);
  /* A token that the model does not have, in a file that is whole. */
  char token = bytes[header_bytes + 4];
  bytes[header_bytes + 4] = fake_vocab;
  seal(bytes, count);
  write_file(path, bytes, count);
  sprintf(message, "%s: expected token 1 to be in 0..18, but got 19", path);
  CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_IO, message);
  check_empty(session, 0);
  bytes[header_bytes + 4] = token;
  seal(bytes, count);
  write_file(path, bytes, count);
  CHECK_OK(kvc_sequence_restore(session, 0, path));
  sprintf(message, "expected sequence 0 to be empty, but it holds 20 tokens");
  CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_INVALID_ARGUMENT,
              message);
  CHECK_FAILS(kvc_sequence_restore(session, 1, NULL), KVC_INVALID_ARGUMENT,
              "expected path to be given, but got NULL");
  CHECK_FAILS(kvc_sequence_save(session, 1, NULL), KVC_INVALID_ARGUMENT,
              "expected path to be given, but got NULL");
  CHECK_FAILS(kvc_sequence_save(session, 2, path), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..1, but got 2");
  kvc_session_destroy(session);

  session = create(model, 19, 0);
  CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_OUT_OF_CAPACITY,
              "sequence 0 has 19 positions and the saved one takes 20");
  kvc_session_destroy(session);
  session = create(model, 20, 1);
  CHECK_FAILS(kvc_sequence_restore(session, 0, path), KVC_OUT_OF_CAPACITY,
              "the pool has 1 of 1 pages free and the call takes 2");
  check_empty(session, 0);
  kvc_session_destroy(session);
}

/* Another model, layout or version is refused with both named. */
static void refuses_strangers(const char *folder) {
  kvc_library library, other;
  char path[4096], weights[4096], message[8192], bytes[most_bytes];
  double row[fake_vocab];
  kvc_model *model = fake_model_open(&library, &paged, folder);
  kvc_session *session = create(model, 0, 0);
  snprintf(path, sizeof path, "%s/stranger", folder);
  append(session, 0, 20, row);
  CHECK_OK(kvc_sequence_save(session, 0, path));

  fake_library_fill(&other, &paged);
  other.identity[0] = 0xee;
  snprintf(weights, sizeof weights, "%s/stranger.safetensors", folder);
  fake_weights_write(&other, weights);
  kvc_model *other_model = NULL;
  CHECK_OK(kvc_model_open(&other, weights, NULL, &other_model));
  kvc_session *stranger = create(other_model, 0, 0);
  sprintf(message,
          "%s: expected identity ee080f161d242b32... with layout paged<16> (the "
          "model's), but got 01080f161d242b32... with layout paged<16>",
          path);
  CHECK_FAILS(kvc_sequence_restore(stranger, 0, path), KVC_INCOMPATIBLE,
              message);
  check_empty(stranger, 0);
  kvc_session_destroy(stranger);
  kvc_model_close(other_model);

  /* Pages of another size are another layout. */
  static const fake_shape larger = {160, 32, 32, KVC_TYPE_F64};
  const struct {
    const fake_shape *shape;
    const char *layout;
  } layouts[] = {{&contiguous, "contiguous"}, {&larger, "paged<32>"}};
  for (int i = 0; i < 2; ++i) {
    other_model = fake_model_open(&other, layouts[i].shape, folder);
    stranger = create(other_model, 0, 0);
    sprintf(message,
            "%s: expected identity 01080f161d242b32... with layout %s (the "
            "model's), but got 01080f161d242b32... with layout paged<16>",
            path, layouts[i].layout);
    CHECK_FAILS(kvc_sequence_restore(stranger, 0, path), KVC_INCOMPATIBLE,
                message);
    check_empty(stranger, 0);
    kvc_session_destroy(stranger);
    kvc_model_close(other_model);
  }

  int64_t count = read_file(path, bytes);
  bytes[8] = 3;
  write_file(path, bytes, count);
  sprintf(message,
          "%s: expected version 2 with a header of 96 bytes, but got version 3 "
          "with 96",
          path);
  CHECK_FAILS(kvc_sequence_restore(session, 1, path), KVC_INCOMPATIBLE,
              message);
  bytes[0] = 'K';
  write_file(path, bytes, count);
  sprintf(message, "%s: expected a saved sequence, but got another file", path);
  CHECK_FAILS(kvc_sequence_restore(session, 1, path), KVC_IO, message);
  kvc_session_destroy(session);
  kvc_model_close(model);
}

static int files_in(const char *folder) {
  DIR *directory = opendir(folder);
  CHECK(directory);
  int count = 0;
  while (readdir(directory))
    ++count;
  closedir(directory);
  return count;
}

/* Saving replaces a file or a link to one; what else stood there stays. */
static void replaces_files_alone(const kvc_model *model, const char *folder) {
  kvc_session *session = create(model, 0, 0);
  char path[3][4096], link[4096], message[8192];
  double row[fake_vocab];
  append(session, 0, 5, row);
  snprintf(link, sizeof link, "%s/link", folder);
  strcpy(path[0], "/dev/null");
  snprintf(path[1], sizeof path[1], "%s/folder", folder);
  snprintf(path[2], sizeof path[2], "%s/socket", folder);
  CHECK(mkdir(path[1], 0700) == 0 && mknod(path[2], S_IFSOCK | 0600, 0) == 0);
  const char *kinds[] = {"a device", "a folder", "a socket"};
  for (int i = 0; i < 3; ++i) {
    struct stat before, after;
    CHECK(stat(path[i], &before) == 0 && symlink(path[i], link) == 0);
    const char *names[] = {path[i], link};
    for (int j = 0; j < 2; ++j) {
      sprintf(message, "%s: expected a regular file, but got %s", names[j],
              kinds[i]);
      CHECK_FAILS(kvc_sequence_save(session, 0, names[j]), KVC_IO, message);
      CHECK(stat(names[j], &after) == 0 && after.st_ino == before.st_ino);
    }
    CHECK(remove(link) == 0);
  }
  CHECK(symlink(link, link) == 0);
  sprintf(message, "%s: can't look at it: %s", link, strerror(ELOOP));
  CHECK_FAILS(kvc_sequence_save(session, 0, link), KVC_IO, message);
  CHECK(remove(link) == 0);
  snprintf(path[0], sizeof path[0], "%s/kept", folder);
  const char *targets[] = {"absent", path[0]};
  for (int i = 0; i < 2; ++i) {
    CHECK(symlink(targets[i], link) == 0);
    CHECK_OK(kvc_sequence_save(session, 0, link));
    CHECK_OK(kvc_sequence_restore(session, 1, link));
    CHECK_OK(kvc_sequence_remove(session, 1));
    CHECK(remove(link) == 0);
  }
  kvc_session_destroy(session);
}

/* A disk that is full: what stood there stays, and nothing beside it. */
static void keeps_the_old_file(const kvc_model *model, const char *folder) {
  kvc_session *session = create(model, 0, 0);
  char path[4096], message[8192], before[most_bytes], after[most_bytes];
  double row[fake_vocab];
  snprintf(path, sizeof path, "%s/kept", folder);
  append(session, 0, 5, row);
  CHECK_OK(kvc_sequence_save(session, 0, path));
  int64_t count = read_file(path, before);
  append(session, 0, 20, row);
  int files = files_in(folder);
  struct rlimit unlimited, limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
  limit = unlimited;
  limit.rlim_cur = 300;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  kvc_status status = kvc_sequence_save(session, 0, path);
  CHECK(setrlimit(RLIMIT_FSIZE, &unlimited) == 0);
  signal(SIGXFSZ, handler);
  CHECK_EQUAL(status, KVC_IO);
  sprintf(message, "%s: can't write it: File too large", path);
  CHECK(strcmp(kvc_last_error(), message) == 0);
  CHECK_EQUAL(files_in(folder), files);
  CHECK_EQUAL(read_file(path, after), count);
  CHECK(memcmp(before, after, (size_t)count) == 0);

  snprintf(path, sizeof path, "%s/absent/state", folder);
  sprintf(message,
          "%s: can't create a file beside it: No such file or directory", path);
  CHECK_FAILS(kvc_sequence_save(session, 0, path), KVC_IO, message);
  sprintf(message, "%s: can't open it: No such file or directory", path);
  CHECK_FAILS(kvc_sequence_restore(session, 1, path), KVC_IO, message);
  sprintf(message, "%s: expected a regular file, but got a folder", folder);
  CHECK_FAILS(kvc_sequence_restore(session, 1, folder), KVC_IO, message);
  CHECK_FAILS(kvc_sequence_restore(session, 1, ""), KVC_INVALID_ARGUMENT,
              "expected path to name a file, but got \"\"");
  CHECK_FAILS(kvc_sequence_save(session, 1, ""), KVC_INVALID_ARGUMENT,
              "expected path to name a file, but got \"\"");

  /* The longest name that the folder takes. */
  snprintf(path, sizeof path, "%s/%0255d", folder, 7);
  CHECK_OK(kvc_sequence_save(session, 0, path));
  CHECK_EQUAL(files_in(folder), files + 1);
  CHECK_OK(kvc_sequence_restore(session, 1, path));
  CHECK_OK(kvc_sequence_remove(session, 1));
  remove(path);

  /* A FIFO has no writer to wait for. */
  snprintf(path, sizeof path, "%s/fifo", folder);
  remove(path);
  CHECK(mkfifo(path, 0600) == 0);
  sprintf(message, "%s: expected a regular file, but got a pipe", path);
  CHECK_FAILS(kvc_sequence_restore(session, 1, path), KVC_IO, message);
  CHECK_FAILS(kvc_sequence_save(session, 1, path), KVC_IO, message);

  /* Of a long path a message has the end, and the reason. */
  memset(path, '/', sizeof path);
  memcpy(path + 1000, "absent/state", 13);
  CHECK_EQUAL(kvc_sequence_restore(session, 1, path), KVC_IO);
  const char *end = "//absent/state: can't open it: No such file or directory";
  CHECK(strncmp(kvc_last_error(), ".../", 4) == 0);
  CHECK(strcmp(kvc_last_error() + strlen(kvc_last_error()) - strlen(end), end) ==
        0);
  CHECK_EQUAL(kvc_sequence_save(session, 1, path), KVC_IO);
  CHECK(strstr(kvc_last_error(), "beside it: No such file or directory"));
  kvc_session_destroy(session);
}

void test_state(const char *folder) {
  goes_on(&contiguous, folder);
  goes_on(&paged, folder);
  refuses_strangers(folder);
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &paged, folder);
  refuses_damage(model, folder);
  keeps_the_old_file(model, folder);
  replaces_files_alone(model, folder);
  kvc_model_close(model);
}
