// What goes on, for whoever waits at a terminal.
#ifndef KVC_RUN_PROGRESS_H
#define KVC_RUN_PROGRESS_H

#include <cstdarg>
#include <cstdio>
#include <unistd.h>

// One line on a terminal that says what goes on until there is output.
class Progress {
public:
  ~Progress() { clear(); }
  __attribute__((format(printf, 2, 3))) void show(const char *format, ...) {
    if (!terminal)
      return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    shown = true;
  }
  void clear() {
    if (shown)
      fputs("\r\033[K", stderr);
    shown = false;
  }

private:
  bool terminal = isatty(STDERR_FILENO);
  bool shown = false;
};

#endif
