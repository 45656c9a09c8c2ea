// The command lines of kvc-run and kvc-bench: a directory, and options with their
// values.
#ifndef KVC_RUN_COMMANDLINE_H
#define KVC_RUN_COMMANDLINE_H

#include "Common.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
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

template <typename Options> struct Option {
  const char *name;
  void (*set)(Options &options, const Argument &argument);
  bool takesValue = true;
};
inline constexpr bool noValue = false;

[[noreturn]] inline void print(const char *text) {
  fputs(text, stdout);
  exit(0);
}

// Sets the `directory` of `options` and each option of `table` that is given, which
// are returned by name. Dies of one that is unknown, incomplete or given twice, and
// where there is no directory.
template <typename Options, size_t count>
std::set<std::string> parseCommandLine(int argc, char **argv, const char *program,
                                       const Option<Options> (&table)[count],
                                       Options &options) {
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name.empty() || name[0] != '-') {
      if (name.empty())
        die("expected a directory, but got an empty name");
      if (!options.directory.empty())
        die("expected one directory, but got %s too", argv[i]);
      options.directory = name;
      continue;
    }
    // --name=value or --name value; a value may begin with '-', as a text does.
    size_t equals = name.find('=');
    const char *value = equals == name.npos ? nullptr : argv[i] + equals + 1;
    name = name.substr(0, equals);
    auto option = std::find_if(table, table + count, [&](const auto &known) {
      return name == known.name;
    });
    if (option == table + count)
      die("unknown option %s (see %s --help)", name.c_str(), program);
    if (!given.insert(name).second)
      die("%s: expected it once", name.c_str());
    if (!option->takesValue && value)
      die("%s: expected no value, but got %s", name.c_str(), value);
    if (option->takesValue && !value && !(value = ++i < argc ? argv[i] : nullptr))
      die("%s: expected a value", name.c_str());
    option->set(options, {option->name, value});
  }
  if (options.directory.empty())
    die("expected a directory that kvc-opt wrote (see %s --help)", program);
  return given;
}

#endif
