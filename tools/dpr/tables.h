/* Tables of help texts, made from the lists, each below a heading. */
#ifndef DPR_TOOLS_TABLES_H
#define DPR_TOOLS_TABLES_H

void tables_print_ops(void);
void tables_print_dtypes(void);
void tables_print_strategies(void);

#endif
