/* Results of dpr_peers as text. */
#ifndef DPR_PEERS_REPORT_H
#define DPR_PEERS_REPORT_H

#include <stdio.h>

#include "peers_results.h"

typedef enum peers_format { PEERS_TABLE, PEERS_JSON, PEERS_MARKDOWN, PEERS_FORMATS } peers_format;

/* "table", "json", "markdown"; NULL past the end. Static storage. */
const char *peers_format_name(size_t format);

/* Writes all of it, and how the floors came out if `with_floors`. Errors of the file are for the caller to look for. -1
 * when out of memory, else 0. */
int peers_write(FILE *f, const peers_results *r, peers_format format, int with_floors);

/* One of them. -1 when out of memory, else 0. */
int peers_write_tables(FILE *f, const peers_results *r, int markdown);
void peers_write_floors(FILE *f, const bench_results *r, int markdown);
int peers_write_json(FILE *f, const peers_results *r, int with_floors);

#endif
