/* The text of wisdom, line by line:
 *
 *   dpr wisdom 1                                        the format's version
 *   library 0.2.0 9ae16a3b2f90404f                      of dpr, and a signature of its lists of strategies, ...
 *   gpu 3fe3c0a1d54a2d11 NVIDIA H200                    a processor: its signature and name
 *   time flat.ticket sum f32 device stream array 1024:2350000 2048:2360000
 *                                                       a strategy of the processor above and a kind of call; numbers
 *                                                       of elements, and picoseconds. Plans of effort DPR_MEASURE write
 *                                                       warm-call and warm-stream instead of call and stream
 *   end 4 a1b2c3d4e5f60718                              how many lines are above, and a signature of their bytes
 *
 * Words are divided by one space. The last line tells a file that was cut off or changed. */
#include <string.h>

#include "error.h"
#include "lists.h"
#include "registry.h"
#include "text.h"
#include "wisdom_parts.h"

/* Strategies, operations and types, whose numbers places have. */
static uint64_t sign_registry(void) {
    uint64_t signature = DPR_SIGNATURE_START;
    for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++)
        signature = dpr_sign_word(signature, dpr_strategies[i]->name);
    for (int i = 0; i < DPR_OP_COUNT; i++)
        signature = dpr_sign_word(signature, dpr_ops[i].name);
    for (int i = 0; i < DPR_DTYPE_COUNT; i++)
        signature = dpr_sign_word(signature, dpr_dtypes[i].name);
    return signature;
}

static const char *const shape_names[DPR_WISE_SHAPES] = {"array", "offsets", "ranges", "axes"};
static const char *const run_names[DPR_WISE_RUNS] = {"call", "stream", "warm-call", "warm-stream"};

/* ---- Writing ---- */

/* Writes the times from `first` on that have one place. Returns the index after the last of them. */
static size_t write_line(dpr_text *text, const dpr_wisdom *w, size_t first) {
    const dpr_wise_place p = dpr_wise_unpack(w->time[first].place);
    size_t i = first;
    dpr_text_add(text, "time %s %s %s %s %s %s", dpr_strategies[p.strategy]->name, dpr_ops[p.op].name,
                 dpr_dtypes[p.dtype].name, dpr_memory_name((dpr_memory)p.memory), run_names[p.run],
                 shape_names[p.shape]);
    if (p.shape != DPR_WISE_ARRAY)
        dpr_text_add(text, ":%d", p.segments - 1);
    for (; i < w->times && w->time[i].place == w->time[first].place; i++)
        dpr_text_add(text, " %llu:%llu", (unsigned long long)w->time[i].count,
                     (unsigned long long)w->time[i].picoseconds);
    dpr_text_add(text, "\n");
    return i;
}

static void format(dpr_text *text, const void *subject) {
    const dpr_wisdom *w = subject;
    size_t i = 0;
    int lines = 2;
    dpr_text_add(text, "dpr wisdom 1\nlibrary %s %016llx\n", DPR_VERSION_TEXT, (unsigned long long)sign_registry());
    for (int k = 0; k < w->processors; k++) {
        const dpr_wise_processor *p = &w->processor[k];
        dpr_text_add(text, "%s %016llx %s\n", p->on_gpu ? "gpu" : "cpu", (unsigned long long)p->signature, p->name);
        for (lines++; i < w->times && dpr_wise_unpack(w->time[i].place).processor == k; lines++)
            i = write_line(text, w, i);
    }
    const uint64_t signature = text->buffer ? dpr_sign(DPR_SIGNATURE_START, text->buffer, text->used) : 0;
    dpr_text_add(text, "end %d %016llx\n", lines, (unsigned long long)signature);
}

dpr_status dpr_wisdom_format(const dpr_wisdom *wisdom, char *text, size_t *len) {
    return dpr_text_fill(format, wisdom, text, len);
}

/* ---- Reading ---- */

typedef struct reader {
    const char *text, *at, *end;
    int line; /* from 1 */
    dpr_wisdom *wisdom;
    int processor; /* of the times that follow; below 0: none yet */
} reader;

static dpr_status refuse(const reader *r, const char *why) {
    return dpr_fail(DPR_ERR_WISDOM, "line %d: %s", r->line, why);
}

/* Copies the next word, up to a space or the end of the line, and steps over the space. 0 if it is empty, has `size`
 * bytes and more, or has a control character. */
static int take_word(reader *r, char *word, size_t size) {
    size_t n = 0;
    int has_control = 0;
    for (; r->at < r->end && *r->at != ' ' && *r->at != '\n'; r->at++, n++) {
        has_control |= dpr_wise_is_control(*r->at);
        if (n + 1 < size)
            word[n] = *r->at;
    }
    word[n < size ? n : 0] = 0;
    if (r->at < r->end && *r->at == ' ')
        r->at++;
    return n > 0 && n < size && !has_control;
}

