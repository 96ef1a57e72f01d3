/* emit.c: the two files around the function, and the function itself, block by block.
 *
 * Everything is printed twice: the first time into nothing, to learn which functions, how deep
 * folds and which checks there are. */
#include "program/emit/writer.h"
#include "program/loop_form.h"
#include "program/passes/passes.h"
#include "rules/structural_ids.h"

#include "base/number.h"

#include <string.h>

/* ---- what is told about it ------------------------------------------------------------------- */

/* A text of somebody else's, in a comment: it ends none, and its lines are lines of the comment. */
static void put_in_comment(cot__text *to, const char *text) {
    char one[2] = "";
    for (const char *s = text; *s; s++) {
        one[0] = (unsigned char)*s < ' ' ? ' ' : *s;
        if (s > text && ((s[-1] == '*' && *s == '/') || (s[-1] == '/' && *s == '*'))) cot__put(to, " ");
        if (s > text && s[-1] == '?' && *s == '?') cot__put(to, " ");
        cot__put(to, *s == '\n' ? "\n * " : *s == '\\' ? "/" : one);
    }
}

static void put_parameter(cot__writer *w, uint32_t value, bool out, const char *name) {
    cot__view   v = cot__value_view(w->p, value);
    const char *type = cot__emit_type(v.dtype);
    if (out) cot__putf(w->to, "%s *%s", type, name);
    else cot__putf(w->to, v.ndim ? "const %s *%s" : "%s %s", type, name);
}

/* One parameter a line, when a line would not hold them. */
static void put_signature(cot__writer *w) {
    const cot__program *p = w->p;
    uint32_t            n = p->inputs + p->outputs + 1;
    const char         *between = n > 6 ? ",\n    " : ", ";
    cot__putf(w->to, "%sint %s(%s", w->file ? "static " : "", cot__function_name(w), n > 6 ? "\n    " : "");
    for (uint32_t k = 0; k < p->inputs; k++)
        put_parameter(w, p->input[k], false, cot__input_name(w, k)), cot__put(w->to, between);
    for (uint32_t k = 0; k < p->outputs; k++)
        put_parameter(w, p->output[k], true, cot__output_name(w, k)), cot__put(w->to, between);
    cot__put(w->to, "void *workspace)");
}

static void put_shape(cot__writer *w, const char *what, const char *name, uint32_t value) {
    char      buf[COT__SHAPE_TEXT];
    cot__view v = cot__value_view(w->p, value);
    cot__putf(w->to, " *   %-8s %s", what, name);
    if (v.ndim) cot__putf(w->to, "  %s", cot__shape_text(v.ndim, v.shape, buf));
    cot__put(w->to, "\n");
}

static void put_upper(cot__text *to, const char *name) {
    char one[2] = "";
    for (; *name; name++) one[0] = cot__upper(*name), cot__put(to, one);
}

static void put_title(cot__writer *w) {
    cot__putf(w->to, "/* %s", cot__function_name(w));
    if (w->o->title) cot__put(w->to, ": "), put_in_comment(w->to, w->o->title);
}

/* Marks operations whose runs may leave a note. Recursive over bodies, which nest at most
 * COT__PROGRAM_DEPTH deep. */
static void find_noting(const cot__program *p, bool noting[OP_count]) {
    for (uint32_t k = 0; k < p->operations; k++)
        if (cot__op_of(p->operation[k].op)->tell) noting[p->operation[k].op] = true;
    for (uint32_t b = 0; b < p->bodies; b++) find_noting(p->body[b], noting);
}

/* "solve inv" with commas. */
static void put_listed(cot__text *to, const char *names) {
    char one[2] = "";
    for (; *names; names++) one[0] = *names, cot__put(to, *names == ' ' ? ", " : one);
}

/* What nobody is told: there is nothing that the function could leave a note on. Operations have
 * the names of what people call. */
static void put_unnoted(cot__writer *w) {
    bool        noting[OP_count] = {false};
    const char *first = " * The library makes a note of what it finds in the data of ", *before = first;
    find_noting(w->p, noting);
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        if (!noting[op]) continue;
        cot__put(w->to, before), before = ", ";
        put_listed(w->to, o->functions ? o->functions : o->name);
    }
    if (before != first) cot__put(w->to, "; this function makes none.\n");
}

