/* The instances of a strategy's kernel over all operations and types, and code that strategies share. */
#ifndef DPR_CORE_FAMILY_CUH
#define DPR_CORE_FAMILY_CUH

#include <utility>

#include "domain.cuh"
#include "finish.cuh"
#include "launch.h"
#include "means.h"
#include "monoid.cuh"

namespace dpr {

using kernel_entry = void (*)(dpr_kernel_args);
using segment_entry = void (*)(dpr_segment_args);

struct vectors_in_flight {
    template <class M> static constexpr int of = M::vectors;
};

/* A table of Family::entry<M>(), of type `Entry`, for every valid pair and NaN policy; it may be NULL for pairs that
 * the family leaves out. Pairs with the same results share an instance (stand_in()), and so do both policies of types
 * without NaN. */
template <class Family, class Entry = kernel_entry> struct instances {
    static constexpr int size = DPR_OP_COUNT * DPR_DTYPE_COUNT * 2;

    static int index_of(const dpr_key *key) {
        return (dpr_kernel_row(key) * DPR_DTYPE_COUNT + key->f.dtype) * 2 + key->f.nan;
    }

    template <int I> struct pair {
        static constexpr dpr_op op = static_cast<dpr_op>(DPR_FIRST_OP + I / 2 / DPR_DTYPE_COUNT);
        static constexpr dpr_dtype asked = static_cast<dpr_dtype>(DPR_FIRST_DTYPE + I / 2 % DPR_DTYPE_COUNT);
        static constexpr bool valid = domain_has(op, element<asked>::kind) && has_own_kernels(op);
        static constexpr bool has_nan = element<asked>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX);
        static constexpr dpr_nan nan = has_nan && I % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        using functor = monoid<op, stand_in(op, asked, nan == DPR_NAN_IGNORE), nan>;
    };

    template <int I> static constexpr Entry entry() {
        if constexpr (pair<I>::valid) {
            static_assert(needs_no_workspace<typename pair<I>::functor>,
                          "no strategy has workspace for large accumulators");
            return Family::template entry<typename pair<I>::functor>();
        } else {
            return nullptr;
        }
    }

    template <class Number, int I> static constexpr int number() {
        if constexpr (pair<I>::valid)
            return Number::template of<typename pair<I>::functor>;
        else
            return 0;
    }

    template <int... I> static constexpr Entry table(std::integer_sequence<int, I...>, int at) {
        constexpr Entry entries[] = {entry<I>()...};
        return entries[at];
    }

    template <class Number, int... I> static constexpr int numbers(std::integer_sequence<int, I...>, int at) {
        constexpr int numbers_of[] = {number<Number, I>()...};
        return numbers_of[at];
    }

    /* Returns the kernel of a key, by its host address; NULL for a pair without one. */
    static const void *of(const dpr_key *key) {
        return reinterpret_cast<const void *>(table(std::make_integer_sequence<int, size>(), index_of(key)));
    }

    /* Returns Number::of<M> of the key's kernel. */
    template <class Number> static int number_of(const dpr_key *key) {
        return numbers<Number>(std::make_integer_sequence<int, size>(), index_of(key));
    }

    /* Returns how many vectors a thread of the key's kernel has in flight. */
    static unsigned in_flight(const dpr_key *key) { return static_cast<unsigned>(number_of<vectors_in_flight>(key)); }
};

/* The same for segments, and for means (means.h) the entry of divided_sum<M>: kernels of their own, because sums take
 * up to a tenth longer if their kernels ask whether to divide (segments.merge, 2^20 elements of F32, H200). number_of()
 * is that of the sum, which has the same layout. */
template <class Family> struct instances_and_means : instances<Family, segment_entry> {
    struct means {
        template <class M> static constexpr segment_entry entry() {
            if constexpr (M::gives_mean)
                return Family::template entry<divided_sum<M>>();
            else
                return nullptr;
        }
    };
    static const void *of(const dpr_key *key) {
        return dpr_is_divided_sum(key) ? instances<means, segment_entry>::of(key)
                                       : instances<Family, segment_entry>::of(key);
    }
};

/* A table of Family::of<D, N>(), of type Family::instance, for every element type and NaN policy: of kernels that get
 * their operations as arguments. Both policies of types without NaN have the same. */
template <class Family> class type_instances {
    using instance = typename Family::instance;

    template <int I> static constexpr instance instance_of() {
        constexpr dpr_dtype dtype = static_cast<dpr_dtype>(DPR_FIRST_DTYPE + I / 2);
        constexpr bool has_nan = element<dtype>::kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX);
        return Family::template of < dtype, has_nan && I % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE > ();
    }

    template <int... I> static const instance *table(std::integer_sequence<int, I...>, int at) {
        static const instance all[] = {instance_of<I>()...};
        return &all[at];
    }

  public:
    static const instance *of(const dpr_key *key) {
        return table(std::make_integer_sequence<int, 2 * DPR_DTYPE_COUNT>(), 2 * key->f.dtype + key->f.nan);
    }
};

/* Threads of the largest block. An SM of every device has room for one. */
constexpr int most_threads = 1024;

/* probe(), kernel(), limits() and launch() of strategies that run one block of up to `threads` threads on each SM and
 * leave at most `Partials` partial results in scratch memory. */
template <class Family, int Partials> struct block_per_sm {
    static constexpr int threads = most_threads;

    static const char *probe(const dpr_key *, const dpr_caps *caps) {
        return caps->gpu.max_threads_per_block < threads ? "needs blocks of 1024 threads" : nullptr;
    }

    static dpr_kernel kernel(const dpr_key *key) { return {instances<Family>::of(key), threads, 0, 1, 0, nullptr}; }

    static dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
        return dpr_block_per_sm(caps, resident, threads, Partials);
    }

    static dpr_launch spread(const dpr_run *run) {
        return dpr_spread(instances<Family>::of(&run->key), 256, instances<Family>::in_flight(&run->key), run);
    }

    static int launch(const dpr_run *run) {
        const dpr_launch launch = spread(run);
        return dpr_launch_run(&launch, run);
    }
};

} // namespace dpr

#endif
