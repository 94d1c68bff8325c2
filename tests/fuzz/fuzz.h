/* What the fuzzers share: checks that end the program, files in memory, and what the tools print. */
#ifndef DPR_TESTS_FUZZ_H
#define DPR_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dpr.h"

/* libFuzzer calls this with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Ends the program with a message unless the condition holds. libFuzzer then keeps the input. */
#define FUZZ_CHECK(condition, ...) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The path of a file in memory with these bytes, until the next call. */
const char *fuzz_file(const void *bytes, size_t size);

/* The bytes with a zero behind them, which the caller frees. */
char *fuzz_text(const uint8_t *bytes, size_t size);

/* A text has something in it and no control characters but, with `lines`, ends of lines. */
void fuzz_check_text(const char *text, int lines);

/* The library has refused an input: the status is one of status.def, and dpr_last_error() is a sentence. */
void fuzz_check_refusal(dpr_status status);

/* From fuzz_listen() on, what is printed to stdout and stderr goes to memory. fuzz_heard() ends that, and returns the
 * text until the next fuzz_listen(). */
void fuzz_listen(void);
const char *fuzz_heard(void);

#endif
