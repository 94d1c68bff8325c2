/* The functions of dpr.h that only look things up in the lists. */
#include "lists.h"

#include <string.h>

#include "cpu/ops.h"
#include "element.h"
#include "environment.h"
#include "error.h"

typedef struct status_info {
    const char *name, *text;
} status_info;

#define DPR_STATUS_ROW(A, NAME, number, TEXT) [DPR_##NAME] = {"DPR_" #NAME, TEXT},
static const status_info statuses[DPR_STATUS_COUNT] = {DPR_STATUS_LIST(DPR_STATUS_ROW, _)};

/* Enum arguments come from callers and may hold anything; what is below the first value becomes large. */
static int is_op(dpr_op op) {
    return (unsigned)op - DPR_FIRST_OP < DPR_OP_COUNT;
}
static int is_dtype(dpr_dtype dtype) {
    return (unsigned)dtype - DPR_FIRST_DTYPE < DPR_DTYPE_COUNT;
}
static const dpr_op_row *row_of_op(dpr_op op) {
    return &dpr_ops[DPR_ROW(op)];
}
static const dpr_dtype_row *row_of_dtype(dpr_dtype dtype) {
    return &dpr_dtypes[DPR_ROW(dtype)];
}
/* dpr_supported() for this file. Compilers do not inline that one, because a program may replace it. */
static int is_supported(dpr_op op, dpr_dtype dtype) {
    return is_op(op) && is_dtype(dtype) && (row_of_op(op)->domain & row_of_dtype(dtype)->kind) != 0;
}
static int is_status(dpr_status status) {
    return (unsigned)status < DPR_STATUS_COUNT;
}

const char *dpr_status_name(dpr_status status) {
    return is_status(status) ? statuses[status].name : "DPR_ERR_?";
}

const char *dpr_status_text(dpr_status status) {
    return is_status(status) ? statuses[status].text : "not a status of this library";
}

const char *dpr_version(void) {
    return DPR_VERSION_TEXT;
}

int dpr_version_number(void) {
    return DPR_VERSION_NUMBER;
}

size_t dpr_op_count(void) {
    return DPR_OP_COUNT;
}
size_t dpr_dtype_count(void) {
    return DPR_DTYPE_COUNT;
}
dpr_op dpr_op_at(size_t i) {
    return i < DPR_OP_COUNT ? (dpr_op)(DPR_FIRST_OP + i) : DPR_OP_NONE;
}
dpr_dtype dpr_dtype_at(size_t i) {
    return i < DPR_DTYPE_COUNT ? (dpr_dtype)(DPR_FIRST_DTYPE + i) : DPR_DTYPE_NONE;
}

const char *dpr_op_name(dpr_op op) {
    return is_op(op) ? row_of_op(op)->name : NULL;
}
const char *dpr_dtype_name(dpr_dtype dtype) {
    return is_dtype(dtype) ? row_of_dtype(dtype)->name : NULL;
}
size_t dpr_dtype_size(dpr_dtype dtype) {
    return is_dtype(dtype) ? row_of_dtype(dtype)->size : 0;
}
size_t dpr_dtype_alignment(dpr_dtype dtype) {
    return is_dtype(dtype) ? row_of_dtype(dtype)->align : 0;
}

dpr_status dpr_op_describe(dpr_op op, dpr_op_info *out) {
    static const char *const results[] = {[DPR_RESULT_WIDE] = "widened",
                                          [DPR_RESULT_REAL] = "widened, real",
                                          [DPR_RESULT_MEAN] = "widened, f64 of integers",
                                          [DPR_RESULT_MEASURE] = "widened, real, f64 of integers",
                                          [DPR_RESULT_SAME] = "the elements' type",
                                          [DPR_RESULT_INDEX] = "i64",
                                          [DPR_RESULT_NUMBER] = "i64",
                                          [DPR_RESULT_TRUTH] = "bool"};
    const dpr_status status = dpr_check_out("out", out, "DPR_OP_INFO_INIT");
    if (status != DPR_OK)
        return status;
    if (!is_op(op))
        return dpr_fail(DPR_ERR_INVALID_OP, "op is %d, which is no dpr_op", (int)op);
    const dpr_op_row *row = row_of_op(op);
    const char *types = row->domain == DPR_DOMAIN_ANY       ? "all types"
                        : row->domain == DPR_DOMAIN_ORDERED ? "all but complex"
                                                            : "bool and integers";
    const dpr_op_info found = {.id = row->id, .text = row->text, .types = types, .result = results[row->result]};
    return dpr_fill_out(out, &found, sizeof found);
}

dpr_status dpr_dtype_describe(dpr_dtype dtype, dpr_dtype_info *out) {
    const dpr_status status = dpr_check_out("out", out, "DPR_DTYPE_INFO_INIT");
    if (status != DPR_OK)
        return status;
    if (!is_dtype(dtype))
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "dtype is %d, which is no dpr_dtype", (int)dtype);
    const dpr_dtype_row *row = row_of_dtype(dtype);
    const dpr_dtype_info found = {.id = row->id, .text = row->text, .npy = row->npy, .kind = (dpr_kind)row->kind};
    return dpr_fill_out(out, &found, sizeof found);
}

dpr_status dpr_op_parse(const char *name, dpr_op *out) {
    if (!name || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name ? "out" : "name");
    for (int i = 0; i < DPR_OP_COUNT; i++) {
        if (strcmp(name, dpr_ops[i].name) == 0) {
            *out = dpr_op_at((size_t)i);
            return DPR_OK;
        }
    }
    return dpr_fail(DPR_ERR_INVALID_OP, "there is no operation \"%.64s\"", name);
}

dpr_status dpr_dtype_parse(const char *name, dpr_dtype *out) {
    if (!name || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name ? "out" : "name");
    for (int i = 0; i < DPR_DTYPE_COUNT; i++) {
        if (strcmp(name, dpr_dtypes[i].name) == 0) {
            *out = dpr_dtype_at((size_t)i);
            return DPR_OK;
        }
    }
    return dpr_fail(DPR_ERR_INVALID_DTYPE, "there is no element type \"%.64s\"", name);
}

size_t dpr_env_count(void) {
    return DPR_ENVS;
}

/* Whether the library does what the value says: an instruction set is also one that this processor has. */
static int is_followed(dpr_env variable, const char *value) {
    return variable == DPR_ENV_CPU_ISA ? dpr_cpu_kernels_find(value) != NULL : dpr_env_is_understood(variable, value);
}

dpr_status dpr_env_describe(size_t i, dpr_env_info *out) {
    const dpr_status status = dpr_check_out("out", out, "DPR_ENV_INFO_INIT");
    if (status != DPR_OK)
        return status;
    if (i >= DPR_ENVS)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "i is %zu, and the library reads %d environment variables", i,
                        DPR_ENVS);
    const dpr_env_row *row = &dpr_envs[i];
    const char *value = dpr_env_value((dpr_env)i);
    const dpr_env_info found = {.name = row->name,
                                .text = row->text,
                                .values = row->values,
                                .by_default = row->by_default,
                                .value = value,
                                .understood = !value || is_followed((dpr_env)i, value)};
    return dpr_fill_out(out, &found, sizeof found);
}

int dpr_supported(dpr_op op, dpr_dtype dtype) {
    return is_supported(op, dtype);
}

size_t dpr_result_values(dpr_op op) {
    return (size_t)dpr_op_values(op);
}

dpr_dtype dpr_result_dtype(dpr_op op, dpr_dtype dtype) {
    return is_supported(op, dtype) ? dpr_pair_result(op, dtype) : DPR_DTYPE_NONE;
}
