/* constants.c: what depends on constants alone is computed once, and becomes a constant.
 *
 * All of it together is a program of its own, without inputs, which the executor runs: so the bits
 * are those that every run would compute. Its outputs are the values that something else reads.
 *
 *   - A result may have LARGE bytes, or as many as the operands; all results together TOTAL bytes
 *     more than the constants that were there. So a program does not grow much.
 *   - A view stays a view: it costs nothing, and its elements would be there twice.
 *   - If a check of data refuses something, or something is noted, operations with an effect stay:
 *     the run shall say so, each time.
 *   - Functions of the user's stay. */
#include "backend/backend.h"
#include "program/passes/rewrite.h"
#include "program/run.h"

#include <string.h>

enum { LARGE = 1 << 16, TOTAL = 1 << 20 };

/* What becomes of a value. HERE: it stays for want of room, and what is folded may read it too, so
 * it can be computed now. FOLDED: it is computed now, and read by something that stays. */
enum { STAYS, HERE, GOES, FOLDED };

typedef struct folding {
    const cot__program      *p;
    const cot__pass_options *o;
    uint8_t                 *fate; /* of each value */
    uint32_t                *output; /* of a folded value: which output of the run it is */
    uint32_t                 folded;
    cot__run                *run;
} folding;

/* ---- what can be computed -------------------------------------------------------------------- */

static bool is_view(const cot__program *p, uint32_t k) { return cot__op_of(p->operation[k].op)->view != NULL; }

static bool is_known(const folding *f, uint32_t v) {
    return cot__value_origin(f->p, v) == COT__FROM_CONSTANT || f->fate[v] == GOES;
}

static bool may_be_large(const folding *f, uint32_t k) {
    const cot__operation *o = &f->p->operation[k];
    const uint32_t       *x = cot__operation_operand(f->p, k);
    size_t                results = 0, operands = 0;
    for (uint32_t i = 0; i < o->results; i++) results += cot__value_bytes(f->p, o->result + i);
    for (int i = 0; i < cot__operation_operands(f->p, k); i++)
        if (x[i] != COT__NO_VALUE) operands += cot__value_bytes(f->p, x[i]);
    return results <= LARGE || results <= operands || is_view(f->p, k);
}

static bool can_be_computed(const folding *f, uint32_t k, bool effects) {
    const cot__op  *record = cot__op_of(f->p->operation[k].op);
    const uint32_t *x = cot__operation_operand(f->p, k);
    int             n = cot__operation_operands(f->p, k);
    if (record->opaque || cot__operation_bodies(f->p, k) || n == 0) return false;
    if (!effects && cot__operation_has_effect(f->p, k)) return false;
    for (int i = 0; i < n; i++)
        if (x[i] != COT__NO_VALUE && !is_known(f, x[i])) return false;
    return may_be_large(f, k);
}

static void set_fate(folding *f, uint32_t k, uint8_t fate) {
    const cot__operation *o = &f->p->operation[k];
    for (uint32_t i = 0; i < o->results; i++) f->fate[o->result + i] = fate;
}

static bool is_read(const uint8_t *read, const cot__operation *o) {
    bool any = false;
    for (uint32_t i = 0; i < o->results; i++) any |= read[o->result + i];
    return any;
}

/* From the last operation back: what stays reads its operands, so they are folded; a view that is
 * read stays itself. When there are more bytes than may be, what is left stays. */
static void choose_folded(folding *f, uint8_t *read) {
    const cot__program *p = f->p;
    size_t              bytes = 0;
    memset(read, 0, p->values);
    for (uint32_t k = 0; k < p->outputs; k++) read[p->output[k]] = 1;
    for (uint32_t k = p->operations; k-- > 0;) {
        const cot__operation *o = &p->operation[k];
        const uint32_t       *x = cot__operation_operand(p, k);
        bool                  goes = f->fate[o->result] == GOES, folds = goes && is_read(read, o) && !is_view(p, k);
        for (uint32_t i = 0; i < o->results && folds; i++) bytes += cot__value_bytes(p, o->result + i);
        if (folds && bytes <= TOTAL + p->data_bytes) {
            for (uint32_t i = 0; i < o->results; i++) f->fate[o->result + i] = read[o->result + i] ? FOLDED : GOES;
            f->folded++;
            continue;
        }
        if (goes && !is_read(read, o)) continue; /* what is folded needs it, or nobody */
        set_fate(f, k, goes ? HERE : STAYS);
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE) read[x[i]] = 1;
    }
}

