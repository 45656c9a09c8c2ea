// The value of an option of a command line.
#ifndef KVC_RUN_ARGUMENT_H
#define KVC_RUN_ARGUMENT_H

#include "Common.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

// An option with its value, and errors that name both.
struct Argument {
  const char *name, *value;

  [[noreturn]] void reject(const char *expected) const {
    die("%s: expected %s, but got %s", name, expected, value);
  }

  std::string text() const {
    if (!*value)
      die("%s: expected a name, but got nothing", name);
    return value;
  }

  int64_t integer(int64_t least, int64_t most, const char *expected) const {
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < least || number > most)
      reject(expected);
    return number;
  }

  uint64_t seed() const {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (!(*value >= '0' && *value <= '9') || *end || errno)
      reject("an integer from 0 to 2^64 - 1");
    return number;
  }

  double real(bool (*holds)(double), const char *expected) const {
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !holds(number))
      reject(expected);
    return number;
  }

  // Integers separated by commas.
  std::vector<int64_t> list(int64_t least, int64_t most,
                            const char *expected) const {
    std::vector<int64_t> numbers;
    for (const char *at = value;; ++at) {
      char *end;
      errno = 0;
      long long number = strtoll(at, &end, 10);
      if (end == at || (*end && *end != ',') || errno || number < least ||
          number > most)
        reject(expected);
      numbers.push_back(number);
      at = end;
      if (!*at)
        return numbers;
    }
  }
};

#endif
