#include "planner.h"

#include <stdint.h>

#include "cost_link.h"
#include "error.h"
#include "lists.h"
#include "means.h"
#include "occupancy.h"
#include "registry.h"
#include "wisdom.h"

/* Resident blocks on the whole device of a kernel that uses all registers that its launch bounds allow. */
static int declared_blocks(const dpr_gpu_caps *gpu, const dpr_kernel *kernel) {
    const int registers = (int)(gpu->registers_per_sm / ((int64_t)kernel->threads * kernel->min_blocks));
    const dpr_kernel_use use = {kernel->threads, registers < 255 ? registers & ~7 : 255, kernel->shared_bytes};
    return dpr_occupancy_of(gpu, use).blocks_per_sm * (int)gpu->sm_count;
}

/* That every SM can be in a cluster is an assumption, because the capabilities do not say how SMs are grouped. */
static dpr_residency declared_residency(const dpr_gpu_caps *gpu, const dpr_kernel *kernel) {
    const int cluster = dpr_largest_cluster(gpu, kernel->cluster), blocks = declared_blocks(gpu, kernel);
    return (dpr_residency){cluster ? blocks - blocks % cluster : blocks, cluster};
}

static dpr_status find_residency(const dpr_strategy *strategy, const dpr_key *key, const dpr_machine *machine,
                                 dpr_residency *out) {
    *out = (dpr_residency){1, 0};
    if (!strategy->kernel)
        return DPR_OK;
    const dpr_kernel kernel = strategy->kernel(key);
    out->blocks = 0;
    if (machine->resident) {
        const dpr_status status = machine->resident(machine->user, &kernel, out);
        if (status != DPR_OK)
            return status;
    }
    if (out->blocks < 1)
        *out = declared_residency(&machine->caps.gpu, &kernel);
    if (out->blocks < 1) /* the launch will say why not even one fits */
        out->blocks = out->cluster ? out->cluster : 1;
    return DPR_OK;
}

/* Why strategies of this side do not take arrays in the key's memory; NULL if they do. */
static const char *memory_refusal(dpr_side side, const dpr_key *key, const dpr_caps *caps) {
    const int by_name = key->f.strategy != 0;
    if (side == DPR_ON_GPU) {
        if (!caps->has_gpu)
            return "needs a GPU";
        if (key->f.in_memory == DPR_MEMORY_HOST)
            return "the GPU does not reach pageable host memory";
        if (key->f.in_memory != DPR_MEMORY_DEVICE && key->f.segments && !key->f.gpu_only && !by_name)
            return "the CPU reduces segments and axes of arrays in pinned or managed memory unless a GPU strategy is "
                   "asked for";
        if (key->f.in_memory == DPR_MEMORY_PINNED && !caps->gpu.registered_pointers)
            return "the GPU does not reach pinned memory by its host address";
        return NULL;
    }
    if (key->f.gpu_only)
        return "the CPU has no place in a CUDA stream";
    if (key->f.in_memory == DPR_MEMORY_DEVICE)
        return "the CPU does not reach device memory";
    if (key->f.in_memory == DPR_MEMORY_MANAGED && caps->has_gpu && !caps->gpu.concurrent_managed)
        return "the CPU may not touch managed memory here while a kernel runs";
    if (key->f.in_memory == DPR_MEMORY_MANAGED && caps->has_gpu && !by_name && !key->f.segments)
        return "managed memory goes to the GPU unless a CPU strategy is asked for";
    return NULL;
}

const char *dpr_refusal(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps) {
    const char *refusal = memory_refusal(strategy->side, key, caps);
    if (!refusal && key->f.strided && !strategy->strided)
        refusal = "runs one array, not along axes or with gaps";
    if (!refusal && key->f.segments && !key->f.strided && !strategy->segmented)
        refusal = "runs one array, not its segments";
    if (!refusal && key->f.fused && !strategy->fuses)
        refusal = "runs one operation at a time";
    if (!refusal && dpr_runs_as_measure(key) && !strategy->fuses && !strategy->measures)
        refusal = "has no kernels for this operation";
    if (!refusal && key->f.block && !strategy->takes_block)
        refusal = strategy->side == DPR_ON_GPU ? "its block size is its own choice" : "the CPU has no blocks";
    if (!refusal && strategy->workspace_bytes && !caps->gpu.memory_pools)
        refusal = "needs memory that is allocated in stream order";
    if (refusal || !strategy->probe)
        return refusal;
    return strategy->probe(key, caps);
}