/* Whether the line ends here. Steps over its end. */
static int take_end(reader *r) {
    const int ends = r->at < r->end && *r->at == '\n';
    r->at += ends;
    r->line += ends;
    return ends;
}

/* Reads a word of digits only. Leading zeros are refused. */
static int take_number(const char *word, uint64_t most, uint64_t *out) {
    uint64_t n = 0;
    if (!*word || (word[0] == '0' && word[1]))
        return 0;
    for (; *word; word++) {
        const uint64_t digit = (uint64_t)(*word - '0');
        if (*word < '0' || *word > '9' || n > (most - digit) / 10)
            return 0;
        n = 10 * n + digit;
    }
    *out = n;
    return 1;
}

/* Reads a word of 16 hexadecimal digits. */
static int take_signature(reader *r, uint64_t *out) {
    char word[20];
    *out = 0;
    if (!take_word(r, word, sizeof word) || strlen(word) != 16)
        return 0;
    for (const char *c = word; *c; c++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *c);
        if (!digit)
            return 0;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return 1;
}

/* Finds the word among `n` names. Returns its number, or -1. */
static int find_name(const char *word, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static dpr_status read_head(reader *r) {
    char word[64];
    uint64_t signature;
    if (r->end - r->at < 13 || memcmp(r->at, "dpr wisdom 1\n", 13) != 0)
        return refuse(r, "it should be \"dpr wisdom 1\"");
    r->at += 12;
    (void)take_end(r);
    if (!take_word(r, word, sizeof word) || strcmp(word, "library") != 0 || !take_word(r, word, sizeof word))
        return refuse(r, "it should begin with \"library\" and a version");
    if (!take_signature(r, &signature))
        return refuse(r, "it should have a signature of 16 hexadecimal digits");
    if (strcmp(word, DPR_VERSION_TEXT) != 0)
        return dpr_fail(DPR_ERR_WISDOM, "line 2: it was written by dpr %s, and this is dpr %s", word, DPR_VERSION_TEXT);
    if (signature != sign_registry())
        return refuse(r, "it was written by a build of dpr with other strategies");
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

static dpr_status read_processor(reader *r, int on_gpu) {
    dpr_wise_processor p = {.on_gpu = on_gpu};
    size_t n = 0;
    if (!take_signature(r, &p.signature))
        return refuse(r, "it should have a signature of 16 hexadecimal digits");
    if (r->at[-1] != ' ')
        return refuse(r, "it should have a space and a name, perhaps an empty one, behind the signature");
    for (; r->at < r->end && *r->at != '\n'; r->at++, n++) {
        if (n + 1 >= sizeof p.name)
            return refuse(r, "the processor's name is too long");
        if (dpr_wise_is_control(*r->at))
            return refuse(r, "the processor's name has a control character");
        p.name[n] = *r->at;
    }
    r->processor = r->wisdom->processors;
    if (dpr_wise_find_processor(r->wisdom, &p) < r->wisdom->processors)
        return refuse(r, "the processor stands there twice");
    if (r->processor == DPR_WISE_PROCESSORS)
        return refuse(r, "there are too many processors");
    r->wisdom->processor[r->wisdom->processors++] = p;
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

/* Reads "array", or another shape with a colon and the logarithm of the number of results. */
static int read_shape(char *word, dpr_wise_place *p) {
    uint64_t log = 0;
    char *colon = strchr(word, ':');
    if (colon)
        *colon = 0;
    const int shape = find_name(word, shape_names, DPR_WISE_SHAPES);
    if (shape < 0 || (shape == DPR_WISE_ARRAY) != !colon || (colon && !take_number(colon + 1, 63, &log)))
        return 0;
    p->shape = (uint8_t)shape;
    p->segments = (uint8_t)(colon ? log + 1 : 0);
    return 1;
}

/* Find the word in the lists of operations and types, as find_name() does. */
static int find_op(const char *word) {
    int i = DPR_OP_COUNT - 1;
    while (i >= 0 && strcmp(word, dpr_ops[i].name) != 0)
        i--;
    return i;
}

static int find_dtype(const char *word) {
    int i = DPR_DTYPE_COUNT - 1;
    while (i >= 0 && strcmp(word, dpr_dtypes[i].name) != 0)
        i--;
    return i;
}

/* The same for kinds of memory, of which DPR_MEMORY_AUTO is none. */
static int find_memory(const char *word) {
    int i = DPR_MEMORY_DEVICE;
    while (i > DPR_MEMORY_AUTO && strcmp(word, dpr_memory_name((dpr_memory)i)) != 0)
        i--;
    return i > DPR_MEMORY_AUTO ? i : -1;
}

/* Reads the words before the times. */
static dpr_status read_place(reader *r, dpr_wise_place *p) {
    char word[64];
    int i;
    if (!take_word(r, word, sizeof word) || (i = dpr_strategy_find(word)) < 0)
        return refuse(r, "the strategy is none of this build");
    if ((dpr_strategies[i]->side == DPR_ON_GPU) != r->wisdom->processor[r->processor].on_gpu)
        return refuse(r, "the strategy does not run on this processor");
    p->strategy = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_op(word)) < 0)
        return refuse(r, "there is no such operation");
    p->op = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_dtype(word)) < 0 || !(dpr_ops[p->op].domain & dpr_dtypes[i].kind))
        return refuse(r, "there is no such element type, or the operation has no meaning for it");
    p->dtype = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_memory(word)) < 0)
        return refuse(r, "there is no such memory");
    p->memory = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || (i = find_name(word, run_names, DPR_WISE_RUNS)) < 0)
        return refuse(r, "it should say \"call\", \"stream\", \"warm-call\" or \"warm-stream\"");
    p->run = (uint8_t)i;
    if (!take_word(r, word, sizeof word) || !read_shape(word, p))
        return refuse(r, "there is no such shape");
    return DPR_OK;
}

