#include "request.h"

#include <string.h>

#include "element.h"
#include "error.h"
#include "partial.h"
#include "plan/registry.h"
#include "plan/text.h"

/* The greatest nesting depth by the CUDA programming guide; bytes of a dpr_launch_report in version 0.2. */
enum { MOST_DEPTH = 24, FIRST_REPORT_BYTES = 32 };

dpr_status dpr_request_report_size(const char *what, size_t given, size_t *out) {
    const size_t size = given == 0 ? FIRST_REPORT_BYTES : given;
    if (size % _Alignof(dpr_launch_report) != 0 || size > DPR_MOST_REPORT_BYTES)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "%s is %zu; it should be sizeof(dpr_launch_report)", what, given);
    *out = size;
    return DPR_OK;
}

static dpr_status take_init(const dpr_options *options, dpr_request *request) {
    if (!options->init)
        return DPR_OK;
    if (!request->op->takes_init)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->init is set, but %s has no initial value", request->op->name);
    memcpy(request->init.bytes, options->init, request->out_size);
    request->init.present = 1;
    return DPR_OK;
}

static dpr_status take_block(const dpr_launch_options *launch, dpr_request *request) {
    const int block = launch->block;
    if (block == 0)
        return DPR_OK;
    if (block < 32 || block > 1024 || (block & (block - 1)) != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "options->launch->block is %d; it should be 0, 32, 64, 128, 256, 512 or 1024", block);
    for (int rest = block; rest > 1; rest /= 2)
        request->key.f.block++;
    return DPR_OK;
}

static dpr_status take_report(const dpr_launch_options *launch, dpr_request *request) {
    if (!launch->report)
        return DPR_OK;
    if ((uintptr_t)launch->report % _Alignof(dpr_launch_report) != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "options->launch->report is %p, which is not aligned to %zu bytes",
                        (void *)launch->report, _Alignof(dpr_launch_report));
    request->launch_report = launch->report;
    return dpr_request_report_size("options->launch->report_size", launch->report_size, &request->report_size);
}

static dpr_status take_launch(const dpr_launch_options *given, dpr_request *request) {
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_status status = dpr_adopt("options->launch", "dpr_launch_options", given, &launch, sizeof launch);
    if (status == DPR_OK)
        status = take_block(&launch, request);
    if (status != DPR_OK)
        return status;
    if (launch.max_depth < 0 || launch.max_depth > MOST_DEPTH)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->launch->max_depth is %d; it should be from 0 to %d",
                        launch.max_depth, MOST_DEPTH);
    if (launch.max_pending < DPR_NO_LAUNCHES)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "options->launch->max_pending is %d; it should be a number of launches, 0 or DPR_NO_LAUNCHES",
                        launch.max_pending);
    if (launch.reserved != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->launch->reserved is %d; it should be 0", launch.reserved);
    request->key.f.depth = (uint8_t)launch.max_depth;
    request->max_pending = launch.max_pending;
    return take_report(&launch, request);
}

