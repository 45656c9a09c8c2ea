#include "Interrupt.h"

#include <csignal>

static volatile sig_atomic_t seen = 0;

void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { seen = 1; };
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return seen; }
