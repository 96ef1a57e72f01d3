/* step_make.c: steps that make values from nothing: leaves, constants, borrowed memory, numbers. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 8 * MOST_ELEMENTS };

static int64_t size_of(cot_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.ndim; i++) n *= s.dim[i];
    return n;
}

static size_t bytes_of(cot_dtype d) {
    static const size_t bytes[] = {8, 4, 2, 2, 8, 4, 1, 1};
    return bytes[d];
}

/* Numbers in a dtype, as cot_cast makes them: on a tape of its own, so that no step is seen. */
static void fill(const frame *f, chooser *c, cot_dtype d, int64_t n, void *out) {
    static double numbers[MOST_ELEMENTS];
    cot_tape     *t = cot_tape_create(NULL);
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = choose_number(f, c);
        numbers[i] *= 1 + f->run->shake * (double)(i % 3 - 1);
        if (d >= COT_I64) numbers[i] = (double)(int64_t)(numbers[i] > -9 && numbers[i] < 9 ? 2 * numbers[i] : 3);
    }
    cot_read_as(cot_data(t, COT_F64, (cot_shape){1, {n}}, numbers), d, out, n);
    cot_tape_destroy(t);
}

STEP_FUNCTION(leaf) {
    static unsigned char data[ROOM];
    run                 *r = f->run;
    cot_shape            s = choose_shape(c, 3);
    cot_dtype            d = choose_float(c, r->flags & MIXED);
    if (f->depth > 0 || r->leaves == MOST_LEAVES) return;
    if (r->given) {
        r->leaf[r->leaves] = put(f, r->given[r->leaves]);
        r->leaves++;
        return;
    }
    fill(f, c, d, size_of(s), data);
    if (s.ndim == 0) {
        double x = choose_number(f, c) * (1 + r->shake);
        say(f, "cot_scalar_of(t, %s, %.17g)", cot_dtype_name(d), x);
        r->leaf[r->leaves] = put(f, cot_scalar_of(r->tape, d, x));
    } else {
        say(f, "cot_tensor(t, %s, %s, …)", cot_dtype_name(d), shape_text(s));
        r->leaf[r->leaves] = put(f, cot_tensor(r->tape, d, s, chance(c, 16) ? NULL : data));
    }
    if (r->leaf[r->leaves].name >= 0) r->leaves++;
}

STEP_FUNCTION(data) {
    static unsigned char numbers[ROOM];
    cot_shape            s = choose_shape(c, 3);
    cot_dtype            d = f->run->flags & MIXED || chance(c, 2) ? choose_dtype(c) : COT_F64;
    fill(f, c, d, size_of(s), numbers);
    say(f, "cot_data(t, %s, %s, …)", cot_dtype_name(d), shape_text(s));
    put(f, cot_data(f->run->tape, d, s, numbers));
}

STEP_FUNCTION(wrap) {
    run      *r = f->run;
    cot_shape s = choose_shape(c, 2);
    cot_dtype d = choose_float(c, r->flags & MIXED);
    if (r->lends == (int)(sizeof r->lent / sizeof *r->lent) || f->depth > 0) return;
    void *lent = malloc((size_t)size_of(s) * bytes_of(d) + 1);
    if (!lent) return;
    r->lent[r->lends++] = lent;
    fill(f, c, d, size_of(s), lent);
    say(f, "cot_wrap(t, %s, %s, …)", cot_dtype_name(d), shape_text(s));
    put(f, cot_wrap(r->tape, d, s, lent));
}

STEP_FUNCTION(create) {
    run      *r = f->run;
    cot_shape s = choose_shape(c, 3);
    cot_dtype d = f->run->flags & MIXED ? choose_dtype(c) : chance(c, 4) ? COT_I64 : COT_F64;
    double    x = choose_number(f, c);
    int64_t   n = choose_extent(c), m = choose_extent(c);
    switch (choose(c, 5)) {
    case 0: say(f, "cot_zeros(t, %s, %s)", cot_dtype_name(d), shape_text(s)), put(f, cot_zeros(r->tape, d, s)); break;
    case 1:
        say(f, "cot_full(t, %s, %s, %s)", cot_dtype_name(d), shape_text(s), number_text(x)),
            put(f, cot_full(r->tape, d, s, x));
        break;
    case 2:
        say(f, "cot_arange(t, %s, 0, %lld, 1)", cot_dtype_name(d), (long long)n),
            put(f, cot_arange(r->tape, d, 0, (double)n, 1));
        break;
    case 3:
        say(f, "cot_linspace(t, %s, %s, 2, %lld)", cot_dtype_name(d), number_text(x), (long long)n);
        put(f, cot_linspace(r->tape, d, x, 2, n));
        break;
    default:
        say(f, "cot_eye(t, %s, %lld, %lld)", cot_dtype_name(d), (long long)n, (long long)m),
            put(f, cot_eye(r->tape, d, n, m));
    }
}

STEP_FUNCTION(number) {
    double x = choose_number(f, c);
    say(f, "cot_constant(t, %s)", number_text(x));
    put(f, cot_constant(f->run->tape, x));
}
