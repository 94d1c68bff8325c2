/* Residency on a captured machine: what the planner makes of the blocks and clusters that the device says it holds, or
 * that kernels declare. In builds with CUDA. */
#include "lists.h"
#include "machines.h"
#include "plan/registry.h"
#include "planner_keys.h"
#include "support.h"

typedef struct told {
    dpr_residency resident;
    int asked;
    dpr_status status;
} told;

static dpr_status tell(void *user, const dpr_kernel *kernel, dpr_residency *out) {
    told *t = user;
    t->asked++;
    *out = kernel->cluster ? t->resident : (dpr_residency){t->resident.blocks, 0};
    return t->status;
}

/* The launch limits of a strategy asked for by name; all zero where it cannot run. */
static dpr_launch_limits shape_of(const dpr_machine *machine, size_t strategy) {
    dpr_choice choice;
    dpr_key key = key_of(&places[5], DPR_SUM, DPR_I32);
    key.f.strategy = (uint8_t)(strategy + 1);
    if (dpr_choose(&key, machine, &choice) != DPR_OK)
        return (dpr_launch_limits){0};
    return choice.step[0].limits;
}

static dpr_kernel kernel_of(size_t strategy) {
    const dpr_key key = key_of(&places[5], DPR_SUM, DPR_I32);
    return dpr_strategies[strategy]->kernel(&key);
}

/* Kernels of a module wait for no other blocks, so that their limits are the same wherever they are resident; asking is
 * what loads them. */
TEST(Planner, asks_the_device_what_it_holds) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        told t = {{24, 8}, 0, DPR_OK};
        machine.resident = tell;
        machine.user = &t;
        const dpr_launch_limits limits = shape_of(&machine, i);
        if (dpr_strategies[i]->side != DPR_ON_GPU || limits.threads == 0)
            continue;
        EXPECT_THAT(t.asked > 0, "%s did not ask", dpr_strategies[i]->name);
        EXPECT_THAT(limits.max_blocks <= 24 || kernel_of(i).module, "%s: %d blocks", dpr_strategies[i]->name,
                    limits.max_blocks);
        EXPECT_EQ_I64(kernel_of(i).cluster ? 8 : 0, limits.cluster);
        /* one that does not know leaves it to what the kernels declare */
        t.resident.blocks = 0;
        const dpr_launch_limits asked = shape_of(&machine, i);
        machine.resident = NULL;
        const dpr_launch_limits declared = shape_of(&machine, i);
        EXPECT_EQ_I64(declared.max_blocks, asked.max_blocks);
        EXPECT_THAT(declared.max_blocks == limits.max_blocks || !kernel_of(i).module, "%s: %d blocks, and %d when told",
                    dpr_strategies[i]->name, declared.max_blocks, limits.max_blocks);
        EXPECT_EQ_I64(declared.cluster, asked.cluster);
        /* one that fails is no choice to keep */
        machine.resident = tell;
        t.status = DPR_ERR_CUDA;
        EXPECT_EQ_I64(0, shape_of(&machine, i).threads);
    }
}

TEST(Planner, clusters_as_large_as_the_architecture_has_room_for) {
    const int majors[] = {9, 10, 12}, most[] = {16, 16, 8};
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    for (size_t m = 0; m < LENGTH(majors); m++) {
        machine.caps.gpu.cc_major = majors[m];
        for (size_t i = 0; i < dpr_strategy_count(); i++) {
            const dpr_launch_limits limits = shape_of(&machine, i);
            if (dpr_strategies[i]->side != DPR_ON_GPU || limits.threads == 0 || !kernel_of(i).cluster)
                continue;
            EXPECT_EQ_I64(kernel_of(i).cluster < most[m] ? kernel_of(i).cluster : most[m], limits.cluster);
            EXPECT_TRUE(limits.max_blocks >= limits.cluster);
        }
    }
}
