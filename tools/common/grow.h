/* Arrays that items are appended to. */
#ifndef DPR_TOOLS_GROW_H
#define DPR_TOOLS_GROW_H

#include <stdlib.h>

/* Room for one more item behind `count` of them, each of `size` bytes, which the caller counts afterwards: realloc()
 * whenever `count` is a power of two. NULL when out of memory; then the items stay where they are. */
static inline void *grow(void *items, size_t count, size_t size) {
    if (count & (count - 1))
        return items;
    return realloc(items, (count ? 2 * count : 1) * size);
}

#endif
