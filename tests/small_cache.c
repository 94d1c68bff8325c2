/* hwloc, and so the library, sees a cache of 16 MiB, and of the 1024 cores behind it those that the process may use. A
 * measurement reads memory of twice the last-level caches again and again, which takes minutes where they have hundreds
 * of MiB. Tests of the command have the same (tools/support.py), but for two, which have the machine's own caches. */
#define _GNU_SOURCE /* setenv */
#include <stdlib.h>

__attribute__((constructor)) static void have_small_cache(void) {
    (void)setenv("HWLOC_SYNTHETIC", "pack:1 l3:1(size=16777216) core:1024 pu:1", 0);
    (void)setenv("HWLOC_THISSYSTEM", "1", 0);
}
