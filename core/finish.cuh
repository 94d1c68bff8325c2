/* Combining the partial results of blocks, and writing the result. */
#ifndef DPR_CORE_FINISH_CUH
#define DPR_CORE_FINISH_CUH

#include <cuda/atomic>

#include "tile.cuh"

namespace dpr {

/* ---- Tagged words ---- */

/* Stores a value as 64-bit words, each of 32 bits of the value and the tag. Whoever sees the tag in a word also sees
 * its 32 bits of the value, so the stores need no order. */
template <cuda::thread_scope Scope, class X> __device__ void post(uint64_t *to, const X &x, uint32_t tag) {
    const words_of<X> words(x);
#pragma unroll
    for (int i = 0; i < words.size; ++i)
        cuda::atomic_ref<uint64_t, Scope>(to[i]).store(static_cast<uint64_t>(tag) << 32 | words.w[i],
                                                       cuda::memory_order_relaxed);
}

/* ---- The result ---- */

/* Writers: where a result goes. One thread calls write(x). write_result_to() also needs `args`, the run's
 * dpr_kernel_args. This is the writer of a run's only result: it writes to the caller's memory, or, with a tag, to a
 * mailbox. A run whose result does not fit a mailbox has no tag. */
struct result_writer {
    const dpr_kernel_args &args;

    template <class X> static constexpr bool fits_mailbox = sizeof(X) <= DPR_MAIL_WORDS * sizeof(uint32_t);

    template <class X> __device__ void write(const X &x) const {
        if (!fits_mailbox<X> || args.tag == 0) {
            *static_cast<X *>(args.out) = x;
        } else if constexpr (fits_mailbox<X>) {
            using word = cuda::std::conditional_t<sizeof(X) < sizeof(uint32_t), uint32_t, X>;
            word padded = {};
            memcpy(&padded, &x, sizeof x);
            post<cuda::thread_scope_system>(static_cast<uint64_t *>(args.out), padded, args.tag);
        }
    }
};

/* The writer of one result among many. */
struct place_writer {
    const dpr_kernel_args &args;
    void *to;

    template <class X> __device__ void write(const X &x) const { *static_cast<X *>(to) = x; }
};

template <class M> struct partial_row { uint64_t w[DPR_PARTIAL_HEAD + M::words]; };

/* Writes the mean of `count` elements if dpr_init.present is DPR_MEAN_WANTED, and otherwise their partial result. This
 * is a function of its own in machine code, too, because a kernel that has it inline takes up to 0.2 us longer
 * (flat.block, 2^16 elements, H200), also where it writes results. */
template <class M, class Writer>
__device__ __noinline__ void write_wanted(Writer to, uint64_t count, typename M::acc a) {
    const dpr_init &init = to.args.init;
    if constexpr (M::gives_mean) {
        if (init.present == DPR_MEAN_WANTED) {
            to.write(M::mean(a, count));
            return;
        }
    }
    partial_row<M> partial;
    dpr_wanted wanted;
    memcpy(&wanted, init.bytes, sizeof wanted);
    partial.w[0] = wanted.label;
    partial.w[1] = count;
    if constexpr (M::holds_index)
        M::store(a, partial.w + DPR_PARTIAL_HEAD, wanted.first_index);
    else
        M::store(a, partial.w + DPR_PARTIAL_HEAD);
    to.write(partial);
}

/* Writes the result of `count` elements, whose accumulator is `a`: combined with the initial value, if the run has one.
 * Kernels with `Partials` write the partial result or the mean instead, if the run wants that; others with `Means` only
 * the mean. probe() must refuse keys that want what the kernel does not write. Kernels of divided_sum<> always write
 * the mean. */
template <class M, bool Partials, bool Means, class Writer>
__device__ void write_completed(Writer to, uint64_t count, typename M::acc a) {
    const dpr_init &given = to.args.init;
    if constexpr (M::is_mean) {
        to.write(M::mean(a, count));
        return;
    }
    if (given.present) {
        if constexpr (Partials) {
            if (given.present != 1) {
                write_wanted<M>(to, count, a);
                return;
            }
        } else if constexpr (Means && M::gives_mean) {
            if (given.present != 1) {
                to.write(M::mean(a, count));
                return;
            }
        }
        typename M::result init;
        memcpy(&init, given.bytes, sizeof init);
        a = M::has_neutral || count > 0 ? M::merge(a, M::lift(init)) : M::lift(init);
    }
    to.write(M::finish(a));
}

/* Completes the accumulator `a` of the first `count` elements and writes their result, or with `Partials` what the run
 * wants instead. One thread calls it. */
template <class M, bool Partials = true, class Writer>
__device__ void write_result_to(Writer to, uint64_t count, typename M::acc a) {
    if constexpr (M::holds_index)
        a = M::locate(a, reader_of<M>(to.args), count);
    if constexpr (!M::has_neutral) {
        if (count == 1)
            a = M::lift(reader_of<M>(to.args).element(0));
    }
    write_completed<M, Partials, Partials>(to, count, a);
}

/* The same for the one result of a run. */
template <class M, bool Partials = true>
__device__ void write_result(const dpr_kernel_args &args, uint64_t count, typename M::acc a) {
    write_result_to<M, Partials>(result_writer{args}, count, a);
}

/* ---- Partial results ---- */

/* store_pair() and load_pair() write and read two words in one access of 16 bytes. */
__device__ inline void store_pair(uint64_t *to, uint64_t first, uint64_t second) {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.gpu.b128 [%0], both; }" ::"l"(to), "l"(first),
                 "l"(second)
                 : "memory");
}

