/* bits_hash [--families|--items] [--only FAMILY] [--threads N]: one hash of many results, so that
 * two processors can be compared by one number: the last line, `bits VERSION HASH`. With --families
 * there is a line for each family before it, with --items one for each result, too. docs/bits.md
 * says which machines must give the same. */
#include "bits/bits.h"

#include "base/parallel.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the hash -------------------------------------------------------------------------------- */

static uint64_t    family_hash, item_hash;
static char        item_name[128];
static bool        item_open, print_items;
static const char *family_name;

static uint64_t mixed(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9fb21c651e98df25);
    return h ^ h >> 32;
}

static void add(uint64_t word) { item_hash = mixed(item_hash, word); }

static void item_close(void) {
    if (!item_open) return;
    if (print_items) printf("  %s/%s %016llx\n", family_name, item_name, (unsigned long long)item_hash);
    family_hash = mixed(family_hash, item_hash);
    item_hash   = 0;
    item_open   = false;
}

void bits_item(const char *format, ...) {
    va_list args;
    item_close();
    va_start(args, format);
    vsnprintf(item_name, sizeof item_name, format, args);
    va_end(args);
    item_open = true;
}

static void add_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    add(isnan(x) ? UINT64_C(0x7ff8000000000000) : bits);
}

/* Floats as doubles, which hold them all; integers as they are. */
static void add_elements(cot_var x) {
    int64_t n      = cot_size(x);
    bool    whole  = !cot__dtype_is_float(cot_dtype_of(x));
    void   *buffer = malloc((size_t)n * 8 + 8);
    if (cot_read_as(x, whole ? COT_I64 : COT_F64, buffer, n) != COT_OK) n = 0;
    for (int64_t i = 0; i < n; i++)
        if (whole)
            add((uint64_t)((int64_t *)buffer)[i]);
        else
            add_f64(((double *)buffer)[i]);
    free(buffer);
}

void bits_var(cot_var x) {
    if (!cot_is_valid(x)) {
        add(UINT64_C(0xdead));
        return;
    }
    cot_shape s = cot_shape_of(x);
    add((uint64_t)cot_dtype_of(x));
    for (int k = 0; k < s.ndim; k++) add((uint64_t)s.dim[k]);
    add_elements(x);
}

void bits_gradient(cot_var leaf) {
    int64_t n      = cot_size(leaf);
    double *buffer = malloc((size_t)n * sizeof *buffer + 8);
    if (cot_read_grad(leaf, buffer, n) == COT_OK) bits_numbers(n, buffer);
    free(buffer);
}

void bits_numbers(int64_t n, const double *x) {
    for (int64_t i = 0; i < n; i++) add_f64(x[i]);
}

void bits_one(const char *name, cot_var x) {
    bits_item("%s", name);
    bits_var(x);
}

void bits_close(cot_tape *t) {
    add((uint64_t)cot_tape_status(t));
    if (cot_tape_status(t) != COT_OK && getenv("COT_BITS_SHOW_ERRORS"))
        fprintf(stderr, "%s/%s: %s\n", family_name, item_name, cot_tape_message(t));
    cot_tape_destroy(t);
}

/* ---- inputs and functions -------------------------------------------------------------------- */

cot_var bits_leaf(cot_tape *t, cot_dtype dtype, cot_shape shape, int stream, double lo, double hi) {
    int64_t     n       = test_shape_size(&shape);
    double     *numbers = malloc((size_t)n * sizeof *numbers + 8);
    test_random random  = test_random_of("bits", stream);
    for (int64_t i = 0; i < n; i++) numbers[i] = test_uniform(&random, lo, hi);
    cot_var x = cot_cast(cot_data(t, COT_F64, shape, numbers), dtype);
    free(numbers);
    return cot__dtype_is_float(dtype) ? cot_leaf(x) : x;
}

cot_var bits_loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

void bits_derivatives(cot_var y, int n, const cot_var *xs) {
    cot_var tangents[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
    bits_var(y);
    if (!cot_is_valid(y) || !cot_requires_grad(y)) return;
    for (int k = 0; k < n; k++) tangents[k] = cot_detach(cot_sub(cot_mul(xs[k], 0.25), 0.5));
    bits_var(cot_jvp(y, n, xs, tangents));
    cot_var loss = bits_loss(y);
    cot_backward(loss);
    for (int k = 0; k < n; k++) bits_gradient(xs[k]);
    if (cot_grad_of(loss, n, xs, grads) != COT_OK) return;
    for (int k = 0; k < n; k++) bits_var(grads[k]);
}

/* ---- the program ----------------------------------------------------------------------------- */

#define BITS_ROW(name) {#name, bits_family_##name},
static const struct {
    const char *name;
    void (*run)(void);
} families[] = {BITS_FAMILIES(BITS_ROW)};

/* Even small work is cut into parts. */
static void set_threads(int n) {
    cot_set_threads(n);
    cot__grain = 1;
}

static int usage(void) {
    fprintf(stderr, "usage: bits_hash [--families|--items] [--only FAMILY] [--threads N]\n");
    return 2;
}

int main(int argc, char **argv) {
    bool        print_families = false;
    const char *only           = NULL;
    uint64_t    all            = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--families") == 0)
            print_families = true;
        else if (strcmp(argv[i], "--items") == 0)
            print_families = print_items = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            set_threads(atoi(argv[++i]));
        else
            return usage();
    }
    for (int k = 0; k < TEST_COUNT(families); k++) {
        if (only && strcmp(only, families[k].name) != 0) continue;
        family_hash = 0;
        family_name = families[k].name;
        families[k].run();
        item_close();
        if (print_families) printf("%s %016llx\n", family_name, (unsigned long long)family_hash);
        all = mixed(all, family_hash);
    }
    printf("bits %d %016llx\n", COT_BITS, (unsigned long long)all);
    return 0;
}
