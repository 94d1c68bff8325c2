/* Wisdom is a set of measured times, by which the planner corrects its predictions. Each time belongs to a processor, a
 * CPU or a GPU, which a signature identifies. Wisdom does not change once it is made, so any number of machines may
 * share it. */
#ifndef DPR_HOST_PLAN_WISDOM_H
#define DPR_HOST_PLAN_WISDOM_H

#include "planner.h"

/* One time: whole picoseconds, so that its text does not depend on the locale. */
typedef struct dpr_wise_time {
    uint64_t place;       /* which processor, strategy and kind of call */
    uint64_t count;       /* elements, from 1 to DPR_WISE_MOST */
    uint64_t picoseconds; /* of a call, from 1 to DPR_WISE_LONGEST */
} dpr_wise_time;

#define DPR_WISE_MOST (UINT64_C(1) << 53)           /* whole numbers up to this are exact in F64 */
#define DPR_WISE_LONGEST UINT64_C(1000000000000000) /* 1000 seconds */

/* A CPU or a GPU. */
typedef struct dpr_wise_processor {
    uint64_t signature; /* of all that its times depend on */
    int on_gpu;
    char name[64];
} dpr_wise_processor;

enum { DPR_WISE_PROCESSORS = 64, DPR_WISE_TIMES = 1 << 20 };

struct dpr_wisdom {
    _Atomic int users; /* who will call dpr_wisdom_release() */
    int processors;
    size_t times;
    dpr_wise_processor processor[DPR_WISE_PROCESSORS];
    dpr_wise_time time[]; /* rising by place, then by count; no two are equal in both */
};

/* The processor of the machine that runs strategies of this side. Its signature depends on its name and capabilities,
 * except those that are assumed or that runs do not depend on, and on the driver's version. */
dpr_wise_processor dpr_wise_processor_of(const dpr_machine *machine, dpr_side side);

/* Whether wisdom has times for calls with this key. It has none for partial results, several operations, and calls with
 * a block size or depth of their own. */
int dpr_wise_key(const dpr_key *key);

/* Times of one strategy for one kind of call: rising by count. */
typedef struct dpr_wise_curve {
    const dpr_wise_time *time;
    size_t n; /* 0: nothing is known */
} dpr_wise_curve;

/* Lets the machine know the wisdom (NULL: none), which must live as long as the machine and its copies. If sums of long
 * arrays by one core and by all of them are known, the rates that they show replace those of the machine's CPU; a
 * shorter sum by all of them then shows how long they take to begin and to end. Sets launch_seconds. The machine's
 * capabilities do not change later, except those of nested launches. */
void dpr_wisdom_attach(const dpr_wisdom *wisdom, dpr_machine *machine);

/* Finds the times of a strategy on the machine, which need not have wisdom: those with cold caches or, if there are
 * none, those that plans of effort DPR_MEASURE have measured; for a key of this effort, these first. Nothing is found
 * for a key that asks for estimates. For pinned memory, a CPU strategy that has no times with caches in a state uses
 * its times of pageable memory in that state, because the CPU reads both equally fast. */
dpr_wise_curve dpr_wise_find(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key);

/* The time of exactly this number of elements, in seconds; 0 if there is none. Caches are cold unless the key has the
 * effort DPR_MEASURE. */
double dpr_wise_seconds(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key, uint64_t count);

/* Whether there are times of a CPU of the same name as the machine's, but none of the machine's: it then had other
 * cores or threads. */
int dpr_wise_of_other_threads(const dpr_machine *machine);

/* The number of a processor's times. */
size_t dpr_wise_times_of(const dpr_wisdom *wisdom, int processor);

/* Wisdom has one user when it is made. The last one's release frees it; NULL is allowed. */
void dpr_wisdom_hold(const dpr_wisdom *wisdom);
void dpr_wisdom_release(const dpr_wisdom *wisdom);

/* Makes wisdom without times. NULL if there is no memory. */
dpr_wisdom *dpr_wisdom_none(void);

/* Makes wisdom of all times of two, of which `newer` replaces times of `older`. The processors of `newer` come last, so
 * that processors stand in the order in which they were last measured. If not all fit, the first of those that only
 * `older` has are left out. DPR_ERR_WISDOM if the times of the others do not fit either. */
dpr_status dpr_wisdom_join(const dpr_wisdom *older, const dpr_wisdom *newer, dpr_wisdom **out);

/* Makes wisdom of a single time of a strategy on a machine, with warm caches if the key has the effort DPR_MEASURE.
 * DPR_ERR_INVALID_OPTION if the count is 0, the time not from a picosecond to 1000 seconds, or the key one that wisdom
 * has no times for. */
dpr_status dpr_wisdom_single(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key,
                             uint64_t count, double seconds, dpr_wisdom **out);

/* Reads text of `size` bytes, whole or not at all: DPR_ERR_WISDOM, and dpr_last_error() names the line and what is
 * wrong with it. */
dpr_status dpr_wisdom_parse(const char *text, size_t size, dpr_wisdom **out);

/* Writes wisdom as text, by the protocol of dpr_plan_explain(). Text of the same wisdom is the same. */
dpr_status dpr_wisdom_format(const dpr_wisdom *wisdom, char *text, size_t *len);

#endif