__device__ inline void load_pair(const uint64_t *from, uint64_t &first, uint64_t &second) {
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                 : "=l"(first), "=l"(second)
                 : "l"(from)
                 : "memory");
}

/* A partial result in scratch memory, which is zero between runs. A value of eight bytes and its tag are written in one
 * store of 16 bytes. Other values are written as tagged words; for 16 bytes these take no more memory than two such
 * stores, and are quicker. */
template <class X> struct tagged_partial {
    static constexpr bool in_pair = sizeof(X) == sizeof(uint64_t);
    static constexpr int words = words_of<X>::size;
    uint64_t w[words] = {};

    static __device__ void post(uint64_t *to, const X &x) {
        if constexpr (in_pair)
            store_pair(to, bits_as<uint64_t>(x), 1);
        else
            dpr::post<cuda::thread_scope_device>(to, x, 1);
    }

    static __device__ void clear(uint64_t *at) {
#pragma unroll
        for (int i = 0; i < words; ++i)
            at[i] = 0;
    }

    /* Reads the words, which may not be complete yet. */
    __device__ void look(uint64_t *at) {
        if constexpr (in_pair) {
            load_pair(at, w[0], w[1]);
        } else {
#pragma unroll
            for (int i = 0; i < words; ++i)
                w[i] = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(at[i]).load(cuda::memory_order_relaxed);
        }
    }

    __device__ bool complete() const {
        if constexpr (in_pair)
            return w[1] != 0;
        bool all = true;
#pragma unroll
        for (int i = 0; i < words; ++i)
            all &= w[i] >> 32 != 0;
        return all;
    }

    __device__ X value() const {
        if constexpr (in_pair) {
            return bits_as<X>(w[0]);
        } else {
            words_of<X> value;
#pragma unroll
            for (int i = 0; i < words; ++i)
                value.w[i] = static_cast<uint32_t>(w[i]);
            return value.value();
        }
    }
};

constexpr int tagged_bytes = 32; /* bytes of the largest value that blocks exchange, with its tags */
constexpr int most_partials = DPR_SCRATCH_BYTES / tagged_bytes;

/* Where partial result number `i` lies. */
template <class M> __device__ uint64_t *partial_of(const dpr_kernel_args &args, unsigned i) {
    constexpr int words = tagged_partial<typename partial<M>::type>::words;
    static_assert(words * sizeof(uint64_t) <= tagged_bytes);
    return static_cast<uint64_t *>(args.scratch) + i * words;
}

