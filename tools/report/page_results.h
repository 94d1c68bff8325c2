/* The results that a page shows: what is in the files, checked and in one shape, whichever program wrote them. */
#ifndef DPR_TOOLS_PAGE_RESULTS_H
#define DPR_TOOLS_PAGE_RESULTS_H

#include <stddef.h>

#include <cjson/cJSON.h>

typedef enum result_kind {
    RESULT_BENCH,
    RESULT_PEERS,
    RESULT_LADDER,
    RESULT_NESTED,
    RESULT_RECURSION,
    RESULT_CPU,
    RESULT_KINDS
} result_kind;

/* The program that writes such results. Static storage. */
const char *result_program(result_kind kind);

/* One time. Strings belong to the document, and are "" where there is none; numbers are NAN there. */
typedef struct result_row {
    const cJSON *json;
    size_t result;       /* the number of its document */
    const char *subject; /* the strategy, or the peer */
    const char *strategy, *op, *dtype, *mode, *cache, *memory;
    const char *shape; /* segments or axes; "": one array with one result */
    double count, block;
    double us, low, high, gb_per_s, ratio;
    int ok, chosen, doubtful, settled;
} result_row;

/* One document. */
typedef struct result {
    const char *file;  /* as messages call it */
    const char *label; /* without the folders, unless another file has the same name */
    result_kind kind;
    const cJSON *document;
    const char *device; /* with a number behind it, if another device has the same name and other facts */
    result_row *rows;
    size_t count;

    /* Private. */
    char *numbered;   /* the memory of `device`; NULL: it belongs to the document */
    size_t namesake;  /* the number of the device among those of its name */
    double best_rate; /* of the device; NAN: none */
    size_t group;     /* the number of the first result of its group */
} result;

typedef struct results {
    result *at;
    size_t count;

    /* Private. */
    cJSON **files;
    size_t file_count;
} results;

/* Reads the documents of a file, and adds them. CLI_OK, or CLI_FAILED after a message. page_results_free() is due in
 * any case. */
int page_results_read(results *r, const char *file);

/* Tells devices of one name apart, and gives the results their labels and groups. CLI_OK, or CLI_FAILED after a
 * message. Due once, when all files are read. */
int page_results_complete(results *r);
void page_results_free(results *r);

/* Members of an object; NULL, "" or NAN where there is none of that kind. Numbers from 1e18 on, which no program
 * measures and which would spoil the axes of plots, are none; those below 1e-18 are 0. */
const cJSON *json_member(const cJSON *object, const char *key);
const char *json_text(const cJSON *object, const char *key);
double json_value(const cJSON *item);
double json_number(const cJSON *object, const char *key);
int json_true(const cJSON *object, const char *key);

/* The rate at which the device reads memory, as the document or another one of the same device has measured it; NAN:
 * none has. */
double result_read_rate(const result *one);

/* The best of the device's; NAN: none. */
double result_best_rate(const result *one);

/* Where the results begin and end that are of the same file, kind, device and commit, and next to each other. */
size_t result_group_begin(const result *one);
size_t result_group_end(const results *r, size_t i);

/* "h200-gpu.json"; with the folders, if there are several files of that name. */
const char *result_file(const result *one);

/* A fact of a device, by which documents of one device are known. NULL: the document does not have it. */
typedef enum fact_unit { FACT_TEXT, FACT_NUMBER, FACT_BYTES, FACT_MHZ, FACT_VERSION } fact_unit;
typedef struct device_fact {
    const char *key, *name;
    fact_unit unit;
} device_fact;
enum { DEVICE_FACTS = 10 };
extern const device_fact device_facts[DEVICE_FACTS];
const cJSON *device_fact_of(const result *one, const char *key);

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* Rows that differ in nothing but the subject, the count and the document. */
typedef struct result_case {
    const result_row *const *rows; /* in the files' order */
    size_t count;
} result_case;

typedef struct result_cases {
    const result_row **rows;
    result_case *at; /* in the order in which they first appear */
    size_t count;
} result_cases;

/* The cases of all documents of a kind; rows with a shape only if `shaped`, which are alike if they are of the same
 * kind of shape. -1 when out of memory. result_cases_free() is due in any case. */
int result_cases_find(const results *r, result_kind kind, int shaped, result_cases *out);
void result_cases_free(result_cases *cases);

/* "sum of f32, graph, cold cache". The text is returned. */
enum { RESULT_NAME = 512 };
const char *result_case_name(const result_row *row, char text[RESULT_NAME]);

#endif