static dpr_status take_options(const dpr_options *given, dpr_request *request) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_status status = dpr_adopt("options", "dpr_options", given, &options, sizeof options);
    if (status != DPR_OK)
        return status;
    if (options.mode != DPR_MODE_DEFAULT && options.mode != DPR_FAST)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->mode is %d, which is no dpr_mode", (int)options.mode);
    if (options.nan != DPR_NAN_PROPAGATE && options.nan != DPR_NAN_IGNORE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->nan is %d, which is no dpr_nan", (int)options.nan);
    if (options.divisor != DPR_DIVISOR_POPULATION && options.divisor != DPR_DIVISOR_SAMPLE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->divisor is %d, which is no dpr_divisor",
                        (int)options.divisor);
    if ((unsigned)options.effort > DPR_MEASURE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->effort is %d, which is no dpr_effort", (int)options.effort);
    if (options.strategy && *options.strategy) {
        const int i = dpr_strategy_find(options.strategy);
        if (i < 0)
            return dpr_fail(DPR_ERR_UNKNOWN_STRATEGY,
                            "options->strategy is \"%.64s\", and no strategy of this build has that name",
                            options.strategy);
        request->key.f.strategy = (uint8_t)(i + 1);
    }
    request->key.f.mode = options.mode & 15;
    request->key.f.nan = (uint8_t)options.nan;
    request->key.f.effort = request->key.f.strategy ? 0 : (uint8_t)options.effort;
    request->init.sample = options.divisor == DPR_DIVISOR_SAMPLE;
    request->stream = options.stream;
    if (options.launch)
        status = take_launch(options.launch, request);
    return status == DPR_OK ? take_init(&options, request) : status;
}

/* Fails because one of them is no such value. Calls take the type before the operation, and others take it behind. */
static dpr_status refuse_pair(dpr_op op, dpr_dtype dtype) {
    const char *of_dtype = dpr_op_name((dpr_op)dtype), *of_op = dpr_dtype_name((dpr_dtype)op);
    if (of_dtype)
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "dtype is the operation %s; it and op may be swapped", of_dtype);
    if (of_op)
        return dpr_fail(DPR_ERR_INVALID_OP, "op is the type %s; it and dtype may be swapped", of_op);
    if (!dpr_op_name(op))
        return dpr_fail(DPR_ERR_INVALID_OP, "op is %d, which is no dpr_op", (int)op);
    return dpr_fail(DPR_ERR_INVALID_DTYPE, "dtype is %d, which is no dpr_dtype", (int)dtype);
}

dpr_status dpr_request_make(dpr_op op, dpr_dtype dtype, size_t count, const dpr_options *options, dpr_request *out) {
    if ((unsigned)op - DPR_FIRST_OP >= DPR_OP_COUNT || (unsigned)dtype - DPR_FIRST_DTYPE >= DPR_DTYPE_COUNT)
        return refuse_pair(op, dtype);
    const dpr_op_row *o = &dpr_ops[DPR_ROW(op)];
    const dpr_dtype_row *d = &dpr_dtypes[DPR_ROW(dtype)];
    size_t bytes;
    if (!(o->domain & d->kind))
        return dpr_fail(DPR_ERR_UNSUPPORTED_PAIR, "op %s has no meaning for dtype %s", o->name, d->name);
    if (__builtin_mul_overflow(count, d->size, &bytes) || bytes > PTRDIFF_MAX)
        return dpr_fail(DPR_ERR_SIZE, "count is %zu; an array has at most %td bytes, so %td elements of %s", count,
                        (ptrdiff_t)PTRDIFF_MAX, PTRDIFF_MAX / d->size, d->name);
    if (count == 0 && o->result == DPR_RESULT_INDEX)
        return dpr_fail(DPR_ERR_EMPTY, "count is 0; %s has no result for zero elements", o->name);
    const dpr_dtype_row *result = &dpr_dtypes[DPR_ROW(dpr_result_dtype(op, dtype))];
    *out = (dpr_request){.op = o,
                         .dtype = d,
                         .result = result,
                         .count = count,
                         .out_size = (size_t)o->values * result->size,
                         .out_align = result->align,
                         .key.f = {.op = DPR_ROW(op), .dtype = DPR_ROW(dtype), .ops = UINT32_C(1) << DPR_ROW(op)}};
    return options ? take_options(options, out) : DPR_OK;
}

/* A sentence about an operation says which one it is. */
static dpr_status name_operation(dpr_status status, size_t i) {
    dpr_kept_error kept;
    if (status != DPR_ERR_INVALID_OP && status != DPR_ERR_UNSUPPORTED_PAIR && status != DPR_ERR_EMPTY)
        return status;
    dpr_error_keep(&kept);
    return dpr_fail(status, "ops[%zu]: %s", i, kept.sentence);
}

/* Fails if there is an initial value, before it is read: it may be of any operation. */
static dpr_status refuse_init(const dpr_options *given) {
    dpr_options options = DPR_OPTIONS_INIT;
    const dpr_status status = given ? dpr_adopt("options", "dpr_options", given, &options, sizeof options) : DPR_OK;
    if (status == DPR_OK && options.init)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->init is set; a call of several operations takes none");
    return status;
}

