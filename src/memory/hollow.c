/* hollow.c: a backend that computes nothing: one of the CPU's, whose entries that touch elements do
 * not. Jobs are not run at all (backend/job_run.c). Numbers without axes are written and read all
 * the same, since rules look at them and an adjoint that is 0 would end a sweep: what nobody
 * computes is 1. */
#include "memory/memory.h"
#include "backend/cpu/table/cpu.h"

/* What the host asks for is ones, which no sweep passes over; integers are 0, as they are legal
 * indices. */
static double one_of(cot_dtype d) { return cot__dtype_is_float(d) ? 1 : 0; }
static void   read_ones(const cot__view *v, int64_t first, int n, cot_dtype as, void *host) {
    int64_t size = n, step = 1;
    if (v->ndim == 0) cot__cpu_backend.read(v, first, n, as, host);
    else cot__cpu_backend.fill(&(cot__view){host, as, 1, &size, &step}, one_of(as));
}
static void no_write(const cot__view *v, int64_t first, int n, cot_dtype as, const void *host) {
    (void)v, (void)first, (void)n, (void)as, (void)host;
}
static void fill_number(const cot__view *v, double value) {
    if (v->ndim == 0) cot__cpu_backend.fill(v, value);
}
static void fill_one(const cot__view *v) { fill_number(v, one_of(v->dtype)); }
static void no_copy(const cot__view *to, const cot__view *from) {
    (void)from;
    fill_one(to);
}
/* A truth about numbers is computed: rules go one way or the other by it. */
static bool is_truth(const cot__block_run *r) {
    bool all = r->values && r->out[0].to.ndim == 0 && r->out[0].to.dtype == COT_BOOL;
    for (int k = 0; k < r->n; k++) all &= r->x[k].ndim == 0;
    return all;
}
static void no_elementwise(cot__stage *work) {
    if (work->count == 1 && is_truth(work->run)) {
        cot__cpu_backend.elementwise(work);
        return;
    }
    for (int k = 0; k < work->count; k++)
        for (int i = 0; i < work->run[k].outputs; i++) fill_one(&work->run[k].out[i].to);
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
    if (would) fill_one(z);
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
