/* What a policy of dpr_recursion.cuh is: the types that its functions take, and the checks of a policy. */
#ifndef DPR_DP_POLICY_H
#define DPR_DP_POLICY_H

#include <cstddef>
#include <cstdint>
#include <type_traits>

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

/* Where divide() writes children: children[i] is a P::task. They need not lie next to each other. */
template <class P> class children {
  public:
    /* The first is at `first`, another every `stride` bytes; those from `room` on all share place `room`. */
    DPR_BOTH children(void *first, unsigned stride, unsigned room)
        : first_(static_cast<char *>(first)), stride_(stride), room_(room) {}
    DPR_BOTH auto &operator[](int i) const {
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
        return *reinterpret_cast<const typename P::result *>(first_ + static_cast<size_t>(i) * stride_);
    }

  private:
    const char *first_;
    unsigned stride_;
};

namespace recursion {

/* ---- The parts of a policy ---- */

template <class P, class = void> struct data_type { using type = no_data; };
template <class P> struct data_type<P, std::void_t<typename P::data>> { using type = typename P::data; };
template <class P> using data_of = typename data_type<P>::type;
template <class P> constexpr bool has_no_data = std::is_same_v<data_of<P>, no_data>;

/* What name_run() takes a pointer to. */
template <class P> using data_given = std::conditional_t<has_no_data<P>, void, data_of<P>>;

/* Memory for a task, and for its result when that is known. */
template <class P> union slot {
    typename P::task task;
    typename P::result result;
};

/* ---- Checks ---- */

template <class P, class = void> constexpr bool has_task = false;
template <class P> constexpr bool has_task<P, std::void_t<typename P::task>> = true;

template <class P, class = void> constexpr bool has_result = false;
template <class P> constexpr bool has_result<P, std::void_t<typename P::result>> = true;

template <class P, class = void> constexpr bool has_most_children = false;
template <class P> constexpr bool has_most_children<P, std::void_t<decltype(P::most_children)>> = true;

template <class P, class = void> constexpr bool has_divide = false;
template <class P>
constexpr bool
    has_divide<P, std::enable_if_t<std::is_convertible_v<decltype(P::divide(std::declval<const data_of<P> &>(),
                                                                            std::declval<const typename P::task &>(),
                                                                            std::declval<children<P>>())),
                                                         int>>> = true;

template <class P, class = void> constexpr bool has_base = false;
template <class P>
constexpr bool
    has_base<P, std::enable_if_t<std::is_convertible_v<decltype(P::base(std::declval<const data_of<P> &>(),
                                                                        std::declval<const typename P::task &>())),
                                                       typename P::result>>> = true;

template <class P, class = void> constexpr bool has_combine = false;
template <class P>
constexpr bool
    has_combine<P, std::enable_if_t<std::is_convertible_v<decltype(P::combine(std::declval<const data_of<P> &>(),
                                                                              std::declval<const typename P::task &>(),
                                                                              std::declval<results<P>>(), 0)),
                                                          typename P::result>>> = true;

template <class T>
constexpr bool is_plain = std::is_trivially_copyable_v<T> &&std::is_trivially_default_constructible_v<T>;

/* Does not compile if something is missing from the policy, or wrong; the message says what. */
template <class P> constexpr bool check() {
    static_assert(has_task<P>, "the policy lacks a type `task`: what is to be solved");
    static_assert(has_result<P>, "the policy lacks a type `result`: what solving a task gives");
    static_assert(has_most_children<P>, "the policy lacks a constant `most_children`: `static constexpr int`, from 1");
    if constexpr (has_task<P> && has_result<P> && has_most_children<P>) {
        static_assert(is_plain<typename P::task>, "the policy's `task` must be plain data: it is copied byte by byte");
        static_assert(is_plain<typename P::result>, "the policy's `result` must be plain data: it is copied");
        static_assert(std::is_trivially_copyable_v<data_of<P>>, "the policy's `data` must be plain data: it is copied");
        static_assert(alignof(slot<P>) <= 16, "the policy's `task` and `result` may be aligned to 16 bytes at most");
        static_assert(P::most_children >= 1 && P::most_children <= INT32_MAX, "`most_children` must be from 1");
        static_assert(has_divide<P>, "the policy lacks `DPR_POLICY int divide(const data &, const task &, "
                                     "dpr::children<policy>)`: writes the children and returns how many");
        static_assert(has_base<P>, "the policy lacks `DPR_POLICY result base(const data &, const task &)`: solves a "
                                   "task that is not divided");
        static_assert(has_combine<P>, "the policy lacks `DPR_POLICY result combine(const data &, const task &, "
                                      "dpr::results<policy>, int n)`: solves a task from its children's results");
        return has_divide<P> && has_base<P> && has_combine<P>;
    }
    return false;
}

} // namespace recursion
} // namespace dpr

#endif
