/* The fake devices' capabilities, kernel attributes and memory. */
#ifndef DPR_TESTS_FAKE_DEVICE_H
#define DPR_TESTS_FAKE_DEVICE_H

#include <stddef.h>

#include "caps.h"

/* The captured machine that they are. */
const dpr_caps *fake_machine(void);

/* Launches from kernels that may be pending on the calling thread's device. */
size_t fake_pending_launches(void);

/* Bytes of memory that are left on the calling thread's device. With the fake's lock held. */
size_t fake_memory_left(void);

/* Dynamic shared memory a block and blocks a cluster that the kernel may be launched with, after the attributes that
 * were set. With the fake's lock held. */
int fake_shared_bytes_allowed(const void *entry);
int fake_cluster_allowed(const void *entry);

#endif
