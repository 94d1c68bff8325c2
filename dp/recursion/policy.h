/* What a policy of dpr_recursion.cuh is: the types that its functions take, and the checks of a policy. */
#ifndef DPR_DP_POLICY_H
#define DPR_DP_POLICY_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dpr.h>

#ifdef __CUDACC__
#define DPR_BOTH __host__ __device__
#else
#define DPR_BOTH
#endif

/* Precedes the functions of a policy. */
#define DPR_POLICY DPR_BOTH static inline

namespace dpr {

/* What tasks share if the policy has no type `data`. */
struct no_data {};

namespace recursion {
template <class P, class = void> constexpr bool has_task = false;
template <class P> constexpr bool has_task<P, std::void_t<typename P::task>> = true;
template <class P, class = void> constexpr bool has_result = false;
template <class P> constexpr bool has_result<P, std::void_t<typename P::result>> = true;
} // namespace recursion

/* What is said first, wherever the compiler misses one of them first. */
#define DPR_NEEDS_TASK_(P)                                                                                             \
    static_assert(dpr::recursion::has_task<P>, "the policy lacks a type 'task': what is to be solved")
#define DPR_NEEDS_RESULT_(P)                                                                                           \
    static_assert(dpr::recursion::has_result<P>, "the policy lacks a type 'result': what solving a task gives")

/* Where divide() writes children: children[i] is a P::task. They need not lie next to each other. */
template <class P> class children {
  public:
    /* The first is at `first`, another every `stride` bytes; those from `room` on all share place `room`. */
    DPR_BOTH children(void *first, unsigned stride, unsigned room)
        : first_(static_cast<char *>(first)), stride_(stride), room_(room) {}
    DPR_BOTH auto &operator[](int i) const {
        DPR_NEEDS_TASK_(P);
        const unsigned place = static_cast<unsigned>(i) < room_ ? static_cast<unsigned>(i) : room_;
        return *reinterpret_cast<typename P::task *>(first_ + static_cast<size_t>(place) * stride_);
    }

  private:
    char *first_;
    unsigned stride_, room_;
};

/* Where combine() reads results: results[i] is the P::result of child i. */
template <class P> class results {
  public:
    DPR_BOTH results(const void *first, unsigned stride) : first_(static_cast<const char *>(first)), stride_(stride) {}
    DPR_BOTH const auto &operator[](int i) const {
        DPR_NEEDS_RESULT_(P);
        return *reinterpret_cast<const typename P::result *>(first_ + static_cast<size_t>(i) * stride_);
    }

  private:
    const char *first_;
    unsigned stride_;
};

/* The threads that work on one task together: a block of the GPU, or a single thread. All of them call the functions of
 * the policy that take a team, with the same arguments, so a condition around sync(), all() and count() must hold for
 * all of them or for none. */
class team {
  public:
    DPR_BOTH team(unsigned rank, unsigned size, void *memory) : rank_(rank), size_(size), memory_(memory) {}

    /* This thread's number, from 0, and how many threads there are. */
    DPR_BOTH unsigned rank() const { return rank_; }
    DPR_BOTH unsigned size() const { return size_; }

    /* The policy's team_bytes of memory, which the team shares while it works on the task; aligned to 16 bytes. */
    template <class T> DPR_BOTH T *memory() const { return static_cast<T *>(memory_); }

    /* Waits for all threads. Each then sees what the others have written. */
    DPR_BOTH void sync() const { (void)count(false); }

    /* Waits for all threads; for how many of them the condition holds. */
    DPR_BOTH unsigned count(bool condition) const {
#ifdef __CUDA_ARCH__
        if (size_ > 1)
            return static_cast<unsigned>(__syncthreads_count(condition));
#endif
        return condition;
    }
    DPR_BOTH bool all(bool condition) const {
        return count(condition) == size_;
    }