static void choose(folding *f, bool effects, uint8_t *read) {
    memset(f->fate, STAYS, f->p->values);
    f->folded = 0;
    for (uint32_t k = 0; k < f->p->operations; k++)
        if (can_be_computed(f, k, effects)) set_fate(f, k, GOES);
    choose_folded(f, read);
}

/* ---- computing it ---------------------------------------------------------------------------- */

/* The program of what was chosen: all that does not stay, and views between. It has no inputs. */
static void leave_input(cot__rewrite *r, uint32_t v) { (void)r, (void)v; }

static void pick_operation(cot__rewrite *r, uint32_t k) {
    const folding        *f = r->edit->state;
    const cot__operation *o = &f->p->operation[k];
    const uint32_t       *x = cot__operation_operand(f->p, k);
    bool                  known = f->fate[o->result] != STAYS || is_view(f->p, k);
    for (int i = 0; i < cot__operation_operands(f->p, k); i++)
        known &= x[i] == COT__NO_VALUE || r->value[x[i]] != COT__NO_VALUE;
    if (known) cot__rewrite_keep(r, k);
    r->changes++;
}

static void give_folded(cot__rewrite *r) {
    folding *f = r->edit->state;
    uint32_t n = 0;
    for (uint32_t v = 0; v < f->p->values; v++) {
        if (f->fate[v] != FOLDED) continue;
        cot__build_output(&r->to, r->value[v]);
        f->output[v] = n++;
    }
}

/* Computes what was chosen. False: the caller was told. *refused: a check or a note came. */
static bool compute(folding *f, bool *refused) {
    cot__edit     how = {.state = f, .input = leave_input, .operation = pick_operation, .outputs = give_folded};
    cot__program *all = cot__rewrite_run(f->p, f->o, &how);
    cot__program *p = all ? cot__pass_dead(all, f->o) : NULL;
    cot__program_release(all);
    f->run = p ? cot__run_create(p, f->o->backend, f->o->al, NULL, f->o->caller) : NULL;
    cot__program_release(p);
    *refused = f->run && (!cot__run_go(f->run, NULL, NULL) || cot__run_noted_at(f->run) != COT__NO_VALUE);
    return f->run != NULL;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void put_folded(cot__rewrite *r, uint32_t v) {
    const folding *f = r->edit->state;
    cot__type      type = cot__value_type(f->p, v);
    cot__view      to = cot__value_view(f->p, v), from = cot__run_output(f->run, f->output[v]);
    r->value[v] = cot__build_constant(&r->to, &type, &to.data);
    if (r->value[v] != COT__NO_VALUE) f->o->backend->copy_out(&to, &from);
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    const folding        *f = r->edit->state;
    const cot__operation *o = &f->p->operation[k];
    bool                  stays = true;
    for (uint32_t i = 0; i < o->results; i++) stays &= f->fate[o->result + i] <= HERE;
    if (stays) {
        cot__rewrite_keep(r, k);
        return;
    }
    for (uint32_t i = 0; i < o->results; i++)
        if (f->fate[o->result + i] == FOLDED) put_folded(r, o->result + i);
    r->changes++;
}

static cot__program *fold(folding *f, uint8_t *read) {
    bool refused;
    choose(f, true, read);
    if (!f->folded) return cot__program_share(f->p);
    if (!compute(f, &refused)) return NULL;
    if (refused) {
        cot__run_destroy(f->run);
        f->run = NULL;
        choose(f, false, read);
        if (!f->folded) return cot__program_share(f->p);
        if (!compute(f, &refused)) return NULL;
    }
    return cot__rewrite_run(f->p, f->o, &(cot__edit){.state = f, .operation = edit_operation});
}

cot__program *cot__pass_constants(const cot__program *p, const cot__pass_options *o) {
    size_t  bytes = p->values * (2 + sizeof(uint32_t));
    folding f = {.p = p, .o = o};
    if (!o->backend || !p->constants || !p->operations) return cot__program_share(p);
    f.output = cot__alloc(o->al, bytes);
    if (!f.output) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    f.fate = (uint8_t *)(f.output + p->values);
    cot__program *made = fold(&f, f.fate + p->values);
    cot__run_destroy(f.run);
    cot__free(o->al, f.output, bytes);
    return made;
}
