/* The pieces into which demonstrations cut long segments, and places for what belongs to them, in workspace. */
#ifndef DPR_CORE_SEGMENTS_PIECES_H
#define DPR_CORE_SEGMENTS_PIECES_H

#include "words.h"

/* Elements of a piece. */
enum { DPR_PIECE = 1 << 13 };

DPR_INLINE uint64_t dpr_pieces_of(uint64_t count) {
    return count / DPR_PIECE + (count % DPR_PIECE > 0);
}

/* Places for an array of so many elements: enough for the pieces of all segments that do not overlap and are longer
 * than a piece, because such a segment has fewer than twice as many pieces as its elements would fill. */
DPR_INLINE uint32_t dpr_places_of(uint64_t count) {
    const uint64_t places = 2 * (count / DPR_PIECE + 1), most = UINT64_C(1) << 31;
    return (uint32_t)(places < most ? places : most);
}

#endif
