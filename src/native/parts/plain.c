/* plain.c: see plain.h. */
#include "native/parts/plain.h"
#include "rules/elementwise_ids.h"

/* Loops that are shorter gain nothing; more operations than functions have lines; results of
 * statements that may wait for the end of their part. */
enum { LEAST_ELEMENTS = 1024, MOST_OPERATIONS = 256, MOST_READ = 16, MOST_LEAVING = 8 };

/* Is the result NaN wherever an operand is? */
static bool hands_on(int op) {
    return op == OP_add || op == OP_sub || op == OP_mul || op == OP_smul || op == OP_div || op == OP_neg ||
           op == OP_square || op == OP_abs || op == OP_fma;
}

static bool is_line(const cot__choice *c, uint32_t k) {
    return c->kind[k] == COT__AS_LOOP || c->kind[k] == COT__AS_STATEMENT;
}

/* Which of these operations makes operand i of k; COT__NO_VALUE: none does. */
static uint32_t maker_in(const cot__choice *c, uint32_t first, uint32_t end, uint32_t k, int i) {
    uint32_t x = cot__operation_operand(c->p, k)[i], root = x == COT__NO_VALUE ? x : c->plan.root[x];
    if (root == COT__NO_VALUE || cot__value_origin(c->p, root) != COT__FROM_OPERATION) return COT__NO_VALUE;
    uint32_t maker = cot__value_maker(c->p, root);
    return maker >= first && maker < end ? maker : COT__NO_VALUE;
}

static bool makes_floats(const cot__choice *c, uint32_t k) {
    return cot__dtype_is_float(cot__value_view(c->p, c->p->operation[k].result).dtype);
}

/* Of operations first … end - 1, of which those that are `shown` are looked at: does every NaN that
 * a product makes get there, and are there more products than looks? */
static bool shows_products(const cot__choice *c, uint32_t first, uint32_t end, bool shown[MOST_OPERATIONS]) {
    int products = 0, looks = 0;
    for (uint32_t k = first; k < end; k++) looks += shown[k - first];
    for (uint32_t k = end; k-- > first;) {
        int op = c->p->operation[k].op;
        if (is_line(c, k) && op == OP_smul && ++products && !shown[k - first]) return false;
        if (!shown[k - first] || (is_line(c, k) && !hands_on(op))) continue;
        for (int i = 0; i < cot__operation_operands(c->p, k); i++) {
            uint32_t maker = maker_in(c, first, end, k, i);
            if (maker != COT__NO_VALUE) shown[maker - first] = true;
        }
    }
    return products > looks;
}

/* ---- loops ----------------------------------------------------------------------------------- */

bool cot__native_is_seen(const cot__writer *w, const cot__choice *c, uint32_t k) {
    uint32_t z = c->p->operation[k].result;
    bool     written = is_line(c, k) ? w->layout.home[z] != COT__AT_LOOP : c->kind[k] == COT__AS_FOLD;
    return written && makes_floats(c, k);
}

bool cot__native_can_be_plain(const cot__writer *w, const cot__choice *c, const cot__group *g) {
    bool shown[MOST_OPERATIONS] = {false};
    if (g->size < LEAST_ELEMENTS || g->end - g->first > MOST_OPERATIONS) return false;
    for (uint32_t k = g->first; k < g->end; k++) shown[k - g->first] = cot__native_is_seen(w, c, k);
    return shows_products(c, g->first, g->end, shown);
}

/* ---- statements ------------------------------------------------------------------------------ */

bool cot__native_leaves(const cot__choice *c, const cot__run_part *q, uint32_t k) {
    for (uint32_t i = 0; i < q->values; i++)
        if (c->value[q->value + i] == c->p->operation[k].result) return true;
    return false;
}

bool cot__native_part_can_be_plain(const cot__choice *c, const cot__run_part *q) {
    bool shown[MOST_OPERATIONS] = {false};
    int  leave = 0;
    if (q->end - q->first > MOST_OPERATIONS) return false;
    for (uint32_t k = q->first; k < q->end; k++) {
        if (c->kind[k] == COT__FOR_NOBODY) continue;
        if (c->kind[k] != COT__AS_STATEMENT) return false;
        bool leaves = cot__native_leaves(c, q, k);
        leave += leaves;
        shown[k - q->first] = leaves && makes_floats(c, k);
    }
    return leave <= MOST_LEAVING && shows_products(c, q->first, q->end, shown);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Arrays that the loop reads and does not make; how many, at most one more than there is room
 * for. */
static int find_read(const cot__writer *w, const cot__choice *c, const cot__group *g, uint32_t read[MOST_READ]) {
    int n = 0;
    for (uint32_t k = g->first; k < g->end; k++)
        for (int i = 0; is_line(c, k) && i < cot__operation_operands(c->p, k); i++) {
            uint32_t x = cot__operation_operand(c->p, k)[i];
            if (x == COT__NO_VALUE || w->layout.home[c->plan.root[x]] == COT__AT_NAME) continue;
            if (maker_in(c, g->first, g->end, k, i) != COT__NO_VALUE) continue;
            int j = 0;
            while (j < n && read[j] != x) j++;
            if (j < n) continue;
            if (n == MOST_READ) return n + 1;
            read[n++] = x;
        }
    return n;
}

void cot__native_put_apart(cot__writer *w, const cot__choice *c, const cot__group *g, int depth) {
    const cot__at_index first = {.flat = "0"};
    uint32_t            read[MOST_READ];
    int                 n = find_read(w, c, g, read);
    cot__put_indent(w, depth);
    cot__putf(w->to, "const bool apart_0 = %d", n <= MOST_READ);
    for (uint32_t k = g->first; k < g->end && n <= MOST_READ; k++) {
        uint32_t z = c->p->operation[k].result;
        if (!is_line(c, k) || w->layout.home[z] == COT__AT_LOOP) continue;
        for (int i = 0; i < n; i++) {
            cot__put(w->to, " && COT_APART(&");
            cot__put_result(w, z, &first);
            cot__put(w->to, ", &");
            cot__put_element(w, read[i], &first);
            cot__putf(w->to, ", %lld)", (long long)g->size);
        }
    }
    cot__put(w->to, ";\n");
}
