/* plain.c: see plain.h. */
#include "native/plain.h"
#include "rules/elementwise_ids.h"

/* Loops that are shorter gain nothing; more operations than functions have lines. */
enum { LEAST_ELEMENTS = 1024, MOST_OPERATIONS = 256, MOST_READ = 16 };

/* Is the result NaN wherever an operand is? */
static bool hands_on(int op) {
    return op == OP_add || op == OP_sub || op == OP_mul || op == OP_smul || op == OP_div || op == OP_neg ||
           op == OP_square || op == OP_abs || op == OP_fma;
}

static bool is_line(const cot__choice *c, uint32_t k) { return c->kind[k] == COT__AS_LOOP; }

/* The operation of the group that makes operand i of k; COT__NO_VALUE: none does. */
static uint32_t maker_in(const cot__choice *c, const cot__group *g, uint32_t k, int i) {
    uint32_t x = cot__operation_operand(c->p, k)[i], root = x == COT__NO_VALUE ? x : c->plan.root[x];
    if (root == COT__NO_VALUE || cot__value_origin(c->p, root) != COT__FROM_OPERATION) return COT__NO_VALUE;
    uint32_t maker = cot__value_maker(c->p, root);
    return maker >= g->first && maker < g->end ? maker : COT__NO_VALUE;
}

bool cot__native_is_seen(const cot__writer *w, const cot__choice *c, uint32_t k) {
    uint32_t z = c->p->operation[k].result;
    bool     written = is_line(c, k) ? w->layout.home[z] != COT__AT_LOOP : c->kind[k] == COT__AS_FOLD;
    return written && cot__dtype_is_float(cot__value_view(c->p, z).dtype);
}

bool cot__native_can_be_plain(const cot__writer *w, const cot__choice *c, const cot__group *g) {
    bool shown[MOST_OPERATIONS] = {false};
    int  products = 0, looks = 0;
    if (g->size < LEAST_ELEMENTS || g->end - g->first > MOST_OPERATIONS) return false;
    for (uint32_t k = g->end; k-- > g->first;) {
        int   op = c->p->operation[k].op;
        bool *is_shown = &shown[k - g->first], seen = cot__native_is_seen(w, c, k);
        if (seen) *is_shown = true, looks++;
        if (is_line(c, k) && op == OP_smul && ++products && !*is_shown) return false;
        if (!*is_shown || (is_line(c, k) && !hands_on(op))) continue;
        for (int i = 0; i < cot__operation_operands(c->p, k); i++) {
            uint32_t maker = maker_in(c, g, k, i);
            if (maker != COT__NO_VALUE) shown[maker - g->first] = true;
        }
    }
    return products > looks;
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
            if (maker_in(c, g, k, i) != COT__NO_VALUE) continue;
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