dpr_status dpr_request_fuse(const dpr_op *ops, size_t n, const char *argument, dpr_dtype dtype, size_t count,
                            const dpr_options *options, dpr_request *out) {
    dpr_outputs fused = {.count = n > 1 ? (int)n : 0};
    uint32_t rows = 0;
    if (!ops)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ops is NULL");
    if (n < 1 || n > DPR_FUSED_MOST)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "%s is %zu; it should be from 1 to %d", argument, n, DPR_FUSED_MOST);
    dpr_status status = refuse_init(options);
    if (status != DPR_OK)
        return status;
    for (size_t i = n; i-- > 0;) { /* the first is made last, and stays */
        status = dpr_request_make(ops[i], dtype, count, options, out);
        if (status != DPR_OK)
            return name_operation(status, i);
        fused.op[i] = DPR_ROW(ops[i]);
        rows |= out->key.f.ops;
    }
    out->key.f.ops = rows;
    out->key.f.fused = n > 1;
    out->fused = fused;
    return DPR_OK;
}

dpr_status dpr_request_no_stream(const dpr_request *request, const char *options) {
    if (!request->stream)
        return DPR_OK;
    return dpr_fail(DPR_ERR_INVALID_OPTION,
                    "%s->stream is %p; it is for calls that wait for their result on a GPU, and should be NULL here",
                    options, (void *)request->stream);
}

dpr_status dpr_request_partial(uint64_t first_index, dpr_request *request) {
    const dpr_op op = dpr_key_op(&request->key);
    const dpr_dtype dtype = dpr_key_dtype(&request->key);
    if (request->init.present)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "options->init is set; an initial value belongs to dpr_partial_finish()");
    if (request->op->result == DPR_RESULT_INDEX && first_index > INT64_MAX - request->count)
        return dpr_fail(DPR_ERR_SIZE, "first_index is %llu; it should be at most 2^63 - 1 - count, and count is %zu",
                        (unsigned long long)first_index, request->count);
    request->key.f.partial = 1;
    request->label = dpr_partial_label(op, dtype, (dpr_nan)request->key.f.nan);
    request->first_index = first_index;
    request->out_size = sizeof(uint64_t) * (size_t)dpr_partial_words(op, dtype);
    request->out_align = sizeof(uint64_t);
    return DPR_OK;
}

/* Makes a request of the problem's operations, for `count` elements. */
static dpr_status make(const dpr_problem *problem, size_t count, dpr_request *out) {
    return problem->ops ? dpr_request_fuse(problem->ops, problem->op_count, "problem->op_count", problem->dtype, count,
                                           problem->options, out)
                        : dpr_request_make(problem->op, problem->dtype, count, problem->options, out);
}

/* A sentence about the number of elements says that it comes from the extents. */
static dpr_status name_extents(dpr_status status) {
    dpr_kept_error kept;
    if (status != DPR_ERR_EMPTY && status != DPR_ERR_SIZE)
        return status;
    dpr_error_keep(&kept);
    return dpr_fail(status, "by problem->extents, %s", kept.sentence);
}

/* A problem of one array. */
static dpr_status take_array(const dpr_problem *problem, dpr_request *out, dpr_shape *shape) {
    uint64_t elements = 0;
    *shape = dpr_shape_of_array();
    if (problem->dimensions == 0 && (problem->extents || problem->strides))
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->%s is set; it should be NULL, because problem->dimensions is 0",
                        problem->extents ? "extents" : "strides");
    if (problem->dimensions == 0)
        return make(problem, problem->count, out);
    const dpr_status status = dpr_shape_of_dimensions(problem, shape, &elements);
    return status == DPR_OK ? name_extents(make(problem, (size_t)elements, out)) : status;
}

