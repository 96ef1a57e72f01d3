/* fuzz_tape.c: any bytes as a tape file. The first byte says whether lengths and checksums are
 * corrected; without that hardly any change would get past them. A tape that loads is well formed,
 * is printed, and swept. */
#include "compile/tape_file.h"

#include "program/file/file.h"
#include "program/loop_form.h"
#include "rules/structural_ids.h"

#include "counted.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, MOST_VARS = 4, HEAD = 24, PART = 12, SUM = 8 };

static void broken(const char *what) {
    fprintf(stderr, "fuzz_tape: %s\n", what);
    abort();
}

static void correct_one(uint8_t *bytes, size_t size) {
    cot__to_bytes(bytes + 16, size, 8);
    cot__to_bytes(bytes + size - SUM, cot__checksum(0, bytes, size - SUM), SUM);
}

/* Does a program of these bytes have a second part, a body's? */
static bool has_parts(const uint8_t *program, uint64_t size) {
    uint64_t first = cot__from_bytes(program + HEAD + 4, 8), rest = size - HEAD - PART - SUM;
    return first <= rest && rest - first >= 4 && !memcmp(program + HEAD + PART + first, "PROG", 4);
}

/* The file, and the program within it, whose length stays. Of several parts, all lengths do. */
static void correct(uint8_t *bytes, size_t size) {
    uint64_t program = size >= HEAD + 8 ? cot__from_bytes(bytes + HEAD, 8) : 0;
    if (size < HEAD + SUM) return;
    if (program >= HEAD + PART + SUM && size >= HEAD + 8 + SUM && program <= size - HEAD - 8 - SUM) {
        if (!has_parts(bytes + HEAD + 8, program))
            cot__to_bytes(bytes + HEAD + 8 + HEAD + 4, program - HEAD - PART - SUM, 8);
        correct_one(bytes + HEAD + 8, program);
    }
    correct_one(bytes, size);
}

/* A loop may have as many steps as it likes, or a test that never ends it: loading does them
 * all. */
static bool has_few_steps(const cot__program *p) {
    for (uint32_t k = 0; k < p->operations; k++) {
        int op = p->operation[k].op;
        if (op == OP_linear_solve && cot__operation_attr(p, k)->ints[0] > 64) return false;
        if (op == OP_root && cot__operation_attr(p, k)->ints[2] > 64) return false;
        if (op != OP_loop && op != OP_loop_adjoint) continue;
        cot__form f = cot__form_of(cot__operation_attr(p, k));
        if (f.tests || f.length > 64) return false;
    }
    for (uint32_t k = 0; k < p->bodies; k++)
        if (!has_few_steps(p->body[k])) return false;
    return true;
}

static void ignore(const cot__caller *c, cot_status status, const char *text) { (void)c, (void)status, (void)text; }

static bool is_short(const uint8_t *bytes, size_t size) {
    cot__caller caller = {.name = "fuzz_tape", .fail = ignore};
    uint64_t    n = size >= HEAD + 8 ? cot__from_bytes(bytes + HEAD, 8) : 0;
    if (n > size - HEAD - 8) return true; /* it is refused */
    size_t        used = 0;
    cot_allocator al = {counted, &used};
    cot__program *p = cot__program_load(bytes + HEAD + 8, n, &al, &caller);
    bool          few = !p || has_few_steps(p);
    cot__program_release(p);
    return few;
}

/* A sweep over elements that are many only because they repeat would never end. */
static bool is_small(const cot_tape *t) {
    for (uint32_t i = 0; i < t->count; i++)
        if (cot__size_at(t, i) > 4096) return false;
    return true;
}

static void use(cot_tape *t, cot_var y) {
    static char text[4096];
    if (cot_tape_check(t, text, sizeof text) != COT_OK) broken(text);
    if (!is_small(t)) return;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (out) cot_tape_print(t, out), fclose(out);
    if (cot_is_valid(y) && cot_requires_grad(y)) cot_backward(cot_sum(y, COT_ALL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t    used = 0;
    cot_var   vars[MOST_VARS] = {0};
    if (size < 2 || size > MOST_BYTES) return 0;
    size_t    n = size - 1;
    int       m = data[0] >> 1 & (MOST_VARS - 1);
    uint8_t  *bytes = malloc(n); /* just so many, so that a sanitizer sees a read beyond them */
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {counted, &used}});
    if (!bytes || !t) abort();
    memcpy(bytes, data + 1, n);
    if (data[0] & 1) correct(bytes, n);
    bool loaded = is_short(bytes, n) && cot__tape_file_record(t, bytes, n, m, vars);
    if (!is_short(bytes, n)) cot__fail(t, COT_LIMIT, "[fuzz_tape] too many steps");
    if (loaded != (cot_tape_status(t) == COT_OK)) broken("refused without an error");
    if (!loaded && cot_tape_message(t)[0] != '[') broken("refused without a sentence");
    if (loaded) use(t, m ? vars[0] : COT_NONE);
    cot_tape_destroy(t);
    free(bytes);
    if (used != 0) broken("memory that was not given back");
    return 0;
}
