/* hollow.c: a backend that computes nothing: one of the CPU's, whose entries that touch elements do
 * not. Jobs are not run at all (backend/job_run.c). Numbers without axes are written all the same,
 * since an adjoint that is 0 would end a sweep: what nobody computes is 1. */
#include "memory/memory.h"
#include "backend/cpu/table/cpu.h"

/* What the host asks for is ones, which no sweep passes over; integers are 0, as they are legal
 * indices. */
static void read_ones(const cot__view *v, int64_t first, int n, cot_dtype as, void *host) {
    (void)v, (void)first;
    int64_t size = n, step = 1;
    cot__cpu_backend.fill(&(cot__view){host, as, 1, &size, &step}, cot__dtype_is_float(as) ? 1 : 0);
}
static void no_write(const cot__view *v, int64_t first, int n, cot_dtype as, const void *host) {
    (void)v, (void)first, (void)n, (void)as, (void)host;
}
static void fill_number(const cot__view *v, double value) {
    if (v->ndim == 0) cot__cpu_backend.fill(v, value);
}
static void no_copy(const cot__view *to, const cot__view *from) {
    (void)from;
    fill_number(to, 1);
}
static void no_elementwise(cot__stage *work) {
    for (int k = 0; k < work->count; k++)
        for (int i = 0; i < work->run[k].outputs; i++) fill_number(&work->run[k].out[i].to, 1);
}
static void no_make(const cot__recipe *r) { (void)r; }
static void no_scatter(const cot__view *x, int axis, const cot__view *index, const cot__view *u) {
    (void)x, (void)axis, (void)index, (void)u;
}
static void no_draw(cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high) {
    (void)kind, (void)key, (void)z, (void)low, (void)high;
}
/* As the CPU would: it decides which memory is needed. */
static bool would_reduce(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                         const cot__view *z) {
    (void)made;
    bool would = cot__cpu_backend.reduce_made(what, x, NULL, axes, z);
    if (would) fill_number(z, 1);
    return would;
}

void cot__hollow_backend(cot__backend *b, const cot__backend *like) {
    *b = *like;
    b->name = "hollow", b->hollow = true;
    b->read = read_ones, b->write = no_write;
    b->copy = b->copy_in = b->copy_out = no_copy;
    b->fill = fill_number, b->elementwise = no_elementwise, b->make = no_make, b->draw = no_draw;
    b->scatter_add = b->scatter_add_along = b->take = b->take_along = no_scatter;
    b->reduce_made = would_reduce;
}
