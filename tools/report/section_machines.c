/* Which results the page shows, and facts of the devices that they come from. */
#include <math.h>
#include <string.h>

#include "figures.h"
#include "page.h"

/* ---- Results ---------------------------------------------------------------------------------------------------- */

enum { STATE = 32 };

/* Rows of results of one file, from number i to end - 1. */
static size_t count_rows(const results *r, size_t i, size_t end) {
    size_t n = 0;
    for (; i < end; i++)
        n += r->at[i].count + (size_t)cJSON_GetArraySize(json_member(r->at[i].document, "engines"));
    return n;
}

/* Says how documents i to end-1 ended: the reason of the first that ended early; otherwise how many cases they left
 * out, which is written to `text`; otherwise "complete". */
static const char *state_of(const results *r, size_t i, size_t end, char text[STATE]) {
    int left_out = 0;
    for (; i < end; i++) {
        left_out += cJSON_GetArraySize(json_member(r->at[i].document, "left_out"));
        const char *ended = json_text(r->at[i].document, "ended_early");
        if (json_true(r->at[i].document, "interrupted") || *ended)
            return *ended ? ended : "interrupted";
    }
    snprintf(text, STATE, left_out == 1 ? "%d case left out" : "%d cases left out", left_out);
    return left_out ? text : "complete";
}

static void put_result(page *p, size_t i, size_t end) {
    html *h = &p->h;
    const result *one = &p->r->at[i];
    char state[STATE];
    if (!html_row(h, result_file(one), (double)i))
        return;
    html_cell(h, result_program(one->kind));
    html_cell(h, one->device);
    html_cell(h, json_text(one->document, "version"));
    html_cell(h, json_text(one->document, "commit"));
    html_number(h, one->kind == RESULT_CPU ? NAN : (double)count_rows(p->r, i, end), NULL);
    html_cell(h, state_of(p->r, i, end, state));
}

static void put_results(page *p) {
    static const char *const headings[] = {"file", "program", "device", "version", "commit", "rows", "state"};
    html_table(&p->h, "Results on this page", headings, sizeof headings / sizeof *headings);
    for (size_t i = 0, end; i < p->r->count; i = end) {
        end = result_group_end(p->r, i);
        put_result(p, i, end);
    }
    html_table_end(&p->h);
}

/* ---- Devices ---------------------------------------------------------------------------------------------------- */

enum { MOST_DEVICES = 12 };

static const cJSON *fact_of(const results *r, const char *device, const char *key) {
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *item = strcmp(r->at[i].device, device) == 0 ? device_fact_of(&r->at[i], key) : NULL;
        if (item)
            return item;
    }
    return NULL;
}

static void put_fact(html *h, const cJSON *item, fact_unit unit) {
    const double x = json_value(item);
    char text[32];
    if (unit == FACT_TEXT)
        html_figure(h, NAN, cJSON_GetStringValue(item));
    else if (unit == FACT_BYTES && x >= 0 && x < 0x1p63)
        html_figure(h, x, figure_bytes((uint64_t)x, text));
    else if (unit == FACT_VERSION && x >= 0 && x < 1e9) {
        snprintf(text, sizeof text, "%d.%d", (int)x / 1000, (int)x % 1000 / 10);
        html_figure(h, x, text);
    } else {
        html_number(h, unit == FACT_MHZ ? x / 1000 : x, NULL);
    }
}

/* The rate of the memory's pins: two transfers a clock. */
static double peak_rate(const results *r, const char *device) {
    const cJSON *clock = fact_of(r, device, "memory_clock_khz"), *bits = fact_of(r, device, "memory_bus_bits");
    return 2 * json_value(clock) * 1e3 * json_value(bits) / 8 / 1e9;
}

/* Devices by name. Returns how many there are. */
static size_t list_devices(const results *r, const result *first[MOST_DEVICES]) {
    size_t n = 0;
    for (size_t i = 0; i < r->count && n < MOST_DEVICES; i++) {
        size_t k = 0;
        while (k < n && strcmp(first[k]->device, r->at[i].device) != 0)
            k++;
        if (k == n)
            first[n++] = &r->at[i];
    }
    return n;
}

static void put_devices(page *p) {
    const result *devices[MOST_DEVICES];
    const char *headings[MOST_DEVICES + 1] = {"fact"};
    const size_t n = list_devices(p->r, devices);
    for (size_t i = 0; i < n; i++)
        headings[i + 1] = devices[i]->device;
    html_table(&p->h, "Facts of the devices", headings, n + 1);
    for (size_t k = 0; k < DEVICE_FACTS; k++) {
        (void)html_row(&p->h, device_facts[k].name, (double)k);
        for (size_t i = 0; i < n; i++)
            put_fact(&p->h, fact_of(p->r, devices[i]->device, device_facts[k].key), device_facts[k].unit);
    }
    (void)html_row(&p->h, "memory rate by clock and bus, GB/s", DEVICE_FACTS);
    for (size_t i = 0; i < n; i++)
        html_number(&p->h, peak_rate(p->r, devices[i]->device), NULL);
    (void)html_row(&p->h, "best measured rate of reading memory, GB/s", DEVICE_FACTS + 1);
    for (size_t i = 0; i < n; i++)
        html_number(&p->h, result_best_rate(devices[i]), NULL);
    html_table_end(&p->h);
    if (n == MOST_DEVICES)
        html_put(&p->h, "<p class=\"note\">The table has the first %d devices.</p>\n", MOST_DEVICES);
}

void section_machines(page *p) {
    put_results(p);
    put_devices(p);
    for (size_t i = 0; i < p->r->count; i++)
        page_warn(p, &p->r->at[i]);
}
