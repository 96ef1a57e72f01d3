/* fuzz_saved.c: any bytes as a program file. The first byte says what is corrected: lengths and
 * checksum (1), of several parts only the length of all (2); without that hardly any change would
 * get past them. A program that loads is legal, is
 * printed, is saved again, to the same bytes, and runs: its attributes may be anything that infer
 * lets pass, and no memory is touched that should not be. */
#include "backend/cpu/table/cpu.h"
#include "diff/loops/loop.h"
#include "program/file/file.h"
#include "program/run.h"
#include "rules/structural_ids.h"

#include "counted.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, HEAD = 24, PART = 12, SUM = 8 };
/* Of programs that are run. */
enum { MOST_INPUTS = 64, MOST_ELEMENTS = 4096, MOST_STEPS = 64 };

static void broken(const char *what) {
    fprintf(stderr, "fuzz_saved: %s\n", what);
    abort();
}

/* Memory is in proportion to the file: what asks for much more has believed it. */
static void *proportional(void *user, void *ptr, size_t old_size, size_t new_size) {
    if (new_size > 64 * MOST_BYTES + 65536) broken("a file of few bytes asks for many");
    return counted(user, ptr, old_size, new_size);
}

typedef struct heard { int errors; char text[512]; } heard;

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    if (code == COT_OK) broken("an error without a code");
    h->errors++;
    snprintf(h->text, sizeof h->text, "%s", text);
}
static void hear_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

typedef struct left { const uint8_t *at; size_t size; } left;
static bool is_next(void *to, const void *bytes, size_t n) {
    left *l = to;
    if (n > l->size || memcmp(l->at, bytes, n) != 0) return false;
    l->at += n, l->size -= n;
    return true;
}

static void is_what_it_says(const cot__program *p, const uint8_t *bytes, size_t size, const cot__caller *caller) {
    static char text[4096];
    cot__text   to = cot__text_buffer(text, sizeof text);
    left        l = {bytes, size};
    if (!cot__program_check(p, &to)) broken(text);
    cot__program_print(p, &to);
    if (!cot__program_save(p, is_next, &l, caller) || l.size) broken("a program is saved to other bytes");
}

/* ---- running --------------------------------------------------------------------------------- */

/* Loops of many steps, searches of many, and loops that go on while a test says so. */
static bool may_take_long(const cot__program *p, uint32_t k) {
    const cot__attr *a = cot__operation_attr(p, k);
    for (uint32_t i = 0; a && i < a->nints; i++)
        if (a->ints[i] > MOST_STEPS) return true;
    return (p->operation[k].op == OP_loop || p->operation[k].op == OP_loop_adjoint) && cot__loop_job_effect(a);
}

/* Views may have as many elements as they like, and reading all of them takes for ever. Bodies nest
 * no deeper than COT__PROGRAM_DEPTH. */
static bool is_small(const cot__program *p, int64_t *steps) {
    for (uint32_t v = 0; v < p->values; v++) {
        cot__view x = cot__value_view(p, v);
        if (cot__view_size(&x) > MOST_ELEMENTS) return false;
    }
    for (uint32_t k = 0; k < p->operations; k++)
        if (cot__operation_bodies(p, k) && may_take_long(p, k)) return false;
    for (uint32_t k = 0; k < p->bodies; k++)
        if (++*steps > MOST_STEPS || !is_small(p->body[k], steps)) return false;
    return p->inputs <= MOST_INPUTS;
}

/* Elements of an input, each byte of which is a small number, in just so many bytes. */
static void *elements_of(const cot__program *p, uint32_t input) {
    cot__view x = cot__value_view(p, p->input[input]);
    size_t    bytes = (size_t)(cot__view_size(&x) * cot__dtype_size(x.dtype));
    uint8_t  *at = malloc(bytes ? bytes : 1);
    if (!at) abort();
    for (size_t k = 0; k < bytes; k++) at[k] = x.dtype == COT_BOOL || k % 3 == 0 ? k / 3 % 2 : 0;
    return at;
}

static void runs(const cot__program *p) {
    heard         h = {0};
    size_t        used = 0;
    cot__caller   caller = {"run", &h, hear_error, hear_note, NULL};
    cot_allocator al = {counted, &used};
    void         *in[MOST_INPUTS];
    cot__run     *r = cot__run_create(p, &cot__cpu_backend, &al, NULL, &caller);
    if (!r && h.errors != 1) broken("a run is refused without a sentence");
    for (uint32_t k = 0; r && k < p->inputs; k++) in[k] = elements_of(p, k);
    if (r && !cot__run_go(r, (const void *const *)in, NULL) && !cot__run_message(r)[0])
        broken("a run fails without a sentence");
    for (uint32_t k = 0; r && k < p->inputs; k++) free(in[k]);
    cot__run_destroy(r);
    if (used != 0) broken("memory of a run that was not given back");
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Lengths, that of a part where there is one, and the checksum. */
static size_t correct(uint8_t *bytes, size_t size, bool parts) {
    if (size >= HEAD) cot__to_bytes(bytes + 16, size + SUM, 8);
    if (size >= HEAD + PART && !parts) cot__to_bytes(bytes + HEAD + 4, size - HEAD - PART, 8);
    cot__to_bytes(bytes + size, cot__checksum(0, bytes, size), SUM);
    return size + SUM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    heard       h = {0};
    size_t      used = 0;
    cot__caller caller = {"load", &h, hear_error, hear_note, NULL};
    if (size < 2 || size > MOST_BYTES) return 0;
    size_t   n = size - 1, whole = n + (data[0] & 1 ? SUM : 0);
    uint8_t *bytes = malloc(whole); /* just so many, so that a sanitizer sees a read beyond them */
    if (!bytes) abort();
    memcpy(bytes, data + 1, n);
    if (data[0] & 1) correct(bytes, n, data[0] & 2);
    cot__program *p = cot__program_load(bytes, whole, &(cot_allocator){proportional, &used}, &caller);
    if (p ? h.errors != 0 : h.errors != 1 || strncmp(h.text, "[load] ", 7) != 0) broken("refused without a sentence");
    if (p) is_what_it_says(p, bytes, whole, &caller);
    int64_t bodies = 0;
    if (p && is_small(p, &bodies)) runs(p);
    cot__program_release(p);
    free(bytes);
    if (used != 0) broken("memory that was not given back");
    return 0;
}
