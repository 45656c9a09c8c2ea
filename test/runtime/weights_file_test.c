/* Packed files that are cut, lie about themselves, or belong elsewhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* program_invocation_name */
#endif
#include "check.h"
#include "fake_model.h"

#include <errno.h>
#include <sys/stat.h>

static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};
static kvc_library library;
static char path[4096];

/* The valid file, and a copy to break. */
static unsigned char valid[1024], bytes[1024];
static long length;

static void write_file(long count) {
  FILE *file = fopen(path, "wb");
  CHECK(file);
  CHECK(fwrite(bytes, 1, (size_t)count, file) == (size_t)count);
  CHECK(fclose(file) == 0);
}

static kvc_status open_file(void) {
  kvc_model *model = NULL;
  kvc_status status = kvc_model_open(&library, path, NULL, &model);
  kvc_model_close(model);
  return status;
}

/* Replaces text in the header by text of the same length. */
static void replace(const char *from, const char *to) {
  memcpy(bytes, valid, sizeof valid);
  CHECK(strlen(from) == strlen(to));
  for (long i = 0; i + (long)strlen(from) <= length; ++i)
    if (memcmp(bytes + i, from, strlen(from)) == 0) {
      memcpy(bytes + i, to, strlen(to));
      write_file(length);
      return;
    }
  CHECK(!"the text is in the header");
}

/* The message is the path, and then `rest`. */
static void expect(kvc_status status, const char *rest) {
  char message[5000];
  snprintf(message, sizeof message, "%s: %s", path, rest);
  CHECK_FAILS(open_file(), status, message);
}

static void rejects_other_models(void) {
  replace("\"01080f", "\"ffffff");
  char mismatch[4096];
  snprintf(mismatch, sizeof mismatch,
           "__metadata__.kvc_identity: expected 01080f161d242b32... (that of "
           "library fake in %s), but got ffffff161d242b32...",
           program_invocation_name);
  expect(KVC_INCOMPATIBLE, mismatch);
  replace("\"kvc_abi\":\"4\"", "\"kvc_abi\":\"5\"");
  expect(KVC_INCOMPATIBLE, "__metadata__.kvc_abi: expected version 4 (that of "
                           "this runtime), but got 5");
  replace(":\"kvc\"", ":\"pt \"");
  expect(KVC_INCOMPATIBLE, "__metadata__.format: expected kvc, but got pt ");
  replace("kvc_identity", "kvx_identity");
  expect(KVC_INCOMPATIBLE,
         "__metadata__.kvc_identity: expected a file that kvc-opt packed, but "
         "the field is absent");
  replace("__metadata__", "__metadata--");
  expect(KVC_INCOMPATIBLE,
         "__metadata__.format: expected a file that kvc-opt packed, but the "
         "field is absent");
}

static void rejects_wrong_lengths(void) {
  memcpy(bytes, valid, sizeof valid);
  bytes[length] = 0;
  write_file(length + 1);
  expect(KVC_INCOMPATIBLE, "data section: expected 256 bytes (those of library "
                           "fake), but got 257");
  write_file(length - 1);
  expect(KVC_INCOMPATIBLE, "data section: expected 256 bytes (those of library "
                           "fake), but got 255");
  write_file(0);
  expect(KVC_IO, "header length: expected at least 8 bytes of file, but got 0");
  write_file(20);
  expect(KVC_IO, "header length: expected at most 12 bytes (what the file has "
                 "after it), but got 248");
  bytes[7] = 0xff;
  write_file(length);
  expect(KVC_IO,
         "header length: expected at most 504 bytes (what the file has after "
         "it), but got 18374686479671623928");
  memcpy(bytes, valid, sizeof valid);
  bytes[0] -= 1;
  write_file(length);
  expect(KVC_IO, "header length: expected the data section to start at a "
                 "multiple of 64 bytes, but got 255");
}

static void rejects_malformed_headers(void) {
  replace("{\"__meta", "[\"__meta");
  expect(KVC_IO, "header: expected an object at byte 8");
  replace("{\"format\"", "{ format\"");
  expect(KVC_IO, "header: expected a string at byte 26");
  replace("\"format\":", "\"format\" ");
  expect(KVC_IO, "header: expected ':' after a name at byte 34");
  replace("\"kvc\",", "\"kvc\" ");
  expect(KVC_IO, "header: expected ',' or '}' after a member at byte 40");
  replace("\"kvc_abi\":\"4\"", "\"kvc_abi\": 4 ");
  expect(KVC_IO, "header: expected a string at byte 51");
  replace(":[256]", ":[256 ");
  CHECK(open_file() == KVC_IO);
  replace(":[256]", ":[~56]");
  for (long i = 0; i < length; ++i)
    if (bytes[i] == '~') {
      bytes[i] = 0;
      write_file(length);
      char rest[64];
      snprintf(rest, sizeof rest, "header: expected a value at byte %ld", i);
      expect(KVC_IO, rest);
      break;
    }
  replace("}}     ", "}}    }");
  CHECK(open_file() == KVC_IO);
}

/* No prefix of the file and no flipped byte of the header reads outside it; of
 * the prefixes none opens. */
static void survives_damage(void) {
  memcpy(bytes, valid, sizeof valid);
  for (long cut = 0; cut < length; ++cut) {
    write_file(cut);
    CHECK(open_file() != KVC_OK);
  }
  int opened = 0;
  for (long at = 0; at < length - 256; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      memcpy(bytes, valid, sizeof valid);
      bytes[at] ^= (unsigned char)(1 << bit);
      write_file(length);
      opened += open_file() == KVC_OK;
    }
  /* Some flips say the same: blanks, and the entry that we don't read. */
  CHECK(opened > 0 && opened < 8 * (length - 256) / 2);
  /* The data section is not read. */
  memcpy(bytes, valid, sizeof valid);
  bytes[length - 1] ^= 1;
  write_file(length);
  CHECK_OK(open_file());
}

void test_weights_file(const char *folder) {
  snprintf(path, sizeof path, "%s/broken.safetensors", folder);
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, path);
  FILE *file = fopen(path, "rb");
  CHECK(file);
  length = (long)fread(valid, 1, sizeof valid, file);
  fclose(file);
  CHECK_OK(open_file());

  rejects_other_models();
  rejects_wrong_lengths();
  rejects_malformed_headers();
  survives_damage();

  remove(path);
  expect(KVC_IO, "can't open it: No such file or directory");
  CHECK(mkfifo(path, 0600) == 0);
  expect(KVC_IO, "expected a regular file, but got a pipe");
  remove(path);
  snprintf(path, sizeof path, "%s", folder);
  expect(KVC_IO, "expected a regular file, but got a folder");
  memset(path, '/', 1000);
  memcpy(path + 1000, "absent", 7);
  CHECK_EQUAL(open_file(), KVC_IO);
  CHECK(strstr(kvc_last_error(), "/absent: can't open it: No such file"));

  /* The message before can be an argument. */
  CHECK_EQUAL(kvc_model_open(&library, kvc_last_error(), NULL, &(kvc_model *){NULL}),
              KVC_IO);
  CHECK(strstr(kvc_last_error(), ": can't open it: No such file or directory: "
                                 "can't open it: No such file or directory"));
}
