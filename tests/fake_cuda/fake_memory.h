/* Memory of the fake devices. The caller holds the fake's lock. */
#ifndef DPR_TESTS_FAKE_MEMORY_H
#define DPR_TESTS_FAKE_MEMORY_H

#include <cuda.h>
#include <stddef.h>

typedef enum { FAKE_PINNED, FAKE_MANAGED, FAKE_DEVICE } fake_kind;

typedef struct fake_block {
    unsigned char *start;
    size_t size;
    fake_kind kind;
    int device;
    CUcontext context; /* NULL: memory of a pool */
} fake_block;

/* Memory of a context, or of a pool. NULL when there is no memory left. */
void *fake_take(size_t size, fake_kind kind, CUcontext context);
void *fake_take_for_pool(size_t size, int device);

/* 1 if `memory` starts a block of the kind, or of managed memory where that is freed alike. */
int fake_give(void *memory, int pinned);

/* The live block that holds the `size` bytes at `memory`, or NULL. */
const fake_block *fake_find(const void *memory, size_t size);

/* Gives back all blocks of a context. */
void fake_give_all_of(CUcontext context);

/* Sets the bytes of a block's part, which is visible. Whole pages of zeros are made when they are touched next, which
 * saves most of the time of a large block that is hardly used. */
void fake_fill(void *to, int byte, size_t size);

int fake_blocks(void);

/* Bytes of device memory that is taken on the device. */
size_t fake_taken(int device);

/* Lets the host touch device memory, or not. */
void fake_expose(int visible);

#endif