/* A strategy, and its measured times for the key. */
typedef struct candidate {
    const dpr_strategy *strategy;
    dpr_wise_curve known;
} candidate;

/* Strategies among which the planner chooses, in the registry's order. */
typedef struct candidates {
    const dpr_key *key;
    const dpr_machine *machine;
    int count;
    candidate list[DPR_STRATEGY_COUNT];
} candidates;

/* Whether the planner may choose the strategy without its name. If a block size is asked for, those that take it may be
 * chosen, which no candidate does. */
static int is_eligible(const dpr_strategy *strategy, const dpr_key *key) {
    return strategy->role == DPR_ROLE_CANDIDATE || key->f.block;
}

static void gather(candidates *c) {
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++) {
        const dpr_strategy *strategy = dpr_strategies[i];
        if (!(c->machine->barred >> i & 1) && is_eligible(strategy, c->key)
            && !dpr_refusal(strategy, c->key, &c->machine->caps))
            c->list[c->count++] = (candidate){strategy, dpr_wise_find(c->machine, strategy, c->key)};
    }
}

/* Leaves out strategies whose times were not measured. */
static void keep_measured(candidates *c) {
    int kept = 0;
    for (int i = 0; i < c->count; i++)
        if (c->list[i].known.n > 0)
            c->list[kept++] = c->list[i];
    c->count = kept;
}

int dpr_candidates(const dpr_key *key, const dpr_machine *machine, const dpr_strategy **list) {
    candidates c = {.key = key, .machine = machine};
    gather(&c);
    for (int i = 0; i < c.count; i++)
        list[i] = c.list[i].strategy;
    return c.count;
}

