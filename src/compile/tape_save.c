/* tape_save.c: a tape as a file. */
#include "compile/compile.h"
#include "compile/tape_file.h"

#include "base/file/replace.h"
#include "diff/engine/saved_values.h"
#include "rules/structural_ids.h"
#include "tape/lower.h"
#include "tape/record_job.h"
#include "tape/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const cot__file_kind cot__tape_file_kind = {"tape", COT__TAPE_MAGIC, COT__TAPE_FORMAT};

/* ---- can it be saved? ------------------------------------------------------------------------ */

/* Values are computed again from leaves and constants, so these must be what was read. */
static bool sources_are_intact(cot_tape *t, const cot__caller *caller) {
    char source[160], reader[160];
    for (uint32_t i = 0; i < t->count; i++) {
        const cot__node *n = &t->nodes[i];
        for (int k = 0; k < cot__nargs(n); k++) {
            uint32_t x = cot__arg(n, k);
            if (x == COT__NONE || !cot__assigned_since(t, x, i)) continue;
            return cot__refuse(caller, COT_STALE,
                               "%s was assigned after %s had read it; values are computed again from leaves and "
                               "constants",
                               cot__describe(t, x, source, sizeof source), cot__describe(t, i, reader, sizeof reader));
        }
    }
    return true;
}

/* ---- what was written over ------------------------------------------------------------------- */

static bool is_gone(const cot__tape_file *f, uint32_t i) { return f->lost[i] && cot__is_stale(&f->t->nodes[i]); }
static bool is_kept(const cot__tape_file *f, uint32_t i) { return f->lost[i] && !cot__is_stale(&f->t->nodes[i]); }

/* A source that was written over in place is lost, and so is what reads something that is gone. All
 * results of an operation are, if one is. */
static void find_lost(cot__tape_file *f) {
    for (uint32_t i = 0; i < f->nodes; i++) {
        const cot__node *n = &f->t->nodes[i];
        bool             source = cot__op_of(n->op)->kind == KIND_SOURCE;
        f->lost[i] = !cot__in_body(n) && source && cot__is_stale(n);
        for (int k = 0; !cot__in_body(n) && !source && k < cot__nargs(n); k++) {
            uint32_t x = cot__arg(n, k);
            f->lost[i] |= x != COT__NONE && (n->op == OP_pick ? f->lost[x] : is_gone(f, x));
        }
    }
}

/* What is lost is computed from zeros when it is loaded, and then replaced. From zeros an equation
 * may have no solution. */
static bool equations_can_be_solved(const cot__tape_file *f, const cot__caller *caller) {
    char solver[160];
    for (uint32_t i = 0; i < f->nodes; i++) {
        int op = f->t->nodes[i].op;
        if (f->lost[i] && (op == OP_linear_solve || op == OP_root || op == OP_loop_adjoint))
            return cot__refuse(caller, COT_STALE,
                               "%s has read what was written over in place since; it is solved again from what it has "
                               "read",
                               cot__describe(f->t, i, solver, sizeof solver));
    }
    return true;
}

/* What operations with bodies are in a program is recorded on the tape, and forgotten. */
static bool make_program(cot__tape_file *f, int n, const uint32_t *vars, const cot__caller *caller) {
    cot__not_yet not_yet;
    cot_mark     m = cot__mark(f->t);
    f->p = cot__tape_lower(f->t, &f->t->al, n, vars, f->value, caller, &not_yet);
    if (!f->p && not_yet.why)
        cot__refuse(caller, COT_LIMIT, "%s cannot be saved yet: %s", not_yet.op, not_yet.why);
    cot__rewind(f->t, m);
    return f->p != NULL;
}

