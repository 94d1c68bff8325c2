/* Arguments of the kernels of dp.segments that the host launches. */
#ifndef DPR_DP_SEGMENTS_ARGS_H
#define DPR_DP_SEGMENTS_ARGS_H

#include "nested_args.h"
#include "segments_pieces.h"

/* `nested.run.workspace` has `room` places. A launched kernel gets `nested` alone: its run has the elements, the result
 * and the places of one segment. */
typedef struct dpr_nested_segments_args {
    dpr_nested_args nested;
    dpr_segment_list list;
    uint32_t room;
} dpr_nested_segments_args;

/* Bytes of a place: the value of a piece of a long segment, or the ticket of the grid that reduces it. */
enum { DPR_PLACE_BYTES = 8 };

/* Threads a block of the kernels, and the most blocks of a grid that is launched for a long segment. */
enum { DPR_SEGMENTS_THREADS = 256, DPR_SEGMENTS_MOST_BLOCKS = 1024 };

/* The most elements that a warp reads by itself. A warp of an H100 reads so many of F32 in some 80 us, an estimate; a
 * launch takes 10 to 20 us. */
enum { DPR_LONGEST_OF_WARP = 2 * DPR_PIECE };

#endif
