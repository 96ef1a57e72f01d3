/* recipe.c: recipes are put together from leaves and steps. */
#include "backend/recipe.h"
#include "rules/elementwise_ids.h"
#include "rules/elementwise_table.h"

#include <string.h>

size_t cot__product_from = 1 << 20, cot__product_times = 4;

bool cot__recipe_pays(size_t made, size_t read) {
    return made >= cot__product_from && made >= cot__product_times * read;
}

bool cot__recipe_may_hold(int op) {
    return op == OP_div || (cot__elementwise_table[op].class == ARITH && op != OP_pow && op != OP_fmod &&
                            op != OP_remainder && op != OP_where);
}

int cot__recipe_leaf(cot__recipe *r, const void *data, uint64_t number, const int64_t *stride) {
    size_t bytes = (size_t)r->ndim * sizeof *stride;
    for (int k = 0; k < r->leaves; k++)
        if (r->leaf[k].data == data && r->leaf[k].number == number && memcmp(r->leaf[k].stride, stride, bytes) == 0)
            return ~k;
    if (r->leaves == COT__RECIPE_LEAVES) return COT__RECIPE_NONE;
    r->leaf[r->leaves].data = data;
    r->leaf[r->leaves].number = number;
    memcpy(r->leaf[r->leaves].stride, stride, bytes);
    return ~r->leaves++;
}

int cot__recipe_step(cot__recipe *r, int op, const int8_t arg[3]) {
    for (int k = 0; k < r->steps; k++)
        if (r->step[k].op == op && memcmp(r->step[k].arg, arg, 3) == 0) return k;
    if (r->steps == COT__RECIPE_STEPS) return COT__RECIPE_NONE;
    r->step[r->steps].op = op;
    memcpy(r->step[r->steps].arg, arg, 3);
    return r->steps++;
}

bool cot__recipe_close(cot__recipe *r) {
    if (r->steps == 0 || r->step[0].op != COT__RECIPE_PRODUCT) return false;
    const int8_t *arg = r->step[r->steps - 1].arg;
    int           op = r->step[r->steps - 1].op;
    bool          pair = r->steps == 2 && op == OP_mul; /* a product and a second factor */
    r->squares = r->steps == 2 && arg[0] == 0 && (op == OP_square || (pair && arg[1] == 0));
    r->scale = pair && arg[0] < 0 ? ~arg[0] : pair && arg[1] < 0 ? ~arg[1] : -1;
    return true;
}
