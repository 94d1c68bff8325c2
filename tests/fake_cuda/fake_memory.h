/* Memory of the fake devices. The caller holds the fake's lock. */
#ifndef DPR_TESTS_FAKE_MEMORY_H
#define DPR_TESTS_FAKE_MEMORY_H

#include <stddef.h>

typedef enum { FAKE_PINNED, FAKE_MANAGED, FAKE_DEVICE } fake_kind;

typedef struct fake_block {
    unsigned char *start;
    size_t size;
    fake_kind kind;
    int device;
} fake_block;

/* NULL when there is no memory left. */
void *fake_take(size_t size, fake_kind kind, int device);

/* 1 if `memory` starts a block of the kind, or of managed memory where that is freed alike. */
int fake_give(void *memory, int pinned);

/* The live block that holds the `size` bytes at `memory`, or NULL. */
const fake_block *fake_find(const void *memory, size_t size);

int fake_blocks(void);

/* Lets the host touch device memory, or not. */
void fake_expose(int visible);

#endif
