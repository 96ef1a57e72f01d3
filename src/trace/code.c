/* code.c: a trace as a program of C: names, the calls that record the function, the file. */
#include "trace/code.h"

#include "backend/cpu/table/cpu.h"
#include "backend/elements.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "tape/show.h"

#include <stdlib.h>
#include <string.h>

const char cot__code_no_memory[] = "memory";

/* ---- names ----------------------------------------------------------------------------------- */

/* In any locale. */
static bool is_of_a_name(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* v₃ is v3; letters beyond ASCII are written by their codes. */
static void spell(const char *label, char *buf) {
    cot__text x = cot__text_buffer(buf, COT__C_NAME - 8);
    for (const unsigned char *s = (const unsigned char *)label; *s;) {
        if (*s < 0x80) {
            cot__put(&x, (char[]){is_of_a_name(*s) ? (char)*s : '_', 0});
            s++;
        } else if (s[0] == 0xe2 && s[1] == 0x82 && s[2] >= 0x80 && s[2] <= 0x89) { /* ₀ … ₉ */
            cot__put(&x, (char[]){(char)('0' + s[2] - 0x80), 0});
            s += 3;
        } else
            cot__putf(&x, "u%02x", *s++);
    }
}

/* Names that C or this code has get a _ more, and so do those that end in one: no two are equal. */
static bool is_taken(const char *name) {
    size_t n = strlen(name), digits = strspn(name + (*name != 0), "0123456789");
    bool   counted = (*name == 'v' || *name == 'c') && digits > 0 && digits + 1 == n;
    const char *last = strrchr(name, '_');
    bool        result = last && last[1] == 'r' && last[2] && strspn(last + 2, "0123456789") == strlen(last + 2);
    bool        bar = last && strcmp(last, "_bar") == 0, data = last && strcmp(last, "_data") == 0;
    return counted || result || bar || data || name[n - 1] == '_' || strncmp(name, "part", 4) == 0 ||
           strcmp(name, "seed") == 0 || cot__c_reserved(name);
}

const char *cot__c_name(const cot__trace *tr, int64_t node, char *buf) {
    const cot__trace_node *n = &tr->nodes[node];
    spell(n->label, buf);
    if (cot__is_called_by_name(tr->t, n->id) && is_taken(buf)) strcat(buf, "_");
    if (*buf >= '0' && *buf <= '9') memmove(buf + 1, buf, strlen(buf) + 1), *buf = '_';
    return buf;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void put_line(cot__code_lines *lines, const char *text, int64_t node, bool back) {
    if (lines) lines->line(lines, text, node, back);
}

/* Is it written as a number where it is used? */
static bool is_number(const cot__trace_node *n) { return n->op == OP_constant && n->value.ndim == 0 && !n->name; }

static bool has_array(const cot__trace_node *n) {
    bool written = n->op == OP_leaf || n->op == OP_constant || cot__c_is_given(n->op);
    return written && cot__count(n->value.ndim, n->value.shape) > COT__C_FEW;
}

/* Operands as texts. Elementwise functions take plain numbers beside a value; others take none. */
static const char **operands_of(const cot__trace *tr, int64_t node, char **memory) {
    const cot__trace_node *n = &tr->nodes[node];
    size_t                 count = (size_t)n->nargs + 1;
    const char           **operand = calloc(count, sizeof *operand);
    bool                   mixes = false;
    *memory = malloc(count * COT__C_NAME);
    for (int k = 0; k < n->nargs && n->op < OP_structural; k++)
        mixes = mixes || (n->args[k] != COT__NONE && !is_number(&tr->nodes[cot__trace_find(tr, n->args[k])]));
    for (int k = 0; operand && *memory && k < n->nargs; k++) {
        char   *buf = *memory + (size_t)k * COT__C_NAME;
        int64_t from = n->args[k] == COT__NONE ? -1 : cot__trace_find(tr, n->args[k]);
        bool integer = !cot__dtype_is_float(n->value.dtype) && n->value.dtype != COT_BOOL;
        if (from < 0 && integer) /* it stays one */
            snprintf(buf, COT__C_NAME, "%lld", (long long)n->number), operand[k] = buf;
        else if (from < 0) operand[k] = cot__c_number(n->number, buf);
        else if (is_number(&tr->nodes[from]) && mixes && tr->nodes[from].value.dtype == COT_F64)
            operand[k] = cot__c_number(cot__load_f64(tr->nodes[from].value.data, COT_F64), buf);
        else if (is_number(&tr->nodes[from])) {
            cot__text x = cot__text_buffer(buf, COT__C_NAME);
            cot__c_source_put(&x, tr->t, tr->nodes[from].id, NULL);
            operand[k] = buf;
        } else
            operand[k] = cot__c_name(tr, from, buf);
    }
    if (operand && *memory) return operand;
    free(operand);
    free(*memory);
    return NULL;
}

static const char *put_node(const cot__trace *tr, int64_t node, cot__code_lines *lines) {
    const cot__trace_node *n = &tr->nodes[node];
    char                   line[COT__C_TEXT], name[COT__C_NAME], data[COT__C_NAME];
    cot__text              x = cot__text_buffer(line, sizeof line);
    bool                   said;
    if (cot__c_has_no_line(tr->t, n->id)) return NULL;
    cot__c_name(tr, node, name);
    bool statement = cot__c_is_statement(tr->t, n->id);
    if (!statement) cot__putf(&x, "    cot_var %s = ", name);
    snprintf(data, sizeof data, "%.180s_data", name);
    if (statement) said = cot__c_statement_put(&x, tr, node);
    else if (cot__op_of(n->op)->kind == KIND_SOURCE || cot__c_is_given(n->op))
        said = cot__c_source_put(&x, tr->t, n->id, has_array(n) ? data : NULL);
    else {
        char        *memory;
        const char **operand = operands_of(tr, node, &memory);
        if (!operand) return cot__code_no_memory;
        said = cot__c_call_put(&x, tr->t, n->id, operand);
        free(operand);
        free(memory);
    }
    cot__put(&x, ";");
    if (cot__c_is_given(n->op)) cot__putf(&x, "  /* %s, at this point */", cot__op_of(n->op)->name);
    if (!said || x.used + 1 >= x.size) return cot__op_name(tr->t, n->id);
    put_line(lines, line, node, false);
    return NULL;
}

const char *cot__code_forward(const cot__trace *tr, cot__code_lines *lines) {
    char line[COT__C_TEXT];
    for (int64_t i = 0; i < tr->node_count; i++) {
        bool        in_place = is_number(&tr->nodes[i]) && i != tr->output;
        const char *stopped = in_place ? NULL : put_node(tr, i, lines);
        if (stopped) return stopped;
    }
    if (tr->step_count == 0 || tr->seed.ndim == 0) return NULL;
    cot__text x = cot__text_buffer(line, sizeof line);
    char      number[COT__C_NAME];
    int64_t   size = cot__count(tr->seed.ndim, tr->seed.shape);
    if (size > COT__C_FEW || !cot__c_element_type(tr->seed.dtype)) return "seed";
    cot__putf(&x, "    cot_var seed = cot_data(t, %s, COT_SHAPE(", tr->seed.dtype == COT_F32 ? "COT_F32" : "COT_F64");
    for (int k = 0; k < tr->seed.ndim; k++) cot__putf(&x, k ? ", %lld" : "%lld", (long long)tr->seed.shape[k]);
    cot__putf(&x, "), (%s[]){", cot__c_element_type(tr->seed.dtype));
    for (int64_t i = 0; i < size; i++)
        cot__putf(&x, i ? ", %s" : "%s",
                  cot__c_number(cot__element_f64(&cot__cpu_backend, &tr->seed, i), number));
    cot__put(&x, "});");
    put_line(lines, line, -1, false);
    return NULL;
}

static void put_backward(const cot__trace *tr, cot__code_lines *lines) {
    char   line[2 * COT__C_NAME + 64], name[COT__C_NAME], number[COT__C_NAME];
    double seed = tr->seed.ndim ? 0 : cot__load_f64(tr->seed.data, tr->seed.dtype);
    int64_t size = cot__count(tr->nodes[tr->output].value.ndim, tr->nodes[tr->output].value.shape);
    cot__c_name(tr, tr->output, name);
    if (tr->seed.ndim) snprintf(line, sizeof line, "    cot_backward_seeded(%s, seed);", name);
    else if (seed == 1 && size == 1) snprintf(line, sizeof line, "    cot_backward(%s);", name);
    else snprintf(line, sizeof line, "    cot_backward_seeded(%s, %s);", name, cot__c_number(seed, number));
    put_line(lines, line, -1, true);
}

const char *cot__code_program(const cot__trace *tr, cot__code_lines *lines) {
    char line[3 * COT__C_NAME], name[COT__C_NAME];
    put_line(lines, "static void recorded(cot_tape *t) {", -1, false);
    const char *stopped = cot__code_forward(tr, lines);
    if (stopped) return stopped;
    cot__c_name(tr, tr->output, name);
    snprintf(line, sizeof line, "    show(\"%s\", %s);", name, name);
    put_line(lines, line, -1, false);
    if (tr->step_count) put_backward(tr, lines);
    for (int64_t i = 0; tr->step_count && i < tr->node_count; i++) {
        if (tr->nodes[i].op != OP_leaf || !tr->nodes[i].active) continue;
        cot__c_name(tr, i, name);
        snprintf(line, sizeof line, "    show(\"%.180s_bar\", cot_grad(%.180s));", name, name);
        put_line(lines, line, -1, true);
    }
    put_line(lines, "}", -1, true);
    return NULL;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void file_line(cot__code_lines *to, const char *text, int64_t node, bool back) {
    (void)node, (void)back;
    cot__c_function_add((cot__c_function *)(void *)to, text);
}

static void put_arrays(FILE *out, const cot__trace *tr, const cot__c_function *of) {
    for (int64_t i = 0; i < tr->node_count; i++) {
        char name[COT__C_NAME], data[COT__C_NAME], row[COT__C_TEXT];
        if (!has_array(&tr->nodes[i]) || !cot__c_element_type(tr->nodes[i].value.dtype)) continue;
        snprintf(data, sizeof data, "%.180s_data", cot__c_name(tr, i, name));
        if (!cot__c_function_names(of, data)) continue;
        fprintf(out, "static const %s %s_data[] = {\n", cot__c_element_type(tr->nodes[i].value.dtype),
                cot__c_name(tr, i, name));
        int64_t size = cot__count(tr->nodes[i].value.ndim, tr->nodes[i].value.shape);
        for (int64_t at = 0; at < size; at += 8) {
            cot__text x = cot__text_buffer(row, sizeof row);
            cot__c_elements_put(&x, tr->t, tr->nodes[i].id, at, at + 8 < size ? at + 8 : size);
            fprintf(out, "    %s,\n", row);
        }
        fputs("};\n\n", out);
    }
}

/* The head of the file, and what both functions need. */
static void put_head(FILE *out, const cot__trace *tr, const cot__c_function *recorded) {
    fputs("/* A function and its gradient, twice: recorded and swept by the library, and the sweep written out.\n"
          " * cc file.c -lcotangent -lm */\n"
          "#include <cotangent.h>\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n"
          "static void show(const char *name, cot_var v) {\n"
          "    int64_t n = cot_size(v);\n"
          "    double *x = malloc((size_t)(n + 1) * sizeof *x);\n"
          "    if (x && cot_read(v, x, n) == COT_OK) {\n"
          "        printf(\"%s =\", name);\n"
          "        for (int64_t i = 0; i < n; i++) printf(\" %.17g\", x[i]);\n"
          "        printf(\"\\n\");\n"
          "    }\n"
          "    free(x);\n"
          "}\n\n", out);
    put_arrays(out, tr, recorded);
}

/* The sweep, or why there is none. *sweep: there is one. */
static const char *put_sweep(FILE *out, const cot__trace *tr, cot__c_function *f, bool *sweep) {
    const char *stopped = cot__code_sweep(tr, &f->lines);
    *sweep = !stopped && tr->step_count > 0;
    if (*sweep) cot__c_function_drop_unused(f);
    if (stopped == cot__code_no_memory || f->no_memory) return cot__code_no_memory;
    if (stopped)
        fprintf(out, "\n/* The sweep is not written out: no public function says what the rule of %s does. */\n",
                stopped);
    else if (*sweep) {
        fputs("\n/* Every addition of the sweep, in its order. */\n", out);
        cot__c_function_put(f, out);
    }
    return NULL;
}

const char *cot__code_file(FILE *out, const cot__trace *tr) {
    cot__c_function recorded = {.lines = {file_line}}, by_hand = {.lines = {file_line}};
    bool            sweep = false;
    const char     *stopped = cot__code_program(tr, &recorded.lines);
    if (!stopped) cot__c_function_drop_unused(&recorded);
    if (!stopped && recorded.no_memory) stopped = cot__code_no_memory;
    if (!stopped) {
        put_head(out, tr, &recorded);
        fputs("/* The calls that record it; then the library sweeps. */\n", out);
        cot__c_function_put(&recorded, out);
        stopped = put_sweep(out, tr, &by_hand, &sweep);
    }
    if (!stopped) {
        bool tape = cot__c_function_names(&by_hand, "cot_tape");
        fputs("\nint main(void) {\n    cot_tape *t = cot_tape_create(NULL);\n    recorded(t);\n", out);
        if (sweep) fputs(tape ? "    by_hand(t);\n" : "    by_hand();\n", out);
        fputs("    if (cot_tape_status(t) != COT_OK) fprintf(stderr, \"%s\\n\", cot_tape_message(t));\n"
              "    int status = cot_tape_status(t) != COT_OK;\n"
              "    cot_tape_destroy(t);\n    return status;\n}\n", out);
    }
    cot__c_function_free(&recorded);
    cot__c_function_free(&by_hand);
    return stopped;
}
