/* What the tests of the runtime share: checks that end the program. */
#ifndef KVC_TEST_CHECK_H
#define KVC_TEST_CHECK_H

#include <kvc/kvc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#define CHECK_EQUAL(actual, expected)                                          \
  do {                                                                         \
    long long actualValue = (long long)(actual);                               \
    long long expectedValue = (long long)(expected);                           \
    if (actualValue != expectedValue) {                                        \
      fprintf(stderr, "%s:%d: %s: expected %lld, but got %lld\n", __FILE__,    \
              __LINE__, #actual, expectedValue, actualValue);                  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#define CHECK_OK(call)                                                         \
  do {                                                                         \
    kvc_status actualStatus = (call);                                          \
    if (actualStatus != KVC_OK) {                                              \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,        \
              kvc_status_string(actualStatus), kvc_last_error());              \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The call must fail with this status and exactly this message. */
#define CHECK_FAILS(call, expectedStatus, expectedMessage)                     \
  do {                                                                         \
    kvc_status actualStatus = (call);                                          \
    if (actualStatus != (expectedStatus) ||                                    \
        strcmp(kvc_last_error(), (expectedMessage)) != 0) {                    \
      fprintf(stderr, "%s:%d: %s:\n  expected: %s: %s\n  got:      %s: %s\n",  \
              __FILE__, __LINE__, #call, kvc_status_string(expectedStatus),    \
              (expectedMessage), kvc_status_string(actualStatus),              \
              kvc_last_error());                                               \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* A group of checks. `folder` exists and is the test's own. */
typedef void (*test_function)(const char *folder);

void test_model(const char *folder);
void test_weights_file(const char *folder);
void test_faults(const char *folder);
void test_property(const char *folder);
void test_state(const char *folder);
void test_refusals(const char *folder);
void test_turns(const char *folder);
void test_sequences(const char *folder);
void test_allocator(const char *folder);
void test_session(const char *folder);
void test_forward(const char *folder);
void test_generate(const char *folder);
void test_sampling(const char *folder);
void test_distributions(const char *folder);

#endif