/* A problem with segments or axes. There may be no elements, whatever the operation. */
static dpr_status take_parts(const dpr_problem *problem, dpr_request *out, dpr_shape *shape) {
    uint64_t elements = problem->count;
    const char *name = problem->segments ? "segments" : "axes";
    if ((problem->segments && problem->axes) || problem->dimensions != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->%s and problem->%s are both set",
                        problem->dimensions != 0 ? "dimensions" : "axes", name);
    if (problem->device_count || problem->extents || problem->strides)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->%s is set; it should be NULL, because problem->%s is set",
                        problem->device_count ? "device_count"
                        : problem->extents    ? "extents"
                                              : "strides",
                        name);
    dpr_status status = make(problem, problem->count > 0 ? problem->count : 1, out);
    if (status == DPR_OK)
        status = problem->segments ? dpr_shape_of_segments(problem->segments, shape)
                                   : dpr_shape_of_axes(problem->axes, out->op, shape, &elements);
    if (status != DPR_OK)
        return status;
    if (problem->count != 0 && problem->count != elements)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->count is %zu; it should be 0 or %llu, the product of axes->extents", problem->count,
                        (unsigned long long)elements);
    if (shape->check)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "segments->check is 1; it should be 0 in problem->segments");
    out->count = (size_t)elements;
    return DPR_OK;
}

/* A problem with keys. `count` may be 0, whatever the operation. */
static dpr_status take_keys(const dpr_problem *problem, dpr_request *out, dpr_shape *shape) {
    const dpr_keys keys = {problem->key_dtype, problem->room, problem->device_count};
    const char *const other = problem->segments     ? "segments"
                              : problem->axes       ? "axes"
                              : problem->dimensions ? "dimensions"
                              : problem->extents    ? "extents"
                              : problem->strides    ? "strides"
                                                    : NULL;
    if (other)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->%s and problem->key_dtype are both set", other);
    dpr_status status = dpr_shape_check_keys("problem->key_dtype", problem->key_dtype, problem->count);
    if (status == DPR_OK)
        status = make(problem, problem->count > 0 ? problem->count : 1, out);
    out->count = problem->count;
    *shape = dpr_shape_of_keys(&keys, problem->count);
    return status;
}

static dpr_status take(const dpr_problem *problem, dpr_request *out, dpr_shape *shape) {
    if (problem->key_dtype != DPR_DTYPE_NONE)
        return take_keys(problem, out, shape);
    if (problem->room != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->room is %llu; it should be 0 without problem->key_dtype",
                        (unsigned long long)problem->room);
    return problem->segments || problem->axes ? take_parts(problem, out, shape) : take_array(problem, out, shape);
}

/* Fails if a problem with segments, keys, axes or gaps has several operations, or one with keys, axes or gaps a launch
 * report. */
static dpr_status check_shape(const dpr_request *request, const dpr_shape *shape) {
    if (dpr_shape_is_array(shape))
        return DPR_OK;
    if (request->fused.count > 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->op_count is %d; it should be 1 for an array with segments, keys, axes or gaps",
                        request->fused.count);
    if (request->launch_report && shape->kind == DPR_SHAPE_AXES)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "options->launch->report is set; an array with axes or gaps is reduced without nested "
                        "launches");
    if (request->launch_report && shape->keys.dtype != DPR_DTYPE_NONE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "options->launch->report is set; a plan of keys writes no report");
    return DPR_OK;
}

