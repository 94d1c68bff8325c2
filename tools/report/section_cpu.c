/* What dpr_bench_cpu writes: the CPU's strategies next to OpenMP loops. */
#include "page.h"

static const struct {
    const char *key, *heading;
} members[] = {{"threads", "threads"},
               {"cpu.threads_gb_per_s", "cpu.threads, GB/s"},
               {"openmp_threads_gb_per_s", "OpenMP with threads, GB/s"},
               {"threads_ratio", "ratio with threads"},
               {"cpu.simd_gb_per_s", "cpu.simd, GB/s"},
               {"openmp_simd_gb_per_s", "OpenMP simd, GB/s"},
               {"simd_ratio", "ratio of cpu.simd"},
               {"small_call_ns", "call for 16 doubles, ns"},
               {"small_loop_ns", "loop for 16 doubles, ns"}};
enum { MEMBERS = sizeof members / sizeof *members };

void section_cpu(page *p) {
    const char *headings[MEMBERS + 2] = {"file", "processor"};
    for (size_t i = 0; i < MEMBERS; i++)
        headings[i + 2] = members[i].heading;
    html_put(&p->h, "<p>Sums of F32 in the host's memory, next to OpenMP loops that are compiled with the same flags "
                    "and take turns with dpr. A ratio is the rate of dpr over that of the loop.</p>\n");
    html_table(&p->h, "Sums of F32 on the CPU", headings, MEMBERS + 2);
    for (size_t i = 0; i < p->r->count; i++) {
        const result *one = &p->r->at[i];
        if (one->kind != RESULT_CPU || !html_row(&p->h, result_file(one), (double)i))
            continue;
        html_cell(&p->h, one->device);
        for (size_t k = 0; k < MEMBERS; k++)
            html_number(&p->h, json_number(one->document, members[k].key), NULL);
    }
    html_table_end(&p->h);
}
