/* fuzz_expr: any bytes as an expression. Parsed, and run with a few small inputs on a tape that may
 * take one megabyte; whatever happens, memory is in order, the tape is well formed, and a failure
 * has a sentence and a place within the text. For libFuzzer, and for replay.c. */
#include "base/utf8.h"
#include "expr/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, MEMORY = 1 << 20 };

/* malloc with a limit: an expression may ask for any shape. */
static void *limited(void *user, void *ptr, size_t old_size, size_t new_size) {
    size_t *used = user;
    if (new_size > MEMORY || *used - (ptr ? old_size : 0) + new_size > MEMORY) return NULL;
    if (new_size == 0) {
        *used -= ptr ? old_size : 0;
        free(ptr);
        return NULL;
    }
    void *moved = realloc(ptr, new_size);
    if (moved) *used += new_size - (ptr ? old_size : 0);
    return moved;
}

static void broken(const char *what) {
    fprintf(stderr, "fuzz_expr: %s\n", what);
    abort();
}

static void check_text(const char *s) {
    for (size_t left = strlen(s), n; left > 0; s += n, left -= n)
        if ((n = cot__utf8(s, left)) == 0) broken("text for people that is not UTF-8");
}

static void check_error(const cot__expr_error *error, const char *text, size_t size) {
    char shown[300];
    if (!error->message[0]) broken("a failure without a message");
    if (strcmp(error->message, "there is no value here, and the tape knows no reason") == 0)
        broken("a failure without a reason");
    if (strlen(error->message) >= sizeof error->message) broken("a message without an end");
    if (error->column < 0 || error->column > (int)size + 1 || error->line < 0 || error->line > (int)size + 1)
        broken("a place outside of the text");
    if (error->column > 0 && error->length < 1) broken("a place of no length");
    check_text(error->message);
    cot__expr_show(error, text, size, shown, sizeof shown);
    check_text(shown);
    cot__expr_show(error, text, size, shown, 7);
}

static void run(const cot__expr *e, const char *text, size_t size) {
    static const double  v[] = {0.5, -1, 2}, a[] = {1, 2, 3, 4, 5, 6};
    static const int64_t i[] = {0, 2, 1}, j[] = {1, 1, 0};
    size_t               used = 0;
    cot_tape            *t = cot_tape_create(&(cot_options){.allocator = {limited, &used}});
    cot__expr_error      error;
    cot__expr_span      *spans = NULL;
    int64_t              n = 0;
    char                 why[200];
    if (!t) broken("no tape within a megabyte");
    cot_csr         sparse = cot_csr_from_triplets(t, 3, 3, 3, i, j, cot_tensor(t, COT_F64, COT_SHAPE(3), v));
    cot__expr_input in[] = {{"x", cot_scalar(t, 0.5), NULL},
                            {"y", cot_scalar(t, 3), NULL},
                            {"v", cot_tensor(t, COT_F64, COT_SHAPE(3), v), NULL},
                            {"A", cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), NULL},
                            {"i", cot_data(t, COT_I64, COT_SHAPE(2), i), NULL},
                            {"S", sparse.values, &sparse}};
    int64_t         before = cot_tape_length(t);
    cot_var         z = cot__expr_run(e, t, (int)(sizeof in / sizeof *in), in, &error, &spans, &n);
    if (cot_is_valid(z)) {
        if (n != cot_tape_length(t) - before) broken("a node without a place in the text");
        for (int64_t k = 0; k < n; k++)
            if (spans[k].start > spans[k].stop || spans[k].stop > size) broken("a node from outside of the text");
    } else {
        check_error(&error, text, size);
        cot_tape_clear_error(t);
    }
    if (cot_tape_check(t, why, sizeof why) != COT_OK) broken(why);
    free(spans);
    cot_tape_destroy(t);
    if (used != 0) broken("memory that was not given back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > MOST_BYTES) size = MOST_BYTES;
    size_t          used = 0;
    cot_allocator   al = {limited, &used};
    cot__expr_error error;
    const char     *text = (const char *)data;
    cot__expr      *e = cot__expr_parse_with(&al, text, size, &error);
    if (e)
        run(e, text, size);
    else
        check_error(&error, text, size);
    cot__expr_free(e);
    if (used != 0) broken("memory of the program that was not given back");
    return 0;
}
