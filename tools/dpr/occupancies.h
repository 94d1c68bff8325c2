/* Theoretical occupancy of every kernel of every GPU strategy on a device. */
#ifndef DPR_TOOLS_OCCUPANCIES_H
#define DPR_TOOLS_OCCUPANCIES_H

#include "dpr.h"
#include "report.h"

/* Adds a list "kernels" to the object of a GPU, with a row for each strategy, operation and type, and shows it as a
 * table with kernels of the same occupancy together. */
void occupancies_show(report_out *out, cJSON *gpu, const dpr_machine *machine);

#endif
