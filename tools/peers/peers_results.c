#include "peers_results.h"

#include <stdlib.h>
#include <string.h>

peers_row *peers_add_row(peers_results *r) {
    if (r->count == r->room) {
        const size_t room = r->room ? 2 * r->room : 256;
        peers_row *rows = realloc(r->rows, room * sizeof *rows);
        if (!rows)
            return NULL;
        r->rows = rows;
        r->room = room;
    }
    peers_row *row = &r->rows[r->count++];
    memset(row, 0, sizeof *row);
    return row;
}

void peers_free(peers_results *r) {
    free(r->rows);
    results_free(&r->common);
    *r = (peers_results){0};
}

size_t peers_table_rows(const peers_results *r, size_t first) {
    size_t n = 1;
    while (first + n < r->count && results_same_table(&r->rows[first].row.at, &r->rows[first + n].row.at))
        n++;
    return n;
}

size_t peers_case_rows(const peers_results *r, size_t first) {
    const size_t most = peers_table_rows(r, first);
    size_t n = 1;
    while (n < most && r->rows[first + n].row.at.count == r->rows[first].row.at.count)
        n++;
    return n;
}

const peers_row *peers_find(const peers_results *r, const bench_case *at, const char *subject) {
    for (size_t i = 0; i < r->count; i++) {
        const bench_row *row = &r->rows[i].row;
        if (row->at.count == at->count && results_same_table(&row->at, at) && strcmp(row->strategy, subject) == 0)
            return &r->rows[i];
    }
    return NULL;
}

int peers_good(const peers_row *row) {
    return results_timed(&row->row) && row->row.wrong == 0;
}

size_t peers_bad(const peers_results *r) {
    size_t bad = 0;
    for (size_t i = 0; i < r->count; i++)
        bad += r->rows[i].row.state == BENCH_FAILED || r->rows[i].row.wrong != 0;
    return bad;
}
