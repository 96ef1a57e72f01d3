/* compiled_sparse.c: `compile --jac --sparse` and `--hess --sparse`: the plan of a sparse matrix,
 * and its blocks. A Jacobian is cut into one block for each wanted input, as the command prints it;
 * a Hessian is one. */
#include "compiled/compiled.h"

#include <stdlib.h>

#include "problem/results.h"

static bool list_patterns(compiled *c, failure *f) {
    int blocks  = c->what == HESS ? 1 : c->p->wanted_count;
    c->block    = calloc((size_t)blocks + 1, sizeof *c->block);
    c->patterns = calloc((size_t)blocks + 1, sizeof *c->patterns);
    if (!c->block || !c->patterns) return failure_memory(f);
    c->blocks = blocks;
    /* output 0 is the value */
    for (int k = 0; k < blocks; k++) c->patterns[k + 1] = &c->block[k].info;
    return true;
}

/* The entries of columns left … left + columns - 1, and where they stand among all. */
static bool cut_block(compiled_block *b, const cot_sparse_info *all, int64_t left, int64_t columns, failure *f) {
    b->row_start = malloc(((size_t)all->rows + 1) * sizeof *b->row_start);
    b->col       = malloc(((size_t)all->nnz + 1) * sizeof *b->col);
    b->position  = malloc(((size_t)all->nnz + 1) * sizeof *b->position);
    if (!b->row_start || !b->col || !b->position) return failure_memory(f);
    int64_t n = 0;
    for (int64_t i = 0; i < all->rows; i++) {
        b->row_start[i] = n;
        for (int64_t e = all->row_start[i]; e < all->row_start[i + 1]; e++) {
            int64_t at = all->col[e] - left;
            if (at >= 0 && at < columns) b->col[n] = (int32_t)at, b->position[n++] = e;
        }
    }
    b->row_start[all->rows] = n;
    b->info                 = *all;
    b->info.cols            = columns;
    b->info.nnz             = n;
    b->info.row_start       = b->row_start;
    b->info.col             = b->col;
    return true;
}

bool compiled_sparse_open(compiled *c, failure *f) {
    const problem *p = c->p;
    c->plan          = c->what == HESS ? cot_sparse_hessian_plan(p->y, p->wanted_count, p->wanted)
                                       : cot_sparse_jacobian_plan(1, &p->y, p->wanted_count, p->wanted, COT_AUTO);
    if (!c->plan) return sparse_plan_failure(p, f);
    cot_sparse_info all = cot_sparse_plan_info(c->plan);
    c->mode             = all.mode;
    if (!list_patterns(c, f)) return false;
    if (c->what == HESS) return cut_block(&c->block[0], &all, 0, all.cols, f);
    int64_t left = 0;
    for (int k = 0; k < c->blocks; k++) {
        int64_t columns = cot_size(p->wanted[k]);
        if (!cut_block(&c->block[k], &all, left, columns, f)) return false;
        left += columns;
    }
    return true;
}

void compiled_sparse_close(compiled *c) {
    for (int k = 0; k < c->blocks; k++) {
        free(c->block[k].row_start);
        free(c->block[k].col);
        free(c->block[k].position);
    }
    free(c->block);
    free(c->patterns);
    cot_sparse_plan_destroy(c->plan);
}

void compiled_sparse_blocks(const compiled *c, cot_var values, cot_var *ys) {
    for (int k = 0; k < c->blocks; k++) {
        const compiled_block *b  = &c->block[k];
        cot_var               at = cot_data(values.tape, COT_I64, COT_SHAPE(b->info.nnz), b->position);
        ys[k]                    = c->blocks == 1 ? values : cot_take(values, at, 0);
    }
}
