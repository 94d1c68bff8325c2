/* The floating-point mode of the calling thread: the work of a run is done in the mode that C prescribes, so that its
 * results depend on the call alone. Numbers are rounded to nearest, subnormal ones are numbers, and nothing traps.
 * Programs that GCC links with -ffast-math have another mode, which their threads inherit. */
#ifndef DPR_HOST_CPU_FLOAT_MODE_H
#define DPR_HOST_CPU_FLOAT_MODE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { DPR_FLOAT_MODE = 0x1f80, DPR_FLOAT_FLAGS = 0x3f };
static inline uint64_t dpr_float_mode_read(void) {
    return _mm_getcsr();
}
static inline void dpr_float_mode_write(uint64_t mode) {
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
enum { DPR_FLOAT_MODE = 0, DPR_FLOAT_FLAGS = 0 }; /* the flags are in another register */
static inline uint64_t dpr_float_mode_read(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void dpr_float_mode_write(uint64_t mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#else
enum { DPR_FLOAT_MODE = 0, DPR_FLOAT_FLAGS = 0 };
static inline uint64_t dpr_float_mode_read(void) {
    return DPR_FLOAT_MODE;
}
static inline void dpr_float_mode_write(uint64_t mode) {
    (void)mode;
}
#endif

static inline int dpr_float_mode_is_ours(uint64_t mode) {
    return (mode & ~(uint64_t)DPR_FLOAT_FLAGS) == DPR_FLOAT_MODE;
}

/* Sets the mode, and returns the one before, which the caller gives to dpr_float_mode_leave(). */
static inline uint64_t dpr_float_mode_enter(void) {
    const uint64_t before = dpr_float_mode_read();
    if (!dpr_float_mode_is_ours(before))
        dpr_float_mode_write(DPR_FLOAT_MODE);
    return before;
}

static inline void dpr_float_mode_leave(uint64_t before) {
    if (!dpr_float_mode_is_ours(before))
        dpr_float_mode_write(before);
}

#endif
