// Ctrl-C while an answer is written.
#ifndef KVC_RUN_INTERRUPT_H
#define KVC_RUN_INTERRUPT_H

// From now on the first SIGINT is only remembered; a second one kills.
void catchInterrupt();
bool interrupted();

#endif
