#include "page_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "document.h"
#include "grow.h"

static const struct {
    const char *benchmark, *program;
} kinds[RESULT_KINDS] = {[RESULT_BENCH] = {"dpr bench", "dpr bench"},
                         [RESULT_PEERS] = {"dpr peers", "dpr_peers"},
                         [RESULT_LADDER] = {"dpr bench --ladder", "dpr bench --ladder"},
                         [RESULT_NESTED] = {"dpr bench --nested", "dpr bench --nested"},
                         [RESULT_RECURSION] = {"dpr recurse", "dpr recurse"},
                         [RESULT_CPU] = {"cpu", "dpr_bench_cpu"}};

const char *result_program(result_kind kind) {
    return kinds[kind].program;
}

/* ---- Members ---------------------------------------------------------------------------------------------------- */

const cJSON *json_member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *json_text(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(json_member(object, key));
    return text ? text : "";
}

double json_value(const cJSON *item) {
    const double x = cJSON_IsNumber(item) ? item->valuedouble : NAN, size = fabs(x);
    return size < 1e-18 ? 0 : size < 1e18 ? x : NAN;
}

double json_number(const cJSON *object, const char *key) {
    return json_value(json_member(object, key));
}

int json_true(const cJSON *object, const char *key) {
    return cJSON_IsTrue(json_member(object, key));
}

/* A time or a rate, which is more than 0. */
static double positive(const cJSON *object, const char *key) {
    const double x = json_number(object, key);
    return x > 0 ? x : NAN;
}

/* ---- Documents -------------------------------------------------------------------------------------------------- */

static const char *shape_of(const cJSON *row) {
    const char *segments = json_text(row, "segments");
    return *segments ? segments : json_text(row, "axes");
}

static result_row row_of(const cJSON *json, size_t number) {
    const char *subject = json_text(json, "subject"), *strategy = json_text(json, "strategy");
    return (result_row){.json = json,
                        .result = number,
                        .subject = *subject ? subject : strategy,
                        .strategy = strategy,
                        .op = json_text(json, "op"),
                        .dtype = json_text(json, "dtype"),
                        .mode = json_text(json, "mode"),
                        .cache = json_text(json, "cache"),
                        .memory = json_text(json, "memory"),
                        .shape = shape_of(json),
                        .count = json_number(json, "count"),
                        .block = json_number(json, "block"),
                        .us = positive(json, "median_us"),
                        .low = positive(json, "low_us"),
                        .high = positive(json, "high_us"),
                        .gb_per_s = json_number(json, "gb_per_s"),
                        .ratio = positive(json, "ratio"),
                        .ok = json_true(json, "ok"),
                        .chosen = json_true(json, "chosen"),
                        .doubtful = json_true(json, "doubtful"),
                        .settled = json_true(json, "settled")};
}

static int read_rows(result *one, size_t number) {
    const cJSON *list = json_member(one->document, "rows"), *json = NULL;
    const int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (n == 0)
        return CLI_OK;
    one->rows = calloc((size_t)n, sizeof *one->rows);
    if (!one->rows)
        return cli_error("out of memory");
    cJSON_ArrayForEach(json, list) {
        if (cJSON_IsObject(json))
            one->rows[one->count++] = row_of(json, number);
    }
    return CLI_OK;
}

/* Programs write the device as an object, and dpr_bench_cpu its name alone. */
static const char *device_of(const cJSON *document) {
    const cJSON *device = json_member(document, "device");
    const char *name = cJSON_IsString(device) ? device->valuestring : json_text(device, "name");
    return *name ? name : "unknown device";
}

const device_fact device_facts[DEVICE_FACTS] = {
    {"kind", "kind", FACT_TEXT},
    {"cpu", "processor of the host", FACT_TEXT},
    {"sm_count", "SMs", FACT_NUMBER},
    {"sm_clock_khz", "clock of the SMs, MHz", FACT_MHZ},
    {"cache_bytes", "L2 cache, or last-level caches", FACT_BYTES},
    {"memory_bytes", "memory", FACT_BYTES},
    {"memory_clock_khz", "clock of the memory, MHz", FACT_MHZ},
    {"memory_bus_bits", "width of the memory bus, bits", FACT_NUMBER},
    {"cuda_driver_version", "CUDA version of the driver", FACT_VERSION},
    {"cuda_runtime_version", "CUDA version of the runtime", FACT_VERSION},
};

const cJSON *device_fact_of(const result *one, const char *key) {
    return json_member(json_member(one->document, "device"), key);
}

/* Whether no fact that both have is different. */
static int is_same_device(const result *a, const result *b) {
    for (int i = 0; i < DEVICE_FACTS; i++) {
        const cJSON *x = device_fact_of(a, device_facts[i].key), *y = device_fact_of(b, device_facts[i].key);
        if (x && y && !cJSON_Compare(x, y, 1))
            return 0;
    }
    return 1;
}

