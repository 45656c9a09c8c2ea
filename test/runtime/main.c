/* kvc-runtime-test GROUP FOLDER: runs one group of checks. */
#include "check.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    test_function run;
  } groups[] = {
      {"model", test_model},       {"weights-file", test_weights_file},
      {"session", test_session},   {"forward", test_forward},
      {"generate", test_generate}, {"sampling", test_sampling},
      {"faults", test_faults},     {"distributions", test_distributions},
      {"allocator", test_allocator}, {"turns", test_turns},
      {"state", test_state},         {"refusals", test_refusals},
      {"property", test_property}, {"sequences", test_sequences},
  };
  for (size_t i = 0; argc == 3 && i < sizeof groups / sizeof *groups; ++i)
    if (strcmp(groups[i].name, argv[1]) == 0) {
      groups[i].run(argv[2]);
      printf("%s: passed\n", argv[1]);
      return 0;
    }
  fprintf(stderr, "expected a group of checks and a folder\n");
  return 1;
}
