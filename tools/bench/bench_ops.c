#include "bench_ops.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

int ops_same(const bench_ops *a, const bench_ops *b) {
    int i = 0;
    while (i < a->n && i < b->n && a->at[i] == b->at[i])
        i++;
    return i == a->n && i == b->n;
}

int ops_have(const bench_ops *ops, dpr_op op) {
    int i = 0;
    while (i < ops->n && ops->at[i] != op)
        i++;
    return i < ops->n;
}

dpr_op ops_unsupported(const bench_ops *ops, dpr_dtype dtype) {
    int i = 0;
    while (i < ops->n && dpr_supported(ops->at[i], dtype))
        i++;
    return i < ops->n ? ops->at[i] : DPR_OP_NONE;
}

const char *ops_name(const bench_ops *ops, char text[OPS_TEXT]) {
    text[0] = 0;
    for (int i = 0; i < ops->n; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, OPS_TEXT - used, "%s%s", i ? "+" : "", dpr_op_name(ops->at[i]));
    }
    return text;
}

int ops_parse(const char *text, bench_ops *out) {
    const char *rest = text;
    char word[CLI_WORD];
    out->n = 0;
    while (rest) {
        if (out->n == DPR_FUSED_MOST)
            return cli_usage("'%s' has more than %d operations", text, DPR_FUSED_MOST);
        int code = cli_next_word(&rest, '+', word);
        if (code == CLI_OK)
            code = cli_op(word, &out->at[out->n++]);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}
