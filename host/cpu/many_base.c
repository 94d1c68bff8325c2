/* Many results at a time, with the instructions that every processor of the architecture has. */
#define DPR_VECTOR_BYTES 16
#define DPR_MANY dpr_cpu_many_baseline
#include "many_template.h"
