#ifndef KVC_TEST_LIB_RESTARTPOSITIONS_H
#define KVC_TEST_LIB_RESTARTPOSITIONS_H

namespace kvc::test {
void registerRestartPositions();
} // namespace kvc::test

#endif // KVC_TEST_LIB_RESTARTPOSITIONS_H
