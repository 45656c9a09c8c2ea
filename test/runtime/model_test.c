/* Opening models: what fits, and each thing that doesn't. */
#include "check.h"
#include "fake_model.h"

static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};

static void describes_itself(const char *folder) {
  kvc_library library;
  char path[4096];
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_model_info info;
  kvc_model_info_init(&info);
  CHECK_OK(kvc_model_query(model, &info));
  CHECK(strcmp(info.name, "fake") == 0 && strcmp(info.cpu_level, "any") == 0);
  CHECK(strcmp(info.layout, "contiguous") == 0);
  CHECK_EQUAL(info.vocab, fake_vocab);
  CHECK_EQUAL(info.capacity, 160);
  CHECK_EQUAL(info.arithmetic, KVC_TYPE_F64);
  CHECK_EQUAL(info.cache_bytes_per_position, 16);
  CHECK_EQUAL(info.weights_bytes, 256);
  CHECK_EQUAL(info.exact, 1);
  CHECK(memcmp(info.identity, library.identity, sizeof info.identity) == 0);

  /* An application built against a longer struct gets what the library knows
   * of, as long as it asks for nothing else. */
  struct {
    kvc_model_info known;
    uint8_t newer[16];
  } longer;
  memset(&longer, 0, sizeof longer);
  longer.known.size = sizeof longer;
  CHECK_OK(kvc_model_query(model, &longer.known));
  CHECK_EQUAL(longer.known.size, sizeof longer);
  CHECK_EQUAL(longer.known.cache_bytes_per_position, 16);
  longer.newer[15] = 7;
  CHECK_FAILS(kvc_model_query(model, &longer.known), KVC_INVALID_ARGUMENT,
              "expected kvc_model_info to be zero behind the 192 bytes that "
              "this version knows, but byte 207 is 7");
#define CHECK_SIZE(bytes)                                                      \
  info.size = bytes;                                                           \
  CHECK_FAILS(kvc_model_query(model, &info), KVC_INVALID_ARGUMENT,             \
              "expected kvc_model_info.size to be set by its init function (a " \
              "multiple of 8 in 176..1024), but got " #bytes)
  CHECK_SIZE(100000);
  CHECK_SIZE(0);
  CHECK_SIZE(168);
  CHECK_SIZE(180); /* in the middle of a field */
  kvc_model_close(model);
  kvc_model_close(NULL);

  /* A cache that forgets says so. */
  library.exact = 0;
  snprintf(path, sizeof path, "%s/fake.safetensors", folder);
  CHECK_OK(kvc_model_open(&library, path, NULL, &model));
  kvc_model_info_init(&info);
  CHECK_OK(kvc_model_query(model, &info));
  CHECK_EQUAL(info.exact, 0);
  kvc_model_close(model);
}

static void rejects_arguments(void) {
  kvc_library library;
  kvc_model *model = NULL;
  fake_library_fill(&library, &shape);
  CHECK_FAILS(kvc_model_open(NULL, "w", NULL, &model), KVC_INVALID_ARGUMENT,
              "expected library to be given, but got NULL");
  CHECK_FAILS(kvc_model_open(&library, NULL, NULL, &model), KVC_INVALID_ARGUMENT,
              "expected weights_path to be given, but got NULL");
  CHECK_FAILS(kvc_model_open(&library, "", NULL, &model), KVC_INVALID_ARGUMENT,
              "expected weights_path to name a file, but got \"\"");
  CHECK_FAILS(kvc_model_open(&library, "w", NULL, NULL), KVC_INVALID_ARGUMENT,
              "expected out_model to be given, but got NULL");
  kvc_model_info info;
  kvc_model_info_init(&info);
  CHECK_FAILS(kvc_model_query(NULL, &info), KVC_INVALID_ARGUMENT,
              "expected model to be given, but got NULL");
  CHECK_FAILS(kvc_model_query((const kvc_model *)(const void *)&library, &info),
              KVC_INVALID_ARGUMENT,
              "expected model to be an open model, but got another thing");
  CHECK(model == NULL);
}

static void rejects_libraries(void) {
  kvc_library library;
  kvc_model *model = NULL;
#define CHECK_LIBRARY(change, message)                                         \
  fake_library_fill(&library, &shape);                                         \
  change;                                                                      \
  CHECK_FAILS(kvc_model_open(&library, "absent", NULL, &model), KVC_INCOMPATIBLE,    \
              message)
  CHECK_LIBRARY(library.abi_version = 9,
                "expected a library of ABI version 4 (that of runtime 0.1.0), "
                "but got version 9");
  CHECK_LIBRARY(library.struct_size = 40,
                "expected kvc_library to have 192 bytes (as in runtime 0.1.0), "
                "but the library's has 40");
  CHECK_LIBRARY(library.vocab = 0, "library fake: expected vocab to be at "
                                   "least 1, but got 0");
  CHECK_LIBRARY(library.vocab = (int64_t)1 << 31,
                "library fake: expected vocab to fit 32 bits, but got "
                "2147483648");
  CHECK_LIBRARY(library.width = 0, "library fake: expected width to be at "
                                   "least 1, but got 0");
  CHECK_LIBRARY(library.heads = -3, "library fake: expected heads to be at "
                                    "least 1, but got -3");
  CHECK_LIBRARY(library.max_tokens = 0, "library fake: expected max_tokens to "
                                        "be at least 1, but got 0");
  CHECK_LIBRARY(library.kernels_count = 0,
                "library fake: expected kernels_count to be at least 1, but "
                "got 0");
  CHECK_LIBRARY(library.arithmetic = KVC_TYPE_F16,
                "library fake: expected arithmetic to be f64 or f32, but got "
                "element type 2");
  CHECK_LIBRARY(library.groups_count = 0,
                "library fake: expected groups_count to be at least 1, but got 0");
  CHECK_LIBRARY(library.exact = 2,
                "library fake: expected exact to be 0 or 1, but got 2");
#define CHECK_GROUP(change, message)                                           \
  fake_library_fill(&library, &shape);                                         \
  group = fake_group(&library, 0);                                             \
  section = (kvc_section *)(uintptr_t)&group->sections[1];                     \
  change;                                                                      \
  CHECK_FAILS(kvc_model_open(&library, "absent", NULL, &model),                \
              KVC_INCOMPATIBLE, "library fake: group 0: expected " message)
  kvc_group *group;
  kvc_section *section;
  CHECK_GROUP(group->kv_heads = 0, "kv_heads to be at least 1, but got 0");
  CHECK_GROUP(group->window = -1, "window to be at least 0, but got -1");
  CHECK_GROUP(group->type = (kvc_type)4,
              "type to be f64, f32, f16 or bf16, but got element type 4");
  CHECK_GROUP(group->positions_per_page = 159,
              "pages_per_sequence (1) pages of positions_per_page (159) to hold "
              "160 positions");
  CHECK_GROUP(group->window = 161,
              "pages_per_sequence (1) pages of positions_per_page (160) to hold "
              "161 positions");
  CHECK_GROUP(group->positions_per_page = INT64_MAX,
              "pages_per_sequence (1) pages of positions_per_page "
              "(9223372036854775807) to hold 160 positions");
#define TO_HOLD(bytes, rows, width, offset)                                    \
  "page_bytes (" #bytes ") to hold section 1, " #rows " rows of "              \
  "positions_per_page (160) positions of 1 times " #width " bytes at " #offset \
  ", behind the one before"
  CHECK_GROUP(group->page_bytes = 2559, TO_HOLD(2559, 1, 8, 1280));
  CHECK_GROUP(section->offset = 1279, TO_HOLD(2560, 1, 8, 1279));
  CHECK_GROUP(section->bytes = 0, TO_HOLD(2560, 1, 0, 1280));
  CHECK_GROUP(section->lanes = 7, TO_HOLD(2560, 1, 8, 1280));
  CHECK_GROUP(section->rows = INT64_MAX,
              TO_HOLD(2560, 9223372036854775807, 8, 1280));
  /* The first level that runs is taken; none is an error. */
  kvc_kernels levels[] = {{"future", "sse2 warp9", NULL},
                          {"near", "sse sse2 holodeck", NULL}};
  CHECK_LIBRARY((library.kernels = levels, library.kernels_count = 2),
                "expected a machine with the CPU feature holodeck, which the "
                "lowest level of library fake (near) needs, but this machine "
                "lacks it");
  CHECK(model == NULL);
}

void test_model(const char *folder) {
  CHECK(strcmp(kvc_last_error(), "") == 0);
  CHECK(strcmp(kvc_version(), "0.1.0") == 0);
  CHECK(strcmp(kvc_status_string(KVC_OUT_OF_CAPACITY), "out of capacity") == 0);
  CHECK(strcmp(kvc_status_string((kvc_status)99), "unknown status") == 0);
  describes_itself(folder);
  rejects_arguments();
  rejects_libraries();
}