static int count_facts(const result *one) {
    int n = 0;
    for (int i = 0; i < DEVICE_FACTS; i++)
        n += device_fact_of(one, device_facts[i].key) != NULL;
    return n;
}

/* Puts a number behind the name. */
static int number_device(result *one) {
    enum { LONGEST = 160 };
    one->numbered = malloc(LONGEST);
    if (!one->numbered)
        return cli_error("out of memory");
    snprintf(one->numbered, LONGEST, "%.140s (%zu)", one->device, one->namesake + 1);
    one->device = one->numbered;
    return CLI_OK;
}

static int kind_of(const cJSON *document) {
    const char *benchmark = json_text(document, "benchmark");
    int kind = 0;
    while (kind < RESULT_KINDS && strcmp(benchmark, kinds[kind].benchmark) != 0)
        kind++;
    return kind;
}

static int add_document(results *r, const char *file, const cJSON *document) {
    const int kind = kind_of(document);
    if (!cJSON_IsObject(document) || !cJSON_IsString(json_member(document, "benchmark")))
        return cli_error("%s: is no result: it has no member 'benchmark'", document_name(file));
    if (kind == RESULT_KINDS)
        return cli_error("%s: is no result that a page can show: its 'benchmark' is '%.100s'", document_name(file),
                         json_text(document, "benchmark"));
    result *more = grow(r->at, r->count, sizeof *more);
    if (!more)
        return cli_error("out of memory");
    r->at = more;
    r->at[r->count] = (result){
        .file = document_name(file), .kind = (result_kind)kind, .document = document, .device = device_of(document)};
    r->count++;
    return read_rows(&r->at[r->count - 1], r->count - 1);
}

/* Keeps the document until page_results_free(). */
static int keep(results *r, cJSON *document) {
    cJSON **more = grow(r->files, r->file_count, sizeof(cJSON *));
    if (!more) {
        cJSON_Delete(document);
        return cli_error("out of memory");
    }
    r->files = more;
    r->files[r->file_count++] = document;
    return CLI_OK;
}

int page_results_read(results *r, const char *file) {
    cJSON *document = document_read(file, "shown");
    if (!document || keep(r, document) != CLI_OK)
        return CLI_FAILED;
    if (!cJSON_IsArray(document))
        return add_document(r, file, document);
    const cJSON *item = NULL;
    int code = cJSON_GetArraySize(document) ? CLI_OK : cli_error("%s: has no results", document_name(file));
    cJSON_ArrayForEach(item, document) {
        if (code == CLI_OK)
            code = add_document(r, file, item);
    }
    return code;
}

void page_results_free(results *r) {
    for (size_t i = 0; i < r->count; i++) {
        free(r->at[i].rows);
        free(r->at[i].numbered);
    }
    for (size_t i = 0; i < r->file_count; i++)
        cJSON_Delete(r->files[i]);
    free(r->at);
    free(r->files);
    *r = (results){.at = NULL};
}

/* ---- All documents together ------------------------------------------------------------------------------------- */

static double own_read_rate(const result *one) {
    const double rate = positive(one->document, "read_gb_per_s");
    return isfinite(rate) ? rate : positive(json_member(one->document, "reference"), "read_gb_per_s");
}

/* The devices of one name. */
enum { MOST_NAMESAKES = 32 };
typedef struct namesakes {
    const result *model[MOST_NAMESAKES]; /* of a device's documents, the one with the most facts */
    double best_rate[MOST_NAMESAKES];
    size_t count;
} namesakes;

/* The number of the document's device, which is the first one that has its facts. */
static size_t find_device(namesakes *all, const result *one) {
    size_t i = 0;
    while (i < all->count && !is_same_device(all->model[i], one))
        i++;
    if (i == MOST_NAMESAKES)
        return i;
    if (i == all->count) {
        all->best_rate[i] = NAN;
        all->model[all->count++] = one;
    } else if (count_facts(one) > count_facts(all->model[i])) {
        all->model[i] = one;
    }
    all->best_rate[i] = fmax(all->best_rate[i], own_read_rate(one));
    return i;
}

/* Tells the devices of n documents apart, which have the same name. */
static int name_devices(result *const *documents, size_t n) {
    namesakes all = {.count = 0};
    for (size_t i = 0; i < n; i++) {
        result *one = documents[i];
        one->namesake = find_device(&all, one);
        if (one->namesake == MOST_NAMESAKES)
            return cli_error("%s: has a device '%.100s' with other facts than the %d of that name before it", one->file,
                             one->device, MOST_NAMESAKES);
    }
    for (size_t i = 0; i < n; i++) {
        documents[i]->best_rate = all.best_rate[documents[i]->namesake];
        if (documents[i]->namesake && number_device(documents[i]) != CLI_OK)
            return CLI_FAILED;
    }
    return CLI_OK;
}

static int compare_devices(const void *a, const void *b) {
    const result *x = *(result *const *)a, *y = *(result *const *)b;
    const int order = strcmp(x->device, y->device);
    return order ? order : (x > y) - (x < y);
}