/* The partial results that a lane of the warp reads in one round of gather(), 32 apart. */
template <class M> struct gathered {
    using X = partial<M>;
    using partial = tagged_partial<typename X::type>;
    static constexpr int each = 5;

    uint64_t *first; /* where the lane's first partial result lies */
    int left;        /* how many there are from that one on, those of the other lanes included */
    partial in[each];

    __device__ bool exists(int k) const { return k * 32 < left; }

    __device__ uint64_t *at(int k) const { return first + k * 32 * partial::words; }

    /* Waits until the partial results of all lanes have arrived. */
    __device__ void wait() {
        /* This is calculated for all of them before the first is read, so that no read waits for another. */
        bool pending[each], any;
#pragma unroll
        for (int k = 0; k < each; ++k)
            pending[k] = exists(k);
        do {
#pragma unroll
            for (int k = 0; k < each; ++k) {
                if (pending[k])
                    in[k].look(at(k));
            }
            any = false;
#pragma unroll
            for (int k = 0; k < each; ++k) {
                pending[k] = pending[k] && !in[k].complete();
                any |= pending[k];
            }
        } while (__any_sync(~0u, any));
    }

    /* Folds the lane's partial results, which have arrived, and zeroes their words for the next run. */
    __device__ typename X::type take() const {
        typename X::type values[each];
#pragma unroll
        for (int k = 0; k < each; ++k) {
            values[k] = X::identity();
            if (exists(k)) {
                values[k] = in[k].value();
                partial::clear(at(k));
            }
        }
        return reduce_array<M>(values);
    }
};

/* Waits for `n` tagged partial results, folds them with `own` in a fixed order and writes the result. One warp calls
 * it, with `own` in its lane 0. All blocks that post partial results must have started before this warp, and must not
 * wait for others. Set `Many` if there may be several rounds: their results are then added up in an accumulator, so
 * that they are not rounded each time. */
template <class M, bool Many, bool Partials>
__device__ void gather(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type own, unsigned n) {
    using X = partial<M>;
    const unsigned lane = threadIdx.x % 32;
    typename X::type x = lane == 0 ? own : X::identity();
    typename M::acc rounds = M::identity();
    for (unsigned from = 0; from < n; from += 32 * gathered<M>::each) {
        gathered<M> round = {partial_of<M>(args, from + lane), static_cast<int>(n - from) - static_cast<int>(lane)};
        round.wait();
        if constexpr (Many)
            rounds = M::merge(rounds, X::unpack(round.take()));
        else
            x = X::combine(x, round.take());
    }
    if constexpr (Many)
        x = X::combine(x, X::pack(rounds));
    x = reduce_warp<M>(x);
    if (lane == 0)
        write_result<M, Partials>(args, count, X::unpack(x));
}

/* ---- Tickets and rows ---- */

/* Scratch memory begins with the ticket; partial results follow at this offset. */
constexpr int ticket_bytes = 128;

__host__ __device__ inline void *behind_ticket(void *scratch) {
    return static_cast<char *>(scratch) + ticket_bytes;
}

/* The number of partial results of `bytes` bytes that scratch memory has room for. */
constexpr int most_tickets(int bytes) {
    return (DPR_SCRATCH_BYTES - ticket_bytes) / bytes;
}

/* Counts the arrival of one of `blocks` blocks or clusters (acq_rel). One thread of each calls it, after all writes of
 * the block or cluster are visible to that thread. Returns true to the last caller, which then sees the writes of all
 * blocks. */
__device__ inline bool take_ticket(unsigned *ticket, unsigned blocks) {
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrivals(*ticket);
    return arrivals.fetch_add(1, cuda::memory_order_acq_rel) == blocks - 1;
}

/* Partial results of up to 16 bytes lie in scratch memory. Large ones, of up to 1 KiB, lie in workspace, one for each
 * block or cluster, and twice as many for meetings in a grid. They need not be zero between runs. */
constexpr int largest_small = 16, largest_partial = 1024;

template <class M> constexpr bool is_large = sizeof(typename partial<M>::type) > largest_small;

/* Whether strategies without workspace can run the operation, and mailboxes have room for what it writes. */
template <class M>
constexpr bool needs_no_workspace =
    !is_large<M> && result_writer::fits_mailbox<typename M::result> && result_writer::fits_mailbox<partial_row<M>>;

/* Where the partial results of blocks begin: in workspace, or at this place in scratch memory. */
template <class M> __device__ typename partial<M>::type *rows_of(const dpr_kernel_args &args, void *in_scratch) {
    static_assert(sizeof(typename partial<M>::type) <= largest_partial);
    return static_cast<typename partial<M>::type *>(is_large<M> ? args.workspace : in_scratch);
}

/* Leaves a row as the next run needs it. */
template <class M> __device__ void clear_row(typename partial<M>::type *row) {
    if constexpr (!is_large<M>)
        memset(row, 0, sizeof *row);
}

/* Combines large partial results numbered 0 to n-1, of which the calling warp has number `self` in its lane 0 (`x`).
 * The warp that comes last folds them, in an order that depends only on n. Blocks may start in any order. */
