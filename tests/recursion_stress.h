/* Recursions of any kind from several threads at once, each result checked. */
#ifndef DPR_TESTS_RECURSION_STRESS_H
#define DPR_TESTS_RECURSION_STRESS_H

#include <dpr.h>

/* Runs recursions in a context of the device for DPR_TEST_SECONDS, or 3 s: from four threads, each in a stream of
 * make_stream(), or in none if that is NULL, with random policies, trees, arenas and limits. The engine is any of
 * `engines`, names between spaces, or, if that is NULL, any that can run there or the library's choice, with nested
 * launches and without. */
void stress_recursions(int device, const char *engines, dpr_stream (*make_stream)(void));

/* DPR_TEST_SECONDS, or 3. */
double stress_seconds(void);

#endif
