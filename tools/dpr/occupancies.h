/* Theoretical occupancy of every kernel of every GPU strategy on a device. */
#ifndef DPR_TOOLS_OCCUPANCIES_H
#define DPR_TOOLS_OCCUPANCIES_H

#include <cjson/cJSON.h>

#include "caps.h"

/* Text, with kernels of the same occupancy together. */
void occupancies_print(int device, const dpr_gpu_caps *gpu);

/* An array of one object for each strategy, operation and type. */
cJSON *occupancies_json(int device, const dpr_gpu_caps *gpu);

#endif
