/* Theoretical occupancy of every kernel of every GPU strategy on a device. */
#ifndef DPR_TOOLS_OCCUPANCIES_H
#define DPR_TOOLS_OCCUPANCIES_H

#include "dpr.h"
#include "plan/occupancy.h"
#include "report.h"
#include "strategy.h"

/* What the kernel that runs the key uses on a device, and its occupancy there. 0, or -1 if the runtime does not tell.
 */
int occupancies_of(int device, const dpr_gpu_caps *gpu, const dpr_strategy *strategy, const dpr_key *key,
                   dpr_kernel_use *use, dpr_occupancy *occupancy);

/* Adds a list "kernels" to the object of a GPU, with a row for each strategy, operation and type, and shows it as a
 * table with kernels of the same occupancy together. */
void occupancies_show(report_out *out, cJSON *gpu, const dpr_machine *machine);

#endif
