/* The promises of kvc/tokenizer.h about arguments and room. Takes the path of a
 * tokenizer made by tiny.py (spm). */
#include "kvc/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(int holds, const char *what) {
  if (holds)
    return;
  printf("failed: %s (last error: %s)\n", what, kvc_tokenizer_last_error());
  exit(1);
}

#define EXPECT(condition) expect(condition, #condition)

int main(int argc, char **argv) {
  kvc_tokenizer *t = NULL;
  kvc_decoder *d = NULL;
  int32_t ids[8] = {-7, -7, -7};
  char text[16] = "unchanged";
  const char *piece;
  int64_t count = -1;
  EXPECT(argc == 2);
  EXPECT(*kvc_tokenizer_last_error() == 0);

  /* Opening. */
  t = (kvc_tokenizer *)text;
  EXPECT(kvc_tokenizer_open(NULL, &t) == KVC_INVALID_ARGUMENT && t == NULL);
  EXPECT(kvc_tokenizer_open(argv[1], NULL) == KVC_INVALID_ARGUMENT);
  t = (kvc_tokenizer *)text;
  EXPECT(kvc_tokenizer_open("/nowhere", &t) == KVC_IO && t == NULL);
  kvc_tokenizer_close(NULL);
  EXPECT(kvc_tokenizer_open(argv[1], &t) == KVC_OK);

  /* Encoding: room. */
  EXPECT(kvc_tokenizer_encode(t, "hello world", 11, 1, 0, ids, 2, &count) ==
         KVC_OUT_OF_CAPACITY);
  EXPECT(count == 3 && ids[0] == -7);
  EXPECT(!strcmp(kvc_tokenizer_last_error(),
                 "kvc_tokenizer_encode: expected room for 3, but got 2"));
  EXPECT(kvc_tokenizer_encode(t, "hello world", 11, 1, 0, NULL, 0, &count) ==
         KVC_OUT_OF_CAPACITY);
  EXPECT(kvc_tokenizer_encode(t, "hello world", 11, 1, 0, ids, 3, &count) ==
         KVC_OK);
  EXPECT(count == 3 && ids[0] == 1 && ids[1] == 273 && ids[2] == 278);
  EXPECT(kvc_tokenizer_encode(t, NULL, 0, 0, 0, NULL, 0, &count) == KVC_OK);
  EXPECT(count == 0);
  EXPECT(kvc_tokenizer_encode(t, "a\0a", 3, 0, 0, ids, 8, &count) == KVC_OK);
  EXPECT(count == 3 && ids[1] == 3);

  /* Encoding: arguments. */
  EXPECT(kvc_tokenizer_encode(NULL, "a", 1, 0, 0, ids, 8, &count) ==
         KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_encode(t, NULL, 1, 0, 0, ids, 8, &count) ==
         KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_encode(t, "a", -1, 0, 0, ids, 8, &count) ==
         KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_encode(t, "a", 1, 0, 0, NULL, 8, &count) ==
         KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_encode(t, "a", 1, 0, 0, ids, 8, NULL) ==
         KVC_INVALID_ARGUMENT);

  /* Decoding. */
  ids[0] = 273;
  EXPECT(kvc_tokenizer_decode(t, ids, 1, 1, text, 4, &count) ==
         KVC_OUT_OF_CAPACITY);
  EXPECT(count == 5 && !strcmp(text, "unchanged"));
  EXPECT(kvc_tokenizer_decode(t, ids, 1, 1, text, 5, &count) == KVC_OK);
  EXPECT(count == 5 && !memcmp(text, "hello", 5));
  EXPECT(kvc_tokenizer_decode(t, NULL, 0, 1, NULL, 0, &count) == KVC_OK);
  EXPECT(count == 0);

  /* A refused token changes nothing; finishing makes the decoder as new. */
  EXPECT(kvc_decoder_create(NULL, 1, &d) == KVC_INVALID_ARGUMENT && d == NULL);
  EXPECT(kvc_decoder_create(t, 1, &d) == KVC_OK);
  EXPECT(kvc_decoder_push(d, 243, &piece, &count) == KVC_OK && count == 0);
  EXPECT(kvc_decoder_push(d, -1, &piece, &count) == KVC_INVALID_ARGUMENT);
  EXPECT(kvc_decoder_push(d, 162, &piece, &count) == KVC_OK && count == 0);
  EXPECT(kvc_decoder_push(d, 156, &piece, &count) == KVC_OK && count == 0);
  EXPECT(kvc_decoder_push(d, 133, &piece, &count) == KVC_OK && count == 4);
  EXPECT(!memcmp(piece, "\xF0\x9F\x99\x82", 4));
  EXPECT(kvc_decoder_push(d, 273, &piece, &count) == KVC_OK && count == 6);
  EXPECT(kvc_decoder_finish(d, &piece, &count) == KVC_OK && count == 0);
  EXPECT(kvc_decoder_push(d, 273, &piece, &count) == KVC_OK && count == 5);
  kvc_decoder_destroy(d);
  kvc_decoder_destroy(NULL);

  /* Words that a NULL tokenizer does not have. */
  EXPECT(kvc_tokenizer_vocab(NULL) == 0 && kvc_tokenizer_bos(NULL) == -1);
  EXPECT(kvc_tokenizer_eos(NULL) == -1 && !kvc_tokenizer_is_end(NULL, 2));
  EXPECT(!*kvc_tokenizer_warnings(NULL) && !*kvc_tokenizer_warnings(t));
  EXPECT(kvc_tokenizer_read_ends(NULL, ids, 8, &count) == KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_read_ends("x", ids, 8, NULL) == KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_read_ends("x", NULL, 8, &count) == KVC_INVALID_ARGUMENT);
  EXPECT(kvc_tokenizer_is_end(t, 2) && !kvc_tokenizer_is_end(t, -1));
  kvc_tokenizer_close(t);
  puts("all hold");
  return 0;
}