static int name_all_devices(results *r) {
    result **documents = calloc(r->count + 1, sizeof(result *));
    int code = CLI_OK;
    if (!documents)
        return cli_error("out of memory");
    for (size_t i = 0; i < r->count; i++)
        documents[i] = &r->at[i];
    qsort(documents, r->count, sizeof(result *), compare_devices);
    for (size_t i = 0, end; i < r->count && code == CLI_OK; i = end) {
        for (end = i + 1; end < r->count && strcmp(documents[i]->device, documents[end]->device) == 0;)
            end++;
        code = name_devices(documents + i, end - i);
    }
    free(documents);
    return code;
}

static int are_together(const result *a, const result *b) {
    return a->file == b->file && a->kind == b->kind && strcmp(a->device, b->device) == 0
           && strcmp(json_text(a->document, "commit"), json_text(b->document, "commit")) == 0;
}

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static const char *label_of(const results *r, const char *file) {
    const char *base = base_of(file);
    for (size_t i = 0; i < r->count; i++)
        if (r->at[i].file != file && strcmp(base_of(r->at[i].file), base) == 0)
            return file;
    return base;
}

int page_results_complete(results *r) {
    if (name_all_devices(r) != CLI_OK)
        return CLI_FAILED;
    for (size_t i = 0; i < r->count; i++) {
        result *one = &r->at[i];
        const result *last = i ? one - 1 : NULL;
        one->label = last && last->file == one->file ? last->label : label_of(r, one->file);
        one->group = last && are_together(last, one) ? last->group : i;
    }
    return CLI_OK;
}

double result_best_rate(const result *one) {
    return one->best_rate;
}

double result_read_rate(const result *one) {
    const double own = own_read_rate(one);
    return isfinite(own) ? own : one->best_rate;
}

size_t result_group_begin(const result *one) {
    return one->group;
}

size_t result_group_end(const results *r, size_t i) {
    size_t end = i + 1;
    while (end < r->count && r->at[end].group == r->at[i].group)
        end++;
    return end;
}

const char *result_file(const result *one) {
    return one->label;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* "axes" or "segments" or "". */
static const char *shape_kind(const result_row *row) {
    return !*row->shape ? "" : *json_text(row->json, "segments") ? "segments" : "axes";
}

static int compare_case(const result_row *a, const result_row *b) {
    const char *const of[][2] = {{shape_kind(a), shape_kind(b)}, {a->op, b->op},
                                 {a->dtype, b->dtype},           {a->mode, b->mode},
                                 {a->cache, b->cache},           {a->memory, b->memory}};
    int order = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of && order == 0; i++)
        order = strcmp(of[i][0], of[i][1]);
    return order;
}

/* Rows of a document lie in one array. */
static int compare_place(const result_row *a, const result_row *b) {
    return a->result != b->result ? (a->result < b->result ? -1 : 1) : (a > b) - (a < b);
}

static int compare_rows(const void *a, const void *b) {
    const result_row *const *x = a, *const *y = b;
    const int order = compare_case(*x, *y);
    return order ? order : compare_place(*x, *y);
}

static int compare_cases(const void *a, const void *b) {
    const result_case *x = a, *y = b;
    return compare_place(x->rows[0], y->rows[0]);
}

static size_t collect(const results *r, result_kind kind, int shaped, const result_row **rows) {
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; r->at[i].kind == kind && k < r->at[i].count; k++)
            if ((*r->at[i].rows[k].shape != 0) == shaped) {
                if (rows)
                    rows[n] = &r->at[i].rows[k];
                n++;
            }
    return n;
}

int result_cases_find(const results *r, result_kind kind, int shaped, result_cases *out) {
    const size_t n = collect(r, kind, shaped, NULL);
    *out = (result_cases){.rows = calloc(n + 1, sizeof(const result_row *)), .at = calloc(n + 1, sizeof *out->at)};
    if (!out->rows || !out->at)
        return -1;
    (void)collect(r, kind, shaped, out->rows);
    qsort(out->rows, n, sizeof(const result_row *), compare_rows);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_case(out->rows[i - 1], out->rows[i]) != 0)
            out->at[out->count++].rows = &out->rows[i];
        out->at[out->count - 1].count++;
    }
    qsort(out->at, out->count, sizeof *out->at, compare_cases);
    return 0;
}

void result_cases_free(result_cases *cases) {
    free(cases->rows);
    free(cases->at);
    *cases = (result_cases){.rows = NULL};
}

const char *result_case_name(const result_row *row, char text[RESULT_NAME]) {
    const char *kind = shape_kind(row);
    snprintf(text, RESULT_NAME, "%.120s of %.60s%s%s, %.60s, %.60s cache%s%.60s%s", row->op, row->dtype,
             *kind ? ", " : "", kind, row->mode, row->cache, *row->memory ? ", " : "", row->memory,
             *row->memory ? " memory" : "");
    return text;
}