/* The rate at which the memory of the strategy's side delivers the array. */
static double memory_rate(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps) {
    return strategy->side == DPR_ON_GPU ? dpr_array_rate(key, &caps->gpu) : dpr_host_memory_rate(&caps->cpu);
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

double dpr_predict(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double memory = memory_rate(strategy, key, caps);
    const double wait = strategy->side == DPR_ON_GPU ? dpr_wait_for_result(key) : 0;
    return wait
           + larger(dpr_cost_seconds(strategy->cost(key, caps, size), memory), dpr_array_bytes(key, size) / memory);
}

/* How much longer a run took than was predicted. */
static double excess(const dpr_strategy *strategy, const dpr_key *key, const dpr_caps *caps, uint64_t segments,
                     const dpr_wise_time *t) {
    return 1e-12 * (double)t->picoseconds / dpr_predict(strategy, key, caps, (dpr_size){t->count, segments});
}

/* Of n > 0 to the base 2, by straight lines between powers of two: no library's rounding decides a choice. */
static double logarithm(uint64_t n) {
    const int exponent = 63 - __builtin_clzll(n);
    const double power = (double)(UINT64_C(1) << exponent);
    return exponent + ((double)n - power) / power;
}

/* How many of the times are of at most `count` elements. */
static size_t times_up_to(dpr_wise_curve known, size_t count) {
    size_t from = 0, end = known.n;
    while (from < end) {
        const size_t middle = from + (end - from) / 2;
        if (known.time[middle].count <= count)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

/* Between two numbers of elements, the excess is taken to change evenly with the logarithm of the number; beyond the
 * first and the last, not to change. But times of arrays that are less than half as long do not say that memory is
 * faster than predicted. */
static double expect(const candidate *c, const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double predicted = dpr_predict(c->strategy, key, caps, size);
    const dpr_wise_time *const time = c->known.time;
    if (c->known.n == 0)
        return predicted;
    const size_t i = times_up_to(c->known, size.elements);
    const dpr_wise_time *low = &time[i > 0 ? i - 1 : 0], *high = &time[i < c->known.n ? i : c->known.n - 1];
    const double at_low = excess(c->strategy, key, caps, size.segments, low);
    if (low == high && size.elements > 2 * low->count)
        return larger(predicted * at_low, dpr_array_bytes(key, size) / memory_rate(c->strategy, key, caps));
    if (low == high)
        return predicted * at_low;
    const double from = logarithm(low->count);
    const double share = (logarithm(size.elements) - from) / (logarithm(high->count) - from);
    return predicted * (at_low + share * (excess(c->strategy, key, caps, size.segments, high) - at_low));
}

/* Beyond the times that were measured, a factor of two is as far as a number can be from the nearer one of two default
 * sizes of `dpr tune`, which are a factor of four apart. */
static dpr_basis basis_of(dpr_wise_curve known, size_t count) {
    if (known.n == 0)
        return DPR_BASIS_PREDICTED;
    const uint64_t first = known.time[0].count, last = known.time[known.n - 1].count;
    return count >= first - first / 2 && count <= 2 * last ? DPR_BASIS_MEASURED : DPR_BASIS_EXTRAPOLATED;
}

double dpr_expect(const dpr_strategy *strategy, const dpr_key *key, const dpr_machine *machine, dpr_size size,
                  dpr_basis *basis) {
    const candidate c = {strategy, dpr_wise_find(machine, strategy, key)};
    if (basis)
        *basis = basis_of(c.known, size.elements);
    return expect(&c, key, &machine->caps, size);
}

/* The cheapest for `count` elements; the first of equals. */
static const dpr_strategy *cheapest(const candidates *c, size_t count) {
    const dpr_size size = {count, dpr_key_segments(c->key)};
    const dpr_strategy *best = c->list[0].strategy;
    double least = expect(&c->list[0], c->key, &c->machine->caps, size);
    for (int i = 1; i < c->count; i++) {
        const double seconds = expect(&c->list[i], c->key, &c->machine->caps, size);
        if (seconds < least) {
            least = seconds;
            best = c->list[i].strategy;
        }
    }
    return best;
}

/* The greatest count in [low, high) whose cheapest strategy is `at_low`. It is the cheapest at `low`, and not at
 * `high`. */
static size_t last_of(const candidates *c, const dpr_strategy *at_low, size_t low, size_t high) {
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (cheapest(c, middle) == at_low)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static dpr_status add_step(dpr_choice *choice, size_t upto, const dpr_strategy *strategy, const dpr_machine *machine) {
    const dpr_key *key = &choice->key;
    if (choice->steps == DPR_CHOICE_STEPS)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "the cheapest strategy changes more than %d times with the size",
                        DPR_CHOICE_STEPS);
    dpr_residency resident;
    const dpr_status status = find_residency(strategy, key, machine, &resident);
    if (status == DPR_OK)
        choice->step[choice->steps++] =
            (dpr_choice_step){upto, strategy, strategy->limits(key, &machine->caps, resident)};
    return status;
}

/* More elements than any address space holds. Beyond it, rounding would decide between costs that are nearly equal. */
static const size_t most_elements = SIZE_MAX / 128;

/* The next time to look at after `count`: the first one of each sixteenth of the way from one power of two to the next.
 * So looks are few however many times there are. Returns known.n if there is none. */
static size_t next_time(dpr_wise_curve known, size_t count) {
    const size_t past = times_up_to(known, count);
    if (past == 0 || past >= known.n)
        return past;
    const size_t power = (size_t)1 << (63 - __builtin_clzll(known.time[past].count));
    const size_t part = power > 16 ? power / 16 : 1, from = known.time[past].count / part * part;
    return known.time[past - 1].count < from ? past : times_up_to(known, from + part - 1);
}

/* The next number of elements for which the envelope looks at all costs. Predictions are smooth enough that no strategy
 * wins only between two powers of two. Between times that were measured one may: so the next time comes, and a quarter
 * of the way from one power of two to the next. */
static size_t next_look(const candidates *c, size_t count) {
    const size_t power = count > 0 ? (size_t)1 << (63 - __builtin_clzll(count)) : 0;
    const size_t quarter = power > 4 ? power / 4 : 1, between = count - count % quarter + quarter;
    size_t next = count > 0 ? 2 * power : 1;
    for (int i = 0; i < c->count; i++) {
        const dpr_wise_curve known = c->list[i].known;
        const size_t past = times_up_to(known, count), time = next_time(known, count);
        if (past > 0 && past < known.n && between < next)
            next = between;
        if (time < known.n && known.time[time].count < next)
            next = known.time[time].count;
    }
    return next;
}

/* Finds the lower envelope of the costs. If the winner differs between two looks, bisection finds the border. */
static dpr_status envelope(const candidates *c, const dpr_machine *machine, dpr_choice *choice) {
    size_t low = 0;
    const dpr_strategy *winner = cheapest(c, low);
    for (size_t high = next_look(c, low); high <= most_elements; high = next_look(c, low)) {
        while (cheapest(c, high) != winner) {
            low = last_of(c, winner, low, high);
            const dpr_status status = add_step(choice, low, winner, machine);
            if (status != DPR_OK)
                return status;
            winner = cheapest(c, ++low);
        }
        low = high;
    }
    return add_step(choice, SIZE_MAX, winner, machine);
}

dpr_status dpr_machine_known(const dpr_machine *machine, int measure, dpr_machine *out) {
    *out = *machine;
    return machine->nested_costs ? machine->nested_costs(machine->user, measure, &out->caps.gpu) : DPR_OK;
}

static dpr_status choose_by_name(const dpr_machine *machine, dpr_choice *choice) {
    const dpr_strategy *strategy = dpr_strategies[choice->key.f.strategy - 1];
    const char *refusal = dpr_refusal(strategy, &choice->key, &machine->caps);
    dpr_machine known;
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "strategy \"%s\" cannot run this: %s", strategy->name, refusal);
    const dpr_status status = dpr_machine_known(machine, strategy->role == DPR_ROLE_NESTED, &known);
    return status == DPR_OK ? add_step(choice, SIZE_MAX, strategy, &known) : status;
}

/* Whether the strategy is one of those that run the most calls of this kind. */
static int runs_most(const dpr_strategy *strategy, const dpr_key *key) {
    if (!key->f.segments)
        return strategy->fuses;
    return key->f.strided ? strategy->strided : strategy->segmented;
}

/* Fails because no strategy can run the key. The reason is the block size, the memory, or the refusal of a strategy
 * that runs the most calls of this kind. */
static dpr_status refuse_all(const dpr_key *key, const dpr_caps *caps) {
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++)
        if (key->f.block && !memory_refusal(dpr_strategies[i]->side, key, caps))
            return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                            "options->launch->block is %d, and no strategy whose block size can be chosen can run this",
                            1 << key->f.block);
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++) {
        const char *refusal = dpr_refusal(dpr_strategies[i], key, caps);
        if (refusal && runs_most(dpr_strategies[i], key) && !memory_refusal(dpr_strategies[i]->side, key, caps))
            return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "no strategy can run this; %s: %s", dpr_strategies[i]->name,
                            refusal);
    }
    return dpr_fail(DPR_ERR_MEMORY_KIND, "no strategy reaches %s memory here",
                    dpr_memory_name((dpr_memory)key->f.in_memory));
}

