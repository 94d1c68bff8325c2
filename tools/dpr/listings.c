#include "listings.h"

#include "cli.h"
#include "cli_json.h"

void list_ops(report_out *out) {
    static const report_column columns[] = {{"name", "name", UNIT_LEFT},
                                            {"text", "result", UNIT_LEFT},
                                            {"types", "element types", UNIT_LEFT},
                                            {"result", "type of the result", UNIT_LEFT},
                                            {0}};
    cJSON *list = cJSON_AddArrayToObject(out->document, "ops");
    dpr_op_info info = DPR_OP_INFO_INIT;
    for (size_t i = 0; i < dpr_op_count(); i++) {
        (void)dpr_op_describe(dpr_op_at(i), &info);
        cJSON *row = report_row(list);
        report_add(row, "name=%s id=%s text=%s types=%s result=%s", dpr_op_name(dpr_op_at(i)), info.id, info.text,
                   info.types, info.result);
    }
    report_table(out, "Operations", list, 0, columns);
}

void list_dtypes(report_out *out) {
    static const report_column columns[] = {{"name", "name", UNIT_LEFT},
                                            {"text", "element", UNIT_LEFT},
                                            {"npy", ".npy", UNIT_LEFT},
                                            {"sum", "widened", UNIT_LEFT},
                                            {0}};
    cJSON *list = cJSON_AddArrayToObject(out->document, "dtypes");
    dpr_dtype_info info = DPR_DTYPE_INFO_INIT;
    for (size_t i = 0; i < dpr_dtype_count(); i++) {
        const dpr_dtype dtype = dpr_dtype_at(i);
        (void)dpr_dtype_describe(dtype, &info);
        cJSON *row = report_row(list);
        report_add(row, "name=%s id=%s text=%s bytes=%lu", dpr_dtype_name(dtype), info.id, info.text,
                   dpr_dtype_size(dtype));
        if (*info.npy)
            cJSON_AddStringToObject(row, "npy", info.npy);
        cJSON_AddStringToObject(row, "sum", dpr_dtype_name(dpr_result_dtype(DPR_SUM, dtype)));
    }
    report_table(out, "Types", list, 0, columns);
}

void list_strategies(report_out *out, int with_gpu) {
    static const report_column columns[] = {{"name", "name", UNIT_LEFT}, {"text", "what it does", UNIT_LEFT}, {0}};
    cJSON *list = cJSON_AddArrayToObject(out->document, "strategies");
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const int on_gpu = cli_strategy_at(i).on_gpu;
        if (on_gpu && !with_gpu)
            continue;
        cJSON *row = report_row(list);
        report_add(row, "name=%s text=%s side=%s", dpr_strategy_name(i), dpr_strategy_text(i), on_gpu ? "gpu" : "cpu");
    }
    report_table(out, "Strategies of this build", list, 0, columns);
    if (!with_gpu)
        list_print_left_out();
}

void list_print_all(void) {
    report_out out = report_begin(stdout, REPORT_TABLE);
    list_ops(&out);
    list_dtypes(&out);
    list_strategies(&out, 1);
    (void)report_end(&out);
}

void list_print_left_out(void) {
    int on_gpu = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        on_gpu += cli_strategy_at(i).on_gpu;
    if (on_gpu > 0)
        printf("%d more strategies run on a GPU ('dpr info --all' lists them)\n", on_gpu);
}