static bool make_lists(cot__tape_file *f, const cot__caller *caller) {
    f->lost = cot__alloc(&f->t->al, f->nodes);
    if (f->lost) find_lost(f);
    for (uint32_t i = 0; f->lost && i < f->nodes; i++)
        if ((f->t->nodes[i].op == OP_leaf || is_kept(f, i)) && cot__bytes_at(f->t, i) > f->room)
            f->room = cot__bytes_at(f->t, i);
    f->value = cot__alloc(&f->t->al, f->nodes * sizeof *f->value);
    f->elements = cot__alloc(&f->t->al, f->room);
    return (f->value && f->elements && f->lost) ||
           cot__refuse(caller, COT_MEMORY, "out of memory: lists of %u values", f->nodes);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool put(void *sink, const void *bytes, size_t n) { return cot__sink_put(sink, bytes, n), true; }
static void put_text(cot__sink *to, const char *text) { cot__sink_put(to, text, strlen(text) + 1); }

static void put_elements(cot__tape_file *f, uint32_t i, cot__sink *to) {
    cot_shape shape = cot__shape_at(f->t, i);
    int64_t   stride[COT_MAX_NDIM];
    cot__view host = {f->elements, cot__dtype_at(&f->t->nodes[i]), shape.ndim, shape.dim, stride};
    cot__strides(shape.ndim, shape.dim, stride);
    if (to->write && !is_gone(f, i)) {
        cot__view from = cot__look(f->t, i);
        f->t->backend->copy_out(&host, &from);
    } else memset(f->elements, 0, cot__bytes_at(f->t, i));
    cot__sink_elements(to, host.dtype, cot__view_size(&host), f->elements);
}

static void put_leaves(cot__tape_file *f, cot__sink *to) {
    for (uint32_t i = 0; i < f->nodes; i++)
        if (f->t->nodes[i].op == OP_leaf && f->value[i] != COT__NO_VALUE) put_elements(f, i, to);
}

/* The values for which `is` holds, with their elements if asked for. */
static void put_list(cot__tape_file *f, bool (*is)(const cot__tape_file *f, uint32_t i), bool elements, cot__sink *to) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->nodes; i++) count += is(f, i);
    cot__sink_number(to, count, 4);
    for (uint32_t i = 0; i < f->nodes; i++) {
        if (!is(f, i)) continue;
        cot__sink_number(to, f->value[i], 4);
        if (elements) put_elements(f, i, to);
    }
}

static bool is_without_gradient(const cot__tape_file *f, uint32_t i) {
    return f->value[i] != COT__NO_VALUE && cot__recorded_without_gradient(f->t, i);
}

/* Each value has its newest name. */
static void put_names(const cot__tape_file *f, cot__sink *to) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->nodes; i++) count += f->value[i] != COT__NO_VALUE && cot__name_of(f->t, i);
    cot__sink_number(to, count, 4);
    for (uint32_t i = 0; i < f->nodes; i++) {
        const char *name = f->value[i] == COT__NO_VALUE ? NULL : cot__name_of(f->t, i);
        if (!name) continue;
        cot__sink_number(to, f->value[i], 4);
        put_text(to, name);
    }
}

static bool same_site(const cot_site *a, const cot_site *b) {
    if (!a || !b) return a == b;
    const char *f = a->function ? a->function : "", *g = b->function ? b->function : "";
    return a == b || (a->line == b->line && !strcmp(a->file, b->file) && !strcmp(f, g));
}

/* The next node from i on that is a value; f->nodes: there is none. */
static uint32_t next_value(const cot__tape_file *f, uint32_t i) {
    while (i < f->nodes && f->value[i] == COT__NO_VALUE) i++;
    return i;
}

/* Runs of values that one line has recorded, by the value behind the last. `to` NULL: they are
 * counted. */
static uint32_t put_sites(const cot__tape_file *f, cot__sink *to) {
    uint32_t count = 0;
    for (uint32_t i = next_value(f, 0), next; i < f->nodes; i = next) {
        const cot_site *site = cot__site_of(f->t, i);
        next = next_value(f, i + 1);
        if (next < f->nodes && same_site(site, cot__site_of(f->t, next))) continue;
        count++;
        if (!to) continue;
        cot__sink_number(to, f->value[i] + 1, 4);
        put_text(to, site ? site->file : "");
        cot__sink_number(to, site ? (uint32_t)site->line : 0, 4);
        put_text(to, site && site->function ? site->function : "");
    }
    return count;
}

/* A cot__write_bytes that counts. */
static bool count_bytes(void *to, const void *bytes, size_t n) { return (void)bytes, *(uint64_t *)to += n, true; }