dpr_status dpr_request_of_problem(const dpr_problem *problem, int has_gpu, dpr_problem *adopted, dpr_request *out,
                                  dpr_shape *shape) {
    dpr_status status = dpr_adopt("problem", "dpr_problem", problem, adopted, sizeof *adopted);
    if (status == DPR_OK)
        status = take(adopted, out, shape);
    if (status == DPR_OK)
        status = check_shape(out, shape);
    if (status != DPR_OK)
        return status;
    if (adopted->reserved != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->reserved is %d; it should be 0", adopted->reserved);
    if (!adopted->ops && adopted->op_count != 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "problem->op_count is %zu; it should be 0, because problem->ops is NULL", adopted->op_count);
    if ((unsigned)adopted->memory > DPR_MEMORY_DEVICE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->memory is %d, which is no dpr_memory", (int)adopted->memory);
    status = dpr_request_no_stream(out, "problem->options");
    if (status != DPR_OK)
        return status;
    const dpr_memory usual = has_gpu ? DPR_MEMORY_DEVICE : DPR_MEMORY_HOST;
    out->key.f.in_memory = (uint8_t)(adopted->memory == DPR_MEMORY_AUTO ? usual : adopted->memory);
    dpr_shape_key(shape, &out->key);
    return DPR_OK;
}

static void explain_report(dpr_text *text, const void *subject) {
    const dpr_launch_report *report = subject;
    dpr_text_add(text, "kernels made %u launch%s", report->launched, report->launched == 1 ? "" : "es");
    if (report->launched > 0)
        dpr_text_add(text, ", the deepest at depth %u", report->deepest);
    dpr_text_add(text, "; %u %s refused", report->refused, report->refused == 1 ? "was" : "were");
    if (report->failed > 0)
        dpr_text_add(text, "; %u failed, the first with cudaError_t %d in block %u at depth %u", report->failed,
                     report->error, report->error_block, report->error_depth);
    dpr_text_add(text, "; %u sub-tree%s done in line", report->in_line, report->in_line == 1 ? " was" : "s were");
}

dpr_status dpr_launch_report_explain(const dpr_launch_report *report, size_t report_size, char *text, size_t *len) {
    dpr_launch_report known = {0};
    size_t size = 0;
    if (!report || !len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", report ? "len" : "report");
    const dpr_status status = dpr_request_report_size("report_size", report_size, &size);
    if (status != DPR_OK)
        return status;
    memcpy(&known, report, size < sizeof known ? size : sizeof known);
    return dpr_text_fill(explain_report, &known, text, len);
}

void dpr_request_run(const dpr_request *request, dpr_run *out) {
    static const dpr_run nothing; /* copied, because compilers clear a struct of this size with a slow instruction */
    *out = nothing;
    out->count = request->count;
    out->key = request->key;
    out->init = request->init;
    out->label = request->label;
    out->first_index = request->first_index;
    out->max_pending = request->max_pending;
    out->report = out->launch_report = request->launch_report;
    out->report_size = request->report_size;
}

const char *dpr_request_out(const dpr_request *request, int i) {
    static const char *const names[DPR_FUSED_MOST] = {"outs[0]", "outs[1]", "outs[2]", "outs[3]",
                                                      "outs[4]", "outs[5]", "outs[6]", "outs[7]"};
    return request->label ? "partial" : request->fused.count > 0 ? names[i] : "out";
}

static dpr_op op_of(const dpr_request *request, int i) {
    return (dpr_op)(DPR_FIRST_OP + request->fused.op[i]);
}

size_t dpr_request_out_size(const dpr_request *request, int i) {
    return request->fused.count > 0 ? dpr_pair_size(op_of(request, i), dpr_key_dtype(&request->key))
                                    : request->out_size;
}

static dpr_status check_out(const dpr_request *request, int i, const void *out) {
    const dpr_dtype_row *result = request->result;
    size_t align = request->out_align;
    if (request->fused.count > 0) {
        result = &dpr_dtypes[DPR_ROW(dpr_pair_result(op_of(request, i), dpr_key_dtype(&request->key)))];
        align = result->align;
    }
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", dpr_request_out(request, i));
    if ((uintptr_t)out % align == 0)
        return DPR_OK;
    return dpr_fail(DPR_ERR_MISALIGNED, "%s is %p, which is not aligned to the %zu bytes of %s",
                    dpr_request_out(request, i), out, align, request->label ? "a partial result" : result->name);
}

dpr_status dpr_request_check(const dpr_request *request, const void *in, void *const *outs) {
    dpr_status status = DPR_OK;
    if (!in && request->count > 0)
        return dpr_fail(DPR_ERR_NULL_POINTER, "in is NULL, and count is %zu", request->count);
    for (int i = 0; i < dpr_request_outs(request) && status == DPR_OK; i++)
        status = check_out(request, i, outs[i]);
    if (status != DPR_OK)
        return status;
    if (in && (uintptr_t)in % request->dtype->align != 0)
        return dpr_fail(DPR_ERR_MISALIGNED, "in is %p, which is not aligned to the %d bytes of %s", in,
                        request->dtype->align, request->dtype->name);
    return DPR_OK;
}

dpr_status dpr_request_reaches_stream(const char *argument, const void *pointer, dpr_place place) {
    if (place.memory != DPR_MEMORY_HOST)
        return DPR_OK;
    return dpr_fail(DPR_ERR_MEMORY_KIND, "%s is %p in pageable host memory, which a stream cannot reach", argument,
                    pointer);
}
