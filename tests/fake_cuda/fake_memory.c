#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise() */
#include "fake_memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_contexts.h"

enum { MOST_BLOCKS = 1 << 15, PAGE = 4096 };

static fake_block blocks[MOST_BLOCKS];
static int count;

static size_t pages(size_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

static void *take(size_t size, fake_kind kind, int device, CUcontext context) {
    if (count == MOST_BLOCKS || size == 0)
        return NULL;
    const int protection = kind == FAKE_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *memory = mmap(NULL, pages(size), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    blocks[count++] = (fake_block){memory, size, kind, device, context};
    return memory;
}

void *fake_take(size_t size, fake_kind kind, CUcontext context) {
    return take(size, kind, context->device, context);
}

void *fake_take_for_pool(size_t size, int device) {
    return take(size, FAKE_DEVICE, device, NULL);
}

int fake_give(void *memory, int pinned) {
    for (int i = 0; i < count; i++)
        if (blocks[i].start == memory && (blocks[i].kind == FAKE_PINNED) == pinned) {
            (void)munmap(memory, pages(blocks[i].size));
            blocks[i] = blocks[--count];
            return 1;
        }
    return 0;
}

void fake_give_all_of(CUcontext context) {
    for (int i = count - 1; i >= 0; i--)
        if (blocks[i].context == context)
            (void)fake_give(blocks[i].start, blocks[i].kind == FAKE_PINNED);
}

const fake_block *fake_find(const void *memory, size_t size) {
    const uintptr_t at = (uintptr_t)memory;
    for (int i = 0; i < count; i++) {
        const uintptr_t start = (uintptr_t)blocks[i].start;
        if (at >= start && at - start < blocks[i].size && size <= blocks[i].size - (at - start))
            return &blocks[i];
    }
    return NULL;
}

size_t fake_taken(int device) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        if (blocks[i].kind == FAKE_DEVICE && blocks[i].device == device)
            bytes += blocks[i].size;
    return bytes;
}

void fake_fill(void *to, int byte, size_t size) {
    const size_t whole = size / PAGE * PAGE;
    size_t done = 0;
    if (byte == 0 && (uintptr_t)to % PAGE == 0 && whole && madvise(to, whole, MADV_DONTNEED) == 0)
        done = whole;
    memset((unsigned char *)to + done, byte, size - done);
}

int fake_blocks(void) {
    return count;
}

void fake_expose(int visible) {
    for (int i = 0; i < count; i++)
        if (blocks[i].kind == FAKE_DEVICE)
            (void)mprotect(blocks[i].start, pages(blocks[i].size), visible ? PROT_READ | PROT_WRITE : PROT_NONE);
}