  private:
    unsigned rank_, size_;
    void *memory_;
};

namespace recursion {

/* ---- The parts of a policy ---- */

template <class P, class = void> struct data_type { using type = no_data; };
template <class P> struct data_type<P, std::void_t<typename P::data>> { using type = typename P::data; };
template <class P> using data_of = typename data_type<P>::type;
template <class P> constexpr bool has_no_data = std::is_same_v<data_of<P>, no_data>;

/* What name_run() takes a pointer to. */
template <class P> using data_given = std::conditional_t<has_no_data<P>, void, data_of<P>>;

/* How many children a task has, in a lane's stack. */
template <class P> using header_word = std::conditional_t<P::most_children <= 254, uint8_t, uint32_t>;

/* Memory for a task, and for its result when that is known. Numbers of children may lie behind slots. */
template <class P>
constexpr size_t slot_align = std::max({alignof(typename P::task), alignof(typename P::result),
                                        alignof(header_word<P>)});
template <class P> union alignas(slot_align<P>) slot {
    typename P::task task;
    typename P::result result;
};

/* ---- Checks ---- */

/* Whether P::divide() can be called, where More is nothing or a team; likewise the others. */
template <class P, class... More>
using divided = decltype(P::divide(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>(),
                                   std::declval<children<P>>(), std::declval<const More &>()...));
template <class P, class... More>
using based = decltype(P::base(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>(),
                               std::declval<const More &>()...));
template <class P, class... More>
using combined = decltype(P::combine(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>(),
                                     std::declval<results<P>>(), 0, std::declval<const More &>()...));

template <class P>
using serially_solved =
    decltype(P::serial(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>()));

template <class Result, template <class...> class Call, class Void, class... Arguments> constexpr bool gives = false;
template <class Result, template <class...> class Call, class... Arguments>
constexpr bool gives<Result, Call, std::void_t<Call<Arguments...>>, Arguments...> =
    std::is_convertible_v<Call<Arguments...>, Result>;

/* The type of a number of children: an integer no wider than an int. A wider number could become a valid one when it is
 * converted; an unsigned one becomes negative at worst, which is an error. */
template <class T> constexpr bool is_count = std::is_integral_v<T> && sizeof(T) <= sizeof(int);
template <class P, class Void, class... More> constexpr bool gives_count = false;
template <class P, class... More>
constexpr bool gives_count<P, std::void_t<divided<P, More...>>, More...> = is_count<divided<P, More...>>;

template <class P> constexpr bool team_divides = gives_count<P, void, team>;
template <class P> constexpr bool team_bases = gives<typename P::result, based, void, P, team>;
template <class P> constexpr bool team_combines = gives<typename P::result, combined, void, P, team>;
template <class P> constexpr bool has_divide = team_divides<P> || gives_count<P, void>;
template <class P> constexpr bool has_base = team_bases<P> || gives<typename P::result, based, void, P>;
template <class P> constexpr bool has_combine = team_combines<P> || gives<typename P::result, combined, void, P>;

/* The operation that folds the results of base cases, if there is one. */
template <class P, class = void> constexpr dpr_op fold_of = DPR_OP_NONE;
template <class P> constexpr dpr_op fold_of<P, std::void_t<decltype(P::fold)>> = static_cast<dpr_op>(P::fold);
template <class P> constexpr bool folds = fold_of<P> != DPR_OP_NONE;

/* Whether the policy has members of these names, whatever they are and however many: a name that two bases have is
 * ambiguous. A final class cannot be a base, so its members are not found. */
template <class P, class Namesake, bool = !std::is_final_v<P>> struct with_namesake : P, Namesake {};
template <class P, class Namesake> struct with_namesake<P, Namesake, false> : Namesake {};
#define DPR_CHECK_NAME_(NAME)                                                                                          \
    struct other_##NAME {                                                                                              \
        int NAME;                                                                                                      \
    };                                                                                                                 \
    template <class P, class = void> constexpr bool names_##NAME = true;                                               \
    template <class P>                                                                                                 \
    constexpr bool names_##NAME<P, std::void_t<decltype(&with_namesake<P, other_##NAME>::NAME)>> = false;
DPR_CHECK_NAME_(combine)
DPR_CHECK_NAME_(part)
DPR_CHECK_NAME_(cost)
DPR_CHECK_NAME_(serial)
#undef DPR_CHECK_NAME_

/* What a divided task adds to the fold. */
template <class P>
using part_taken = decltype(P::part(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>()));
template <class P> constexpr bool has_part = folds<P> &&gives<typename P::result, part_taken, void, P>;

/* Whether a block, rather than a lane, works on a task. */
template <class P> constexpr bool has_teams = team_divides<P> || team_bases<P> || team_combines<P>;

/* The policy's estimate of a task. A negative one would become a very large one. */
template <class P>
using estimated = decltype(P::cost(std::declval<const data_of<P> &>(), std::declval<const typename P::task &>()));
template <class P, class = void> constexpr bool has_cost = false;
template <class P>
constexpr bool has_cost<P, std::void_t<estimated<P>>> =
    std::is_integral_v<estimated<P>> &&std::is_unsigned_v<estimated<P>> && !std::is_same_v<estimated<P>, bool>;

/* Solving a task of at most some cost at once. */
template <class P> constexpr bool has_serial = has_cost<P> &&gives<typename P::result, serially_solved, void, P>;
template <class P, class = void> constexpr bool has_negative_cutoff = false;
template <class P> constexpr bool has_negative_cutoff<P, std::enable_if_t<(P::cutoff < 0)>> = true;
template <class P, class = void> constexpr uint64_t cutoff_of = 0;
template <class P>
constexpr uint64_t cutoff_of<P, std::void_t<decltype(P::cutoff)>> = P::cutoff == DPR_NO_CUTOFF ? 0 : P::cutoff;

/* Whether the host reaches what the policy's data point to. */
template <class P, class = void> constexpr bool host_data = has_no_data<P>;
template <class P> constexpr bool host_data<P, std::void_t<decltype(P::host_data)>> = P::host_data;

/* Bytes of memory that a team shares. */
template <class P, class = void> constexpr size_t team_bytes = 0;
template <class P> constexpr size_t team_bytes<P, std::void_t<decltype(P::team_bytes)>> = P::team_bytes;

/* The most bytes that a policy's data may have. Kernels take the data as a parameter. CUDA allows a kernel 4096 bytes
 * of parameters on every device, of which the library's own take some hundreds. */
constexpr size_t most_data_bytes = 3072;

/* The most bytes of a task, and of a result. On the CPU a thread has several on its stack, which has 8 MiB as a rule.
 */
constexpr size_t most_slot_bytes = 1 << 20;

/* has_NAME: whether the policy has a constant of this name. knows_NAME: whether the compiler knows it as an integer or
 * an enumerator; true if there is none. */
template <class T> constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
template <uint64_t> struct known { using type = void; };
#define DPR_CHECK_CONSTANT_(NAME)                                                                                      \
    template <class P, class = void> constexpr bool has_##NAME = false;                                                \
    template <class P> constexpr bool has_##NAME<P, std::void_t<decltype(P::NAME)>> = true;                            \
    template <class P, class = void> constexpr bool knows_##NAME = !has_##NAME<P>;                                     \
    template <class P>                                                                                                 \
    constexpr bool knows_##NAME<P, typename known<static_cast<uint64_t>(P::NAME)>::type> =                             \
        is_number<decltype(P::NAME)>;
DPR_CHECK_CONSTANT_(most_children)
DPR_CHECK_CONSTANT_(cutoff)
DPR_CHECK_CONSTANT_(fold)
DPR_CHECK_CONSTANT_(host_data)
DPR_CHECK_CONSTANT_(team_bytes)
#undef DPR_CHECK_CONSTANT_
template <class P>
constexpr bool knows_constants = has_most_children<P> &&knows_most_children<P> &&knows_cutoff<P> &&knows_fold<P>
    &&knows_host_data<P> &&knows_team_bytes<P>;

template <class T>
constexpr bool is_plain =
    std::is_trivially_copyable_v<T> &&std::is_trivially_default_constructible_v<T> &&std::is_copy_assignable_v<T>;

template <class Result> constexpr bool can_fold(dpr_op op) {
    const bool is_word = std::is_integral_v<Result> && (sizeof(Result) == 4 || sizeof(Result) == 8);
    return is_word
           && (op == DPR_SUM || op == DPR_PROD || op == DPR_MIN || op == DPR_MAX || op == DPR_BAND || op == DPR_BOR
               || op == DPR_BXOR);
}

/* Does not compile if something is missing from the policy, or wrong; the message says what. */
template <class P> constexpr bool check() {
    DPR_NEEDS_TASK_(P);
    DPR_NEEDS_RESULT_(P);
    static_assert(has_most_children<P>, "the policy lacks a constant 'most_children': 'static constexpr int', from 1");
    static_assert(knows_most_children<P>, "'most_children' must be an integer constant: 'static constexpr int'");
    static_assert(knows_cutoff<P>, "'cutoff' must be an integer constant: 'static constexpr uint64_t'");
    static_assert(knows_fold<P>, "'fold' must be a constant of type dpr_op: 'static constexpr dpr_op'");
    static_assert(knows_host_data<P>, "'host_data' must be an integer constant: 'static constexpr bool'");
    static_assert(knows_team_bytes<P>, "'team_bytes' must be an integer constant: 'static constexpr size_t'");
    if constexpr (has_task<P> && has_result<P> && knows_constants<P>) {
        static_assert(
            is_plain<typename P::task>,
            "the policy's 'task' must be plain data that can be assigned, without constructors or initial values "
            "of members: put an array into a struct");
        static_assert(is_plain<typename P::result>,
                      "the policy's 'result' must be plain data that can be assigned, without constructors or initial "
                      "values of members: put an array into a struct");
        static_assert(std::is_trivially_copyable_v<data_of<P>>, "the policy's 'data' must be plain data: it is copied");
        static_assert(alignof(data_of<P>) <= 16, "the policy's 'data' may be aligned to 16 bytes at most");
        static_assert(sizeof(data_of<P>) <= most_data_bytes, "the policy's 'data' may have 3072 bytes at most, because "
                                                             "kernels take them as a parameter: let it have pointers");
        static_assert(alignof(slot<P>) <= 16, "the policy's 'task' and 'result' may be aligned to 16 bytes at most");
        static_assert(sizeof(slot<P>) <= most_slot_bytes, "the policy's 'task' and 'result' may have 1 MiB at most, "
                                                          "because threads have them on their stacks");
        static_assert(P::most_children >= 1 && P::most_children <= INT32_MAX,
                      "'most_children' must be from 1 to 2147483647");
        constexpr bool divides = gives<int, divided, void, P> || gives<int, divided, void, P, team>;
        static_assert(divides, "the policy lacks 'DPR_POLICY int divide(const data &, const task &, "
                               "dpr::children<policy>)': writes the children and returns how many");
        static_assert(!divides || has_divide<P>, "divide() must return 'int'");
        static_assert(!gives<int, divided, void, P, team> || team_divides<P>, "divide() with a team must return 'int'");
        static_assert(team_bytes<P> <= 32768, "'team_bytes' must be from 0 to 32768");
        static_assert(has_base<P>, "the policy lacks 'DPR_POLICY result base(const data &, const task &)': solves a "
                                   "task that is not divided");
        static_assert(has_combine<P> || folds<P>,
                      "the policy lacks 'DPR_POLICY result combine(const data &, const task &, dpr::results<policy>, "
                      "int n)': solves a task from its children's results");
        static_assert(!(has_combine<P> || names_combine<P>) || !folds<P>,
                      "the policy has combine() and 'fold': only one of them can be");
        static_assert(!folds<P> || can_fold<typename P::result>(fold_of<P>),
                      "'fold' must be DPR_SUM, DPR_PROD, DPR_MIN, DPR_MAX, DPR_BAND, DPR_BOR or DPR_BXOR, and the "
                      "policy's 'result' an integer of 32 or 64 bits, because results are folded in any order");
        static_assert(!names_part<P> || has_part<P>,
                      "part() must be 'DPR_POLICY result part(const data &, const task &)', and the policy must have "
                      "'fold'");
        static_assert(!names_cost<P> || has_cost<P>,
                      "cost() must be 'DPR_POLICY uint64_t cost(const data &, const task &)'");
        static_assert(!has_negative_cutoff<P>, "'cutoff' is a cost: 'static constexpr uint64_t'");
        static_assert(!has_cutoff<P> || has_serial<P>,
                      "'cutoff' is the greatest cost of tasks that serial() solves, and the policy has no serial()");
        static_assert(!names_serial<P> || has_serial<P>,
                      "serial() must be 'DPR_POLICY result serial(const data &, const task &)', and the policy must "
                      "have cost()");
        return has_divide<P> && has_base<P> && (has_combine<P> || folds<P>);
    }
    return false;
}

#undef DPR_NEEDS_TASK_
#undef DPR_NEEDS_RESULT_

/* ---- Calls ---- */

/* Whether serial() solves the task, where `cutoff` is the greatest cost of such a task, or 0. */
template <class P> DPR_BOTH bool is_serial(const data_of<P> &data, const typename P::task &task, uint64_t cutoff) {
    if constexpr (has_serial<P>)
        return cutoff > 0 && P::cost(data, task) <= cutoff;
    return false;
}

/* The result of folding none, and two. */
template <class P> DPR_BOTH constexpr typename P::result nothing_folded() {
    using result = typename P::result;
    constexpr auto ones = static_cast<std::make_unsigned_t<result>>(-1);
    constexpr auto most = static_cast<result>(std::is_signed_v<result> ? ones >> 1 : ones);
    switch (fold_of<P>) {
    case DPR_PROD:
        return 1;
    case DPR_MIN:
        return most;
    case DPR_MAX:
        return static_cast<result>(~most);
    case DPR_BAND:
        return static_cast<result>(ones);
    default:
        return 0;
    }
}
template <class P> DPR_BOTH typename P::result folded(typename P::result a, typename P::result b) {
    using word = std::make_unsigned_t<typename P::result>; /* wraps around */
    if constexpr (fold_of<P> == DPR_SUM)
        return static_cast<typename P::result>(static_cast<word>(a) + static_cast<word>(b));
    else if constexpr (fold_of<P> == DPR_PROD)
        return static_cast<typename P::result>(static_cast<word>(a) * static_cast<word>(b));
    else if constexpr (fold_of<P> == DPR_MIN)
        return b < a ? b : a;
    else if constexpr (fold_of<P> == DPR_MAX)
        return a < b ? b : a;
    else if constexpr (fold_of<P> == DPR_BAND)
        return a & b;
    else if constexpr (fold_of<P> == DPR_BOR)
        return a | b;
    else
        return a ^ b;
}

/* What a divided task adds to the fold; nothing if the policy has no part(). */
template <class P> DPR_BOTH typename P::result part(const data_of<P> &data, const typename P::task &task) {
    if constexpr (has_part<P>)
        return P::part(data, task);
    else
        return nothing_folded<P>();
}

/* The policy's functions on the CPU, whether they take a team or not. */
template <class P>
int divide(const data_of<P> &data, const typename P::task &task, children<P> into, const team &team) {
    if constexpr (team_divides<P>)
        return P::divide(data, task, into, team);
    else
        return P::divide(data, task, into);
}

template <class P> typename P::result base(const data_of<P> &data, const typename P::task &task, const team &team) {
    if constexpr (team_bases<P>)
        return P::base(data, task, team);
    else
        return P::base(data, task);
}

/* All n results are known, but GCC does not see that where it inlines this at -O3, and would warn in users' builds. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
template <class P>
typename P::result combine(const data_of<P> &data, const typename P::task &task, results<P> of, int n,
                           const team &team) {
    if constexpr (folds<P>) {
        typename P::result sum = part<P>(data, task);
        for (int i = 0; i < n; ++i)
            sum = folded<P>(sum, of[i]);
        return sum;
    } else if constexpr (team_combines<P>) {
        return P::combine(data, task, of, n, team);
    } else {
        return P::combine(data, task, of, n);
    }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* A team of one thread of the CPU. */
template <class P> team team_of_one() {
    alignas(16) static thread_local char memory[team_bytes<P> + 1];
    return {0, 1, memory};
}

} // namespace recursion
} // namespace dpr

#endif
