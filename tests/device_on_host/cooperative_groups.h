/* What device code of recursions uses of CUDA, for a C++ compiler: a lane is a thread of the host. So the code's
 * queues, counters and meetings run under the sanitizers, in schedules that jitter() makes random. A grid has either
 * blocks of one lane, or, with DEVICE_ON_HOST_WARP, one block that is a warp. Atomic operations have the memory orders
 * that the code gives them, so ThreadSanitizer finds many of those that are too weak. */
#ifndef DPR_TESTS_DEVICE_ON_HOST_H
#define DPR_TESTS_DEVICE_ON_HOST_H

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#ifdef DEVICE_ON_HOST_WARP
#define __shared__
#else
#define __shared__ __thread
#endif
#define __align__(n) __attribute__((aligned(n)))

struct device_index {
    unsigned x = 0;
};
inline thread_local device_index threadIdx, blockIdx;
#ifdef DEVICE_ON_HOST_WARP
inline device_index blockDim{32}, gridDim{1};
#else
inline device_index blockDim{1}, gridDim{1};
#endif

namespace device_on_host {

inline pthread_barrier_t barrier; /* of all lanes of all blocks */
inline thread_local uint64_t random_state;

/* Lets another thread run, now and then. */
inline void jitter() {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (random_state >> 60 == 0)
        (void)sched_yield();
}

/* ---- Atomic operations and fences ---- */

#if defined(__SANITIZE_THREAD__)
#define DEVICE_ON_HOST_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DEVICE_ON_HOST_TSAN
#endif
#endif

#ifdef DEVICE_ON_HOST_TSAN

extern "C" void __tsan_acquire(void *at);

/* ThreadSanitizer knows no fences. Here a fence that releases makes the thread's next atomic operation that writes a
 * release, and one that acquires acquires from what the thread has read last by an atomic operation. Fences of C++
 * order other atomic operations, too; code that needs this is reported. A write between a fence and the operation
 * behind it counts as released, so a race with it may be missed. */
inline thread_local void *last_read;
inline thread_local bool has_fence;

inline void note_read(void *at) {
    last_read = at;
}
inline void note_write() {
    has_fence = false;
}
inline void fence(bool acquires, bool releases) {
    if (acquires && last_read)
        __tsan_acquire(last_read);
    has_fence = has_fence || releases;
}

#else

constexpr bool has_fence = false;
inline void note_read(void *) {}
inline void note_write() {}
inline void fence(bool, bool) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif

/* A memory order is a type, because the compilers' functions want constants. */
template <int Order> struct memory_order {
    static constexpr int value = Order;
    static constexpr bool acquires = Order == __ATOMIC_ACQUIRE || Order == __ATOMIC_ACQ_REL;
    static constexpr bool releases = Order == __ATOMIC_RELEASE || Order == __ATOMIC_ACQ_REL;
    static constexpr int on_failure = acquires ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
    static constexpr int behind_fence = acquires ? __ATOMIC_ACQ_REL : __ATOMIC_RELEASE;
};

template <class T, int Order> T load(const T *p, memory_order<Order>) {
    jitter();
    const T value = __atomic_load_n(p, Order);
    note_read(const_cast<T *>(p));
    return value;
}
template <class T, int Order> void store(T *p, T value, memory_order<Order>) {
    jitter();
    if (has_fence)
        __atomic_store_n(p, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(p, value, Order);
    note_write();
}
template <class T, class U, int Order> T fetch_add(T *p, U value, memory_order<Order> order) {
    jitter();
    const T before = has_fence ? __atomic_fetch_add(p, static_cast<T>(value), order.behind_fence)
                               : __atomic_fetch_add(p, static_cast<T>(value), Order);
    note_read(p);
    note_write();
    return before;
}
template <class T, int Order> bool compare_exchange(T *p, T &expected, T value, memory_order<Order> order) {
    jitter();
    const bool done =
        has_fence ? __atomic_compare_exchange_n(p, &expected, value, false, order.behind_fence, order.on_failure)
                  : __atomic_compare_exchange_n(p, &expected, value, false, Order, order.on_failure);
    note_read(p);
    if (done)
        note_write();
    return done;
}

constexpr memory_order<__ATOMIC_RELAXED> relaxed;

} // namespace device_on_host

namespace dpr {
namespace recursion {
extern __shared__ __align__(16) char shared[1 << 16]; /* of a block; the test defines it */
} // namespace recursion
} // namespace dpr

/* ---- A block of one lane, or of a warp ---- */

#ifdef DEVICE_ON_HOST_WARP

namespace device_on_host {

/* The words that the lanes give each other, one each. Exchanges take turns with two of these: a fast lane writes its
 * word for the next exchange into the other one, while slow lanes still read this one. */
struct exchange {
    uint64_t words[32];
};
inline exchange exchanges[2];
inline thread_local unsigned turn;

inline const uint64_t *exchange_words(uint64_t word) {
    uint64_t *const words = exchanges[turn++ % 2].words;
    words[threadIdx.x] = word;
    (void)pthread_barrier_wait(&barrier);
    return words;
}

} // namespace device_on_host

inline unsigned __ballot_sync(unsigned, bool p) {
    const uint64_t *const words = device_on_host::exchange_words(p);
    unsigned ballot = 0;
    for (unsigned i = 0; i < 32; ++i)
        ballot |= static_cast<unsigned>(words[i]) << i;
    return ballot;
}
template <class T> T __shfl_sync(unsigned, T value, int from) {
    static_assert(sizeof value <= sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    std::memcpy(&value, &device_on_host::exchange_words(word)[from % 32], sizeof value);
    return value;
}
inline unsigned __popc(unsigned ballot) {
    return static_cast<unsigned>(__builtin_popcount(ballot));
}
inline void __syncthreads() {
    (void)pthread_barrier_wait(&device_on_host::barrier);
}
inline void __syncwarp() {
    __syncthreads();
}

#else

inline unsigned __ballot_sync(unsigned, bool p) {
    return p ? ~0u : 0;
}
template <class T> T __shfl_sync(unsigned, T value, int) {
    return value;
}
inline unsigned __popc(unsigned ballot) {
    return ballot != 0;
}
inline void __syncthreads() {}
inline void __syncwarp() {}

#endif

inline bool __any_sync(unsigned all, bool p) {
    return __ballot_sync(all, p) != 0;
}
inline int __syncthreads_or(int p) {
    return __any_sync(~0u, p != 0);
}
inline void __threadfence() {
    device_on_host::fence(true, true);
}
inline void __threadfence_system() {
    device_on_host::fence(true, true);
}
inline size_t __cvta_generic_to_shared(const void *p) {
    return static_cast<size_t>(static_cast<const char *>(p) - dpr::recursion::shared);
}
inline void *__cvta_shared_to_generic(size_t at) {
    return dpr::recursion::shared + at;
}

template <class T, class U> T atomicAdd(T *p, U value) {
    return device_on_host::fetch_add(p, value, device_on_host::relaxed);
}
template <class T, class U> T atomicCAS(T *p, int from, U value) {
    T expected = static_cast<T>(from);
    (void)device_on_host::compare_exchange(p, expected, static_cast<T>(value), device_on_host::relaxed);
    return expected;
}
template <class T> T atomicMax(T *p, T value) {
    T before = device_on_host::load(p, device_on_host::relaxed);
    while (before < value && !device_on_host::compare_exchange(p, before, value, device_on_host::relaxed))
        ;
    return before;
}

namespace cooperative_groups {

struct grid_group {
    void sync() const { (void)pthread_barrier_wait(&device_on_host::barrier); }
};
inline grid_group this_grid() {
    return {};
}
struct coalesced_group {
    unsigned thread_rank() const { return 0; }
    unsigned size() const { return 1; }
    template <class T> T shfl(T value, unsigned) const { return value; }
};
inline coalesced_group coalesced_threads() {
    return {};
}
template <unsigned> coalesced_group tiled_partition(const coalesced_group &group) {
    return group;
}
inline coalesced_group this_thread_block() {
    return {};
}
template <class T> struct plus {};
template <class T> coalesced_group labeled_partition(const coalesced_group &group, T) {
    return group;
}
template <class T> T exclusive_scan(const coalesced_group &, T) {
    return 0;
}
template <class T, class Two> T reduce(const coalesced_group &, T value, Two) {
    return value;
}

} // namespace cooperative_groups

#endif
