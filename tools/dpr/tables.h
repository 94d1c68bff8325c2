/* Tables of help texts, made from the lists, each below a heading. */
#ifndef DPR_TOOLS_TABLES_H
#define DPR_TOOLS_TABLES_H

/* Which element types an operation takes, in words. */
const char *tables_domain(int op);

void tables_print_ops(void);
void tables_print_dtypes(void);
/* Those of a GPU are left out unless `with_gpu`; then a line says how many there are. */
void tables_print_strategies(int with_gpu);

/* That line alone; nothing in a build that has none. */
void tables_print_left_out(void);

#endif