template <class M, bool Partials>
__device__ void meet_in_rows(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type x, unsigned self,
                             unsigned n) {
    using X = partial<M>;
    const unsigned lane = threadIdx.x % 32;
    unsigned *ticket = static_cast<unsigned *>(args.scratch);
    typename X::type *rows = rows_of<M>(args, nullptr);
    bool last = false;
    if (lane == 0) {
        rows[self] = x;
        last = take_ticket(ticket, n);
    }
    if (!__any_sync(~0u, last))
        return;
    __syncwarp(); /* so that all lanes see what lane 0 has acquired */
    x = X::identity();
    for (unsigned i = lane; i < n; i += 32)
        x = X::combine(x, rows[i]);
    x = reduce_warp<M>(x);
    if (lane == 0) {
        *ticket = 0;
        write_result<M, Partials>(args, count, X::unpack(x));
    }
}

/* ---- Meetings of blocks ---- */

/* Combines the partial results numbered 0 to `last`, of which the calling block has number `self` in its thread 0
 * (`x`). All blocks but the last post theirs and are done. The last, which has started after all others, gathers them.
 * Large partial results are folded by the block that arrives last, whichever it is. At least the first warp of each
 * block calls it. */
template <class M, bool Many = false, bool Partials = true>
__device__ void meet(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type x, unsigned self,
                     unsigned last) {
    if constexpr (is_large<M>) {
        if (threadIdx.x < 32)
            meet_in_rows<M, Partials>(args, count, x, self, last + 1);
    } else if (self == last) {
        if (threadIdx.x < 32)
            gather<M, Many, Partials>(args, count, x, last);
    } else if (threadIdx.x == 0) {
        tagged_partial<typename partial<M>::type>::post(partial_of<M>(args, self), x);
    }
}

/* Takes the ticket of one of `blocks` blocks in its thread 0, which must have made all of the block's writes itself, or
 * have passed a barrier of the block after them. All threads of the block call it. Returns true in every thread of the
 * block that took the last ticket; all of them then see the writes of all blocks. Between two calls there must be a
 * barrier of the block. */
__device__ inline bool last_to_arrive(unsigned *ticket, unsigned blocks = gridDim.x) {
    __shared__ bool last;
    if (threadIdx.x == 0)
        last = take_ticket(ticket, blocks);
    __syncthreads();
    return last;
}

/* Tells the host that waits at a mailbox that all results are in memory, unless `done` is NULL. All threads of the grid
 * call it after their last write, also those of blocks without work. The last block to come writes the word: fences
 * order it behind what all blocks have written, for whoever sees it. `ticket` is zero before and after, and the kernel
 * uses it for nothing else. */
__device__ inline void tell_end(void *done, uint32_t tag, unsigned *ticket) {
    if (!done)
        return;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    if (gridDim.x > 1) {
        if (!take_ticket(ticket, gridDim.x))
            return;
        *ticket = 0;
    }
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
    post<cuda::thread_scope_system>(static_cast<uint64_t *>(done), uint32_t{0}, tag);
}

/* Who folds the blocks' partial results: one warp, which is quicker for few of them, or all threads of the block. */
enum class folded_by { warp, block };

/* Every block stores the partial result `x` of its thread 0. The block that is last to do so folds them in an order
 * that depends only on the number and size of the blocks, and writes the result. Blocks may start in any order. All
 * threads call it. */
template <class M, folded_by By>
__device__ void finish_by_ticket(const dpr_kernel_args &args, uint64_t count, typename partial<M>::type x) {
    using X = partial<M>;
    constexpr bool by_warp = By == folded_by::warp;
    unsigned *ticket = static_cast<unsigned *>(args.scratch);
    typename X::type *partials = rows_of<M>(args, behind_ticket(args.scratch));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = x;
    if (!last_to_arrive(ticket) || (by_warp && threadIdx.x >= 32))
        return;
    typename M::acc a = M::identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += by_warp ? 32 : blockDim.x) {
        a = M::merge(a, X::unpack(partials[i]));
        clear_row<M>(&partials[i]);
    }
    x = by_warp ? reduce_warp<M>(X::pack(a)) : reduce_block<M>(X::pack(a));
    if (threadIdx.x == 0) {
        *ticket = 0;
        write_result<M>(args, count, X::unpack(x));
    }
}

} // namespace dpr

#endif
