/* The kernels of axes.tiles that have files of their own, by the forms of the division (axes.h). */
#ifndef DPR_CORE_AXES_FORMS_H
#define DPR_CORE_AXES_FORMS_H

#include "args.h"

namespace dpr {

/* DPR_AXES_COLUMNS. NULL for elements of 16 bytes. */
const void *dpr_axes_columns(const dpr_key *key);

/* Blocks of that kernel that an SM holds at the same time, at least. */
int dpr_axes_columns_blocks(const dpr_key *key);

/* DPR_AXES_GROUPS, for a plan that reads vectors or elements. */
const void *dpr_axes_groups(const dpr_key *key, bool in_vectors);

} // namespace dpr

#endif