static void put_declaration(cot__writer *w) {
    cot__put(w->to, "/* Arrays are row-major. No output may overlap anything else. Returns 0");
    cot__put(w->to, w->checks ? ", or the number of the check\n * that has refused an element; then the outputs are "
                                "not complete.\n"
                              : ".\n");
    put_unnoted(w);
    for (uint32_t k = 0; k < w->p->inputs; k++) put_shape(w, "input", cot__input_name(w, k), w->p->input[k]);
    for (uint32_t k = 0; k < w->p->outputs; k++) put_shape(w, "output", cot__output_name(w, k), w->p->output[k]);
    cot__put(w->to, " *   workspace: ");
    put_upper(w->to, cot__function_name(w));
    cot__put(w->to, w->layout.workspace ? "_WORKSPACE bytes, aligned as a double is */\n"
                                        : "_WORKSPACE is 0: it may be NULL */\n");
    put_signature(w);
    cot__put(w->to, ";\n");
    cot__declare_patterns(w);
}

static void put_workspace_size(cot__writer *w) {
    cot__put(w->to, "#define ");
    put_upper(w->to, cot__function_name(w));
    cot__putf(w->to, "_WORKSPACE %lld\n", (long long)w->layout.workspace);
}

static void put_header(cot__writer *w) {
    put_title(w);
    cot__put(w->to, " */\n#ifndef ");
    put_upper(w->to, cot__function_name(w));
    cot__put(w->to, "_H\n#define ");
    put_upper(w->to, cot__function_name(w));
    cot__put(w->to, "_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    put_workspace_size(w);
    put_declaration(w);
    cot__put(w->to, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- what stands before the function --------------------------------------------------------- */

static const char *const guards =
    "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \\\n"
    "    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)\n"
    "#error \"this file keeps to IEEE 754; compile it without -ffast-math and its parts\"\n"
    "#endif\n"
    "#if !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0\n"
    "#error \"this file needs arithmetic in the types as written (FLT_EVAL_METHOD 0); on x86: -msse2 -mfpmath=sse\"\n"
    "#endif\n"
    "/* A product and a sum round twice here, also where the processor could do both at once. clang obeys this unless\n"
    " * it is called with -ffp-contract=fast. */\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#else\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#endif\n\n";

static void put_prologue(cot__writer *w) {
    put_title(w);
    cot__putf(w->to, "\n *\n * C99, printed by Cotangent %s. %s */\n", cot_version(),
              w->o->libm ? "Elementary functions are those of <math.h>."
                         : "The results have the library's bits.");
    if (w->o->header) cot__putf(w->to, "#include \"%s\"\n\n", w->o->header);
    cot__put(w->to, "#include <float.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
                    "#include <stdint.h>\n\n");
    cot__put(w->to, guards);
    if (!w->o->header) put_workspace_size(w), put_declaration(w), cot__put(w->to, "\n");
    if (w->levels) cot__putf(w->to, "#define COT_LEVELS %d /* of the trees of sums */\n\n", w->levels);
    cot__parts_print(&w->parts, w->to);
    cot__put(w->to, "\n");
    cot__put_patterns(w);
}

/* ---- constants and arrays -------------------------------------------------------------------- */

static void put_constant(cot__writer *w, uint32_t k) {
    uint32_t    value = w->p->constant[k].value;
    cot__view   v = cot__value_view(w->p, value);
    int64_t     n = cot__view_size(&v), size = cot__dtype_size(v.dtype);
    const char *element = cot__constant_elements(w->p, k);
    if (v.ndim == 0 || !w->layout.wanted[value]) return;
    cot__putf(w->to, "    static const %s c_%u[%lld] = {", cot__emit_type(v.dtype), value, (long long)(n ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        cot__put(w->to, i == 0 ? "" : w->to->column > 100 ? ",\n        " : ", ");
        cot__put_initial(w->to, v.dtype, element + i * size);
    }
    cot__put(w->to, n ? "};\n" : "0};\n");
}

static void put_arrays(cot__writer *w) {
    const cot__layout *l = &w->layout;
    bool               any = false;
    for (uint32_t k = 0; k < w->p->constants; k++) put_constant(w, k);
    for (uint32_t v = 0; v < w->p->values; v++) {
        bool made = cot__value_origin(w->p, v) == COT__FROM_OPERATION && !cot__is_no_work(l, cot__value_maker(w->p, v));
        if (l->home[v] != COT__AT_WORKSPACE || !made) continue;
        const char *type = cot__emit_type(cot__value_view(w->p, v).dtype);
        cot__putf(w->to, "    %s *const t_%u = (%s *)(void *)((char *)workspace + %lld);\n", type, v, type,
                  (long long)l->place[v]);
        any = true;
    }
    if (!any) cot__put(w->to, "    (void)workspace;\n");
}

/* An input that nothing reads, or of which there is nothing to read. */
static void put_unused(cot__writer *w) {
    for (uint32_t k = 0; k < w->p->inputs; k++) {
        cot__view v = cot__value_view(w->p, w->p->input[k]);
        if (!w->layout.wanted[w->p->input[k]] || cot__view_size(&v) == 0)
            cot__putf(w->to, "    (void)%s;\n", cot__input_name(w, k));
    }
}

/* ---- statements and loops -------------------------------------------------------------------- */

void cot__put_statement(cot__writer *w, uint32_t k) {
    uint32_t      z = w->p->operation[k].result;
    cot__at_index at = {0};
    cot__putf(w->to, "    const %s v_%u = ", cot__emit_type(cot__value_view(w->p, z).dtype), cot__number_of(w, z));
    if (w->layout.plan.how[k] == COT__BY_MOVE) {
        /* the place of the element was found by the plan */
        uint32_t root = cot__root_of(&w->layout, cot__operation_operand(w->p, k)[0]);
        cot__put_name(w, root);
        cot__putf(w->to, "[%lld]",
                  (long long)(w->layout.plan.extra[k] / cot__dtype_size(cot__value_view(w->p, root).dtype)));
    } else
        cot__put_expression(w, k, &at);
    cot__put(w->to, ";\n");
}

/* Does the loop read and write its arrays in row-major order, all of them? */
static bool is_flat(const cot__writer *w, uint32_t from, uint32_t to) {
    const cot__layout *l = &w->layout;
    for (uint32_t k = from; k < to; k++) {
        const uint32_t *x = cot__operation_operand(w->p, k);
        if (!cot__is_in_loop(l, k)) continue;
        for (int i = 0; i < cot__operation_operands(w->p, k); i++) {
            if (x[i] == COT__NO_VALUE || l->home[cot__root_of(l, x[i])] == COT__AT_NAME) continue;
            cot__view v = cot__plan_view(&l->plan, x[i]);
            if (v.ndim == 0 || !cot__is_contiguous(v.ndim, v.shape, v.stride)) return false;
        }
    }
    return true;
}

void cot__put_loop_value(cot__writer *w, uint32_t k, int depth, const cot__at_index *at) {
    uint32_t z = w->p->operation[k].result;
    cot__put_indent(w, depth);
    cot__putf(w->to, "const %s ", cot__emit_type(cot__value_view(w->p, z).dtype));
    cot__put_local(w, z, at->shift);
    cot__put(w->to, " = ");
    cot__put_expression(w, k, at);
    cot__put(w->to, ";\n");
}

void cot__put_loop_store(cot__writer *w, uint32_t k, int depth, const cot__at_index *at) {
    uint32_t z = w->p->operation[k].result;
    if (w->layout.home[z] == COT__AT_LOOP) return;
    cot__put_indent(w, depth);
    cot__put_result(w, z, at);
    cot__putf(w->to, " = v_%u;\n", cot__number_of(w, z));
}

static void put_loop_comment(cot__writer *w, uint32_t from, uint32_t to) {
    for (uint32_t k = from; k < to; k++) {
        uint32_t z = w->p->operation[k].result;
        if (!cot__is_in_loop(&w->layout, k) || w->layout.home[z] == COT__AT_LOOP) continue;
        cot__put(w->to, "    /* ");
        cot__put_name(w, z);
        cot__put(w->to, " = ");
        cot__put_formula(w, z);
        cot__put(w->to, " */\n");
    }
}

/* The loop of operations from … to - 1. */
static void put_loop(cot__writer *w, uint32_t from, uint32_t to) {
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__view       v = {0};
    for (uint32_t k = from; k < to; k++)
        if (cot__is_in_loop(&w->layout, k)) v = cot__value_view(w->p, w->p->operation[k].result);
    int64_t   n = cot__view_size(&v), stride = 1;
    cot__view line = {NULL, v.dtype, 1, &n, &stride};
    bool      flat = is_flat(w, from, to);
    w->loop = w->layout.block[from];
    put_loop_comment(w, from, to);
    cot__put(w->to, "    {\n");
    int inside = cot__open_loops(w, 2, 'i', flat ? &line : &v, UINT32_MAX, &at, &room);
    if (flat) at.flat = at.axis[0] ? at.axis[0] : "0";
    for (uint32_t k = from; k < to; k++)
        if (cot__is_in_loop(&w->layout, k))
            cot__put_loop_value(w, k, inside, &at), cot__put_loop_store(w, k, inside, &at);
    cot__close_loops(w, 2, inside);
    cot__put(w->to, "    }\n");
    w->loop = 0;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void put_output(cot__writer *w, uint32_t k) {
    uint32_t        value = w->p->output[k], root = cot__root_of(&w->layout, value);
    cot__view       v = cot__plan_view(&w->layout.plan, value);
    cot__at_index   at = {0};
    cot__loop_names room;
    if (w->layout.home[root] == COT__AT_OUTPUT && root == value && w->layout.place[root] == k) return;
    if (v.ndim == 0) {
        cot__putf(w->to, "    /* %s = ", cot__output_name(w, k));
        cot__put_formula(w, value);
        cot__putf(w->to, " */\n    *%s = ", cot__output_name(w, k));
        cot__put_element(w, value, &at);
        cot__put(w->to, ";\n");
        return;
    }
    cot__put(w->to, "    {\n        ptrdiff_t n_0 = 0;\n");
    int inside = cot__open_loops(w, 2, 'i', &v, UINT32_MAX, &at, &room);
    cot__put_indent(w, inside);
    cot__putf(w->to, "%s[n_0++] = ", cot__output_name(w, k));
    cot__put_element(w, value, &at);
    cot__put(w->to, ";\n");
    cot__close_loops(w, 2, inside);
    cot__put(w->to, "    }\n");
}

/* ---- the function ---------------------------------------------------------------------------- */

/* Statements go first; the loop of the block, or its operation, comes when the block ends. */
static bool put_blocks(cot__writer *w) {
    const cot__layout *l = &w->layout;
    uint32_t           n = w->p->operations;
    for (uint32_t from = 0, to; from < n; from = to) {
        bool loop = false;
        for (to = from; to < n && l->block[to] == l->block[from]; to++) {
            if (cot__is_no_work(l, to)) continue;
            if (cot__is_in_loop(l, to)) loop = true;
            else if (cot__is_by_element(w->p, to) || l->plan.how[to] == COT__BY_MOVE) cot__put_statement(w, to);
            else if (!cot__put_structural(w, to)) return false;
        }
        if (loop) put_loop(w, from, to);
    }
    return true;
}

static bool put_function(cot__writer *w) {
    put_signature(w);
    cot__put(w->to, " {\n");
    put_arrays(w);
    put_unused(w);
    if (!put_blocks(w)) return false;
    for (uint32_t k = 0; k < w->p->outputs; k++) put_output(w, k);
    cot__put(w->to, "    return 0;\n}\n");
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool bodies_can_be_exported(const cot__writer *w) {
    for (uint32_t k = 0; k < w->p->operations; k++)
        if (cot__operation_bodies(w->p, k) && !cot__exportable(w->p->operation[k].op))
            return cot__refuse_operation(w, k);
    return true;
}

/* It stands in quotes, on a line of its own. */
static bool header_can_be_included(const cot__writer *w) {
    for (const char *s = w->o->header; s && *s; s++)
        if (strchr("\"\\'\177", *s) || (unsigned char)*s < ' ' || (*s == '?' && s[1] == '?') ||
            (*s == '/' && (s[1] == '/' || s[1] == '*')))
            return cot__refuse(w->caller, COT_VALUE,
                               "byte %d of the header's name is no part of one in C; take letters, digits, and . _ - /",
                               (int)(s - w->o->header));
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* A body that operations share is printed for each; so many are more than anybody reads. */
enum { MOST_BODIES = 1000 };

static bool put_bodies(cot__writer *w);

static bool put_opened_body(cot__writer *w, cot__called *as) {
    if (!cot__names_open(w) || !put_bodies(w)) return false;
    *as = (cot__called){++w->file->functions, w->layout.workspace};
    cot__format(w->name[0], COT__NAME_TEXT, "b_%d", as->number);
    cot__put(w->to, "/* A body of what follows. */\n");
    bool ok = put_function(w);
    cot__put(w->to, "\n");
    return ok;
}

/* Recursive over bodies, which nest at most COT__PROGRAM_DEPTH deep. */
static bool put_body(cot__writer *outer, const cot__program *body, cot__called *as) {
    const cot__emit_options o = {.libm = outer->o->libm};
    cot__writer *file = outer->file ? outer->file : outer;
    cot__writer  w = {.p = body, .o = &o, .al = outer->al, .caller = outer->caller, .to = outer->to,
                      .parts = outer->parts, .levels = outer->levels, .checks = outer->checks, .file = file};
    if (file->functions >= MOST_BODIES)
        return cot__refuse(w.caller, COT_LIMIT, "more than %d bodies of loops cannot be exported", MOST_BODIES);
    if (!bodies_can_be_exported(&w) || !cot__layout_open(&w.layout, body, w.al, w.caller)) return false;
    bool ok = put_opened_body(&w, as);
    outer->levels = w.levels, outer->checks = w.checks;
    if (w.name) cot__names_close(&w);
    cot__layout_close(&w.layout);
    return ok;
}

/* A way back on which nothing is carried needs no states, and does not run its steps forward. */
static bool is_called(const cot__writer *w, uint32_t k, uint32_t body) {
    if (cot__is_no_work(&w->layout, k)) return false;
    if (w->p->operation[k].op != OP_loop_adjoint) return true;
    cot__form f = cot__form_of(cot__operation_attr(w->p, k));
    return f.carry || f.tests || (int)(body - w->p->operation[k].body) >= cot__back_form_body(&f, 0);
}

static bool put_bodies(cot__writer *w) {
    for (uint32_t k = 0; k < w->p->operations; k++)
        for (uint32_t i = w->p->operation[k].body; i < w->p->operation[k + 1].body; i++)
            if (is_called(w, k, i) && !put_body(w, w->p->body[i], &w->called[i])) return false;
    return true;
}

/* All functions. */
static bool put_functions(cot__writer *w) {
    w->functions = w->checks = 0;
    return put_bodies(w) && put_function(w);
}

static bool print(cot__writer *w, cot__text *header, cot__text *source) {
    char      nothing[64];
    cot__text to_nothing = cot__text_buffer(nothing, sizeof nothing);
    w->to = &to_nothing;
    if (!put_functions(w)) return false;
    int checks = w->checks;
    w->to = header;
    if (header) put_header(w);
    w->to = source;
    if (!source) return true;
    put_prologue(w);
    bool ok = put_functions(w);
    w->checks = checks;
    return ok;
}

static bool emit(const cot__program *p, const cot__emit_options *o, const cot_allocator *al, cot__text *header,
                 cot__text *source, const cot__caller *caller) {
    const cot_allocator allocator = al ? *al : (cot_allocator){0};
    cot__writer         w = {.p = p, .o = o, .al = &allocator, .caller = caller};
    if (!header_can_be_included(&w) || !cot__patterns_fit(&w) || !bodies_can_be_exported(&w) ||
        !cot__layout_open(&w.layout, p, al, caller))
        return false;
    bool ok = cot__parts_open(&w.parts, w.al);
    if (!ok) cot__refuse(caller, COT_MEMORY, "out of memory: the list of exported functions");
    ok = ok && cot__names_open(&w);
    ok = ok && print(&w, header, source);
    if (w.name) cot__names_close(&w);
    cot__parts_close(&w.parts);
    cot__layout_close(&w.layout);
    return ok;
}

bool cot__program_emit_c(const cot__program *p, const cot__emit_options *o, const cot_allocator *al, cot__text *header,
                         cot__text *source, const cot__caller *caller) {
    cot__program *wide = cot__pass_halves(p, &(cot__pass_options){.al = al, .caller = caller});
    bool          ok = wide && emit(wide, o, al, header, source, caller);
    cot__program_release(wide);
    return ok;
}
