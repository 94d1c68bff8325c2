/* Tables of help texts, made from the lists, each below a heading. */
#ifndef DPR_TOOLS_TABLES_H
#define DPR_TOOLS_TABLES_H

/* Which element types an operation takes, in words. */
const char *tables_domain(int op);

/* Lists operations and types; and strategies, too. */
void tables_print_pairs(void);
void tables_print_all(void);

/* Characters of the longest strategy's name. */
int tables_strategy_width(void);

/* Lists the strategies. Without `with_gpu` one line counts those that run on a GPU, instead of listing them. */
void tables_print_strategies(int with_gpu);

/* Prints that line alone; nothing in a build without strategies for GPUs. */
void tables_print_left_out(void);

#endif