static dpr_status read_times(reader *r) {
    char word[64];
    dpr_wise_place p = {.processor = (uint8_t)r->processor};
    if (r->processor < 0)
        return refuse(r, "no processor stands above it");
    const dpr_status status = read_place(r, &p);
    if (status != DPR_OK)
        return status;
    do {
        dpr_wise_time t = {dpr_wise_pack(p), 0, 0}, *last = r->wisdom->time + r->wisdom->times;
        char *colon = take_word(r, word, sizeof word) ? strchr(word, ':') : NULL;
        if (colon)
            *colon = 0;
        if (!colon || !take_number(word, DPR_WISE_MOST, &t.count) || t.count == 0
            || !take_number(colon + 1, DPR_WISE_LONGEST, &t.picoseconds) || t.picoseconds == 0)
            return refuse(r, "a time should be a number of elements, a colon, and picoseconds, both at least 1");
        if (r->wisdom->times == DPR_WISE_TIMES)
            return refuse(r, "there are too many times");
        if (r->wisdom->times > 0 && dpr_wise_compare(last - 1, &t) >= 0)
            return refuse(r, "times do not rise by place and by number of elements");
        *last = t;
        r->wisdom->times++;
    } while (r->at[-1] == ' ');
    return take_end(r) ? DPR_OK : refuse(r, "it should end here");
}

/* Reads the last line, whose first byte is at `begin`. */
static dpr_status read_last(reader *r, const char *begin) {
    char word[24];
    uint64_t lines, signature;
    const int above = r->line - 1;
    if (!take_word(r, word, sizeof word) || !take_number(word, INT32_MAX, &lines) || (int)lines != above)
        return refuse(r, "it should say how many lines are above");
    if (!take_signature(r, &signature)
        || signature != dpr_sign(DPR_SIGNATURE_START, r->text, (size_t)(begin - r->text)))
        return refuse(r, "the text above is not what was written");
    if (!take_end(r))
        return refuse(r, "it should end here");
    return r->at == r->end ? DPR_OK : refuse(r, "text follows the last line");
}

static dpr_status read_lines(reader *r) {
    dpr_status status = read_head(r);
    while (status == DPR_OK) {
        const char *begin = r->at;
        char word[8];
        if (r->at == r->end)
            return refuse(r, "the last line, \"end\", is missing");
        if (!take_word(r, word, sizeof word))
            return refuse(r, "it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
        if (strcmp(word, "end") == 0)
            return read_last(r, begin);
        if (strcmp(word, "time") == 0)
            status = read_times(r);
        else if (strcmp(word, "cpu") == 0 || strcmp(word, "gpu") == 0)
            status = read_processor(r, word[0] == 'g');
        else
            status = refuse(r, "it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
    }
    return status;
}

dpr_status dpr_wisdom_parse(const char *text, size_t size, dpr_wisdom **out) {
    reader r = {text, text, text + size, 1, NULL, -1};
    size_t colons = 0;
    for (size_t i = 0; i < size; i++)
        colons += text[i] == ':';
    r.wisdom = dpr_wisdom_make(colons < DPR_WISE_TIMES ? colons : DPR_WISE_TIMES);
    if (!r.wisdom)
        return DPR_ERR_OUT_OF_MEMORY;
    const dpr_status status = read_lines(&r);
    if (status == DPR_OK)
        *out = r.wisdom;
    else
        dpr_wisdom_release(r.wisdom);
    return status;
}