/* Measured times, which have noise, may change the cheapest strategy more often than a choice has steps. Then the
 * choice is by prediction, unless measured times alone are asked for. */
static dpr_status choose_cheapest(const dpr_machine *machine, dpr_choice *choice) {
    dpr_machine known;
    dpr_status status = dpr_machine_known(machine, 0, &known);
    if (status != DPR_OK)
        return status;
    candidates c = {.key = &choice->key, .machine = &known};
    if (choice->key.f.effort == DPR_MEASURE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->effort is DPR_MEASURE, which %s",
                        choice->key.f.segments ? "is not available with segments, keys, axes or gaps"
                                               : "only dpr_plan_create() takes");
    gather(&c);
    if (c.count == 0)
        return refuse_all(&choice->key, &known.caps);
    if (choice->key.f.effort == DPR_WISDOM_ONLY)
        keep_measured(&c);
    if (c.count == 0)
        return dpr_fail(DPR_ERR_WISDOM, "no strategy was measured for this problem, and options->effort is "
                                        "DPR_WISDOM_ONLY");
    status = envelope(&c, &known, choice);
    if (status == DPR_OK || choice->steps < DPR_CHOICE_STEPS || !known.wisdom
        || choice->key.f.effort == DPR_WISDOM_ONLY)
        return status;
    for (int i = 0; i < c.count; i++)
        c.list[i].known = (dpr_wise_curve){NULL, 0};
    choice->estimated = 1;
    choice->steps = 0;
    return envelope(&c, &known, choice);
}

dpr_status dpr_choose(const dpr_key *key, const dpr_machine *machine, dpr_choice *out) {
    dpr_choice choice = {.key = *key, .sms = (int)machine->caps.gpu.sm_count, .barred = machine->barred};
    const dpr_status status = key->f.strategy ? choose_by_name(machine, &choice) : choose_cheapest(machine, &choice);
    if (status == DPR_OK)
        *out = choice;
    return status;
}

const dpr_choice_step *dpr_choice_at(const dpr_choice *choice, size_t count) {
    const dpr_choice_step *step = choice->step;
    while (count > step->upto)
        step++;
    return step;
}

const char *dpr_memory_name(dpr_memory memory) {
    static const char *const names[] = {
        [DPR_MEMORY_AUTO] = "automatic",  [DPR_MEMORY_HOST] = "host",     [DPR_MEMORY_PINNED] = "pinned",
        [DPR_MEMORY_MANAGED] = "managed", [DPR_MEMORY_DEVICE] = "device",
    };
    return names[memory];
}