static bool write_all(cot__tape_file *f, cot__sink *to, const cot__caller *caller) {
    uint64_t program = 0;
    if (!cot__program_save(f->p, count_bytes, &program, caller)) return false;
    cot__sink_put(to, COT__TAPE_MAGIC, 8);
    cot__sink_number(to, COT__TAPE_FORMAT, 4);
    cot__sink_number(to, 0, 4);
    cot__sink_number(to, f->bytes, 8);
    cot__sink_number(to, program, 8);
    if (!to->write) to->count += program;
    else if (!cot__program_save(f->p, put, to, caller)) return false;
    put_leaves(f, to);
    put_list(f, is_without_gradient, false, to);
    put_list(f, is_kept, true, to);
    put_list(f, is_gone, false, to);
    put_names(f, to);
    cot__sink_number(to, put_sites(f, NULL), 4);
    put_sites(f, to);
    cot__sink_number(to, to->sum, COT__FILE_SUM);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool cot__tape_file_open(cot__tape_file *f, cot_tape *t, int n, const uint32_t *vars, const cot__caller *caller) {
    cot__sink counted = {0};
    *f = (cot__tape_file){.t = t, .nodes = t->count};
    if (!sources_are_intact(t, caller) || !make_lists(f, caller) || !equations_can_be_solved(f, caller) ||
        !make_program(f, n, vars, caller) || !write_all(f, &counted, caller))
        return false;
    f->bytes = counted.count;
    return true;
}

bool cot__tape_file_write(cot__tape_file *f, cot__write_bytes *write, void *to, const cot__caller *caller) {
    cot__sink s = {.write = write, .to = to};
    return write_all(f, &s, caller) && cot__sink_end(&s);
}

void cot__tape_file_close(cot__tape_file *f) {
    cot__free(&f->t->al, f->value, f->nodes * sizeof *f->value);
    cot__free(&f->t->al, f->elements, f->room);
    cot__free(&f->t->al, f->lost, f->nodes);
    cot__program_release(f->p);
}

/* ---- for users ------------------------------------------------------------------------------- */

typedef struct saving {
    cot__heard     heard;
    cot__caller    caller;
    cot__tape_file file;
} saving;

static bool fill(FILE *file, void *to) {
    saving *s = to;
    return cot__tape_file_write(&s->file, cot__write_to_file, file, &s->caller);
}

/* The nodes of the vars, which are alive. */
static bool find_nodes(cot_tape *t, int n, const cot_var *vars, uint32_t *nodes, const cot__caller *caller) {
    for (int k = 0; k < n; k++) {
        nodes[k] = cot__index(vars[k]);
        if (cot__is_number(vars[k]) || vars[k].tape != t || !cot_is_valid(vars[k]))
            return cot__refuse(caller, COT_VAR, "vars[%d] is no value of this tape", k);
    }
    return true;
}

static void save(cot_tape *t, int n, const cot_var *vars, const char *path, saving *s) {
    size_t    bytes = (size_t)n * sizeof(uint32_t);
    uint32_t *nodes = cot__alloc(&t->al, bytes);
    if (!nodes) {
        cot__refuse(&s->caller, COT_MEMORY, "out of memory: a list of %d values", n);
        return;
    }
    if (find_nodes(t, n, vars, nodes, &s->caller)) {
        bool fine = cot__tape_file_open(&s->file, t, n, nodes, &s->caller);
        if (t->status != COT_OK) { /* the arena has no memory; the tape stays as it was */
            s->caller.fail(&s->caller, t->status, t->errors.message);
            cot_tape_clear_error(t);
        }
        if (fine && !cot__file_replace(&t->al, path, s->file.bytes, fill, s, NULL) && s->heard.status == COT_OK)
            cot__cannot_write(path, errno, &s->caller);
        cot__tape_file_close(&s->file);
    }
    cot__free(&t->al, nodes, bytes);
}

/* An error that is on the tape is told, and not replaced. */
static bool may_be_saved(cot_tape *t, int n, const cot_var *vars, const char *path, const cot__caller *caller) {
    if (!t) return cot__refuse(caller, COT_MEMORY, "the tape is NULL");
    if (t->status != COT_OK) return caller->fail(caller, t->status, t->errors.message), false;
    if (t->mode.body) return cot__refuse(caller, COT_VALUE, "called while the body of [%s] is recorded", t->mode.body);
    if (t->memory.packed)
        return cot__refuse(caller, COT_VALUE, "values are kept as bf16 for derivatives, which a file would have as f32 "
                                              "and differentiate otherwise; save a tape without cot_precision.saved");
    if (n < 0) return cot__refuse(caller, COT_VALUE, "a negative number of values: %d", n);
    if (n > 0 && !vars) return cot__refuse(caller, COT_VALUE, "a list of %d values is NULL", n);
    return path || cot__refuse(caller, COT_VALUE, "the path is NULL");
}

cot_status cot_tape_save(cot_tape *t, int n, const cot_var *vars, const char *path, char *why, size_t room) {
    saving s = {.heard = {COT_OK, ""}};
    s.caller = cot__heard_by(&s.heard, "tape_save");
    if (may_be_saved(t, n, vars, path, &s.caller)) save(t, n, vars, path, &s);
    if (why && room) snprintf(why, room, "%s", s.heard.message);
    return s.heard.status;
}
