/* The fake devices' capabilities, kernel attributes and memory. */
#ifndef DPR_TESTS_FAKE_DEVICE_H
#define DPR_TESTS_FAKE_DEVICE_H

#include "caps.h"

/* The captured machine that they are. */
const dpr_caps *fake_machine(void);

/* Of the calling thread. */
int fake_current_device(void);

/* Dynamic shared memory a block and blocks a cluster that the kernel may be launched with, after the attributes that
 * were set. With the fake's lock held. */
int fake_shared_bytes_allowed(const void *entry);
int fake_cluster_allowed(const void *entry);

#endif
