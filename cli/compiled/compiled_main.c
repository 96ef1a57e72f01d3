/* compiled_main.c: the main that `compile --main` adds: values as literals, a call, and the results
 * as JSON, with the digits of trace/json/json.c. */
#include "compiled/compiled.h"

#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "program/emit/text/parts.h"
#include "program/emit/emit.h"

static const char *const printer =
    "\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
    "/* The shortest digits that read back as the number. */\n"
    "static void cot_print_number(double v, int single) {\n"
    "    char text[64];\n"
    "    double least = single ? 1.17549435e-38 : 2.2250738585072014e-308;\n"
    "    int    few = single ? 6 : 15, most = single ? 9 : 17;\n"
    "    if (v != v) strcpy(text, \"\\\"nan\\\"\");\n"
    "    else if (v - v != 0) strcpy(text, v > 0 ? \"\\\"inf\\\"\" : \"\\\"-inf\\\"\");\n"
    "    else if (v == 0) strcpy(text, signbit(v) ? \"-0.0\" : \"0\");\n"
    "    else\n"
    "        for (int n = fabs(v) < least ? 1 : few; n <= most; n++) {\n"
    "            snprintf(text, sizeof text, \"%.*g\", n, v);\n"
    "            if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v) break;\n"
    "        }\n"
    "    printf(\"%s\", text);\n"
    "}\n\n"
    "/* The value of a 16-bit float with so many bits of fraction: 7 (bfloat16) or 10 (float16). */\n"
    "static double cot_half_value(uint16_t h, int fraction) {\n"
    "    int    top = fraction == 7 ? 255 : 31, e = (h & 0x7fff) >> fraction, m = h & ((1 << fraction) - 1);\n"
    "    double v = ldexp(e ? m + (1 << fraction) : m, (e ? e : 1) - top / 2 - fraction);\n"
    "    if (e == top) v = m ? (double)NAN : (double)INFINITY;\n"
    "    return h & 0x8000 ? -v : v;\n"
    "}\n\n"
    "/* One element of kind d (double), f (float), h (float16), w (bfloat16), i, l (integers of 32, 64 bits),\n"
    " * u (of 8), b (bool). */\n"
    "static void cot_print_element(char kind, const void *array, size_t i) {\n"
    "    const void *volatile any = array; /* lest a compiler warn of the kinds that it is not */\n"
    "    const void *x = any;\n"
    "    if (kind == 'd') cot_print_number(((const double *)x)[i], 0);\n"
    "    else if (kind == 'f') cot_print_number((double)((const float *)x)[i], 1);\n"
    "    else if (kind == 'h') cot_print_number(cot_half_value(((const uint16_t *)x)[i], 10), 1);\n"
    "    else if (kind == 'w') cot_print_number(cot_half_value(((const uint16_t *)x)[i], 7), 1);\n"
    "    else if (kind == 'l') printf(\"%lld\", (long long)((const int64_t *)x)[i]);\n"
    "    else if (kind == 'i') printf(\"%lld\", (long long)((const int32_t *)x)[i]);\n"
    "    else if (kind == 'u') printf(\"%d\", ((const uint8_t *)x)[i]);\n"
    "    else printf(\"%s\", ((const uint8_t *)x)[i] ? \"true\" : \"false\");\n"
    "}\n\n"
    "/* The part of an array from element `at` on; returns the element behind it. */\n"
    "static size_t cot_print(char kind, const void *x, size_t at, int ndim, const long *shape) {\n"
    "    if (ndim == 0) {\n"
    "        cot_print_element(kind, x, at);\n"
    "        return at + 1;\n"
    "    }\n"
    "    printf(\"[\");\n"
    "    for (long k = 0; k < shape[0]; k++) {\n"
    "        printf(\"%s\", k ? \",\" : \"\");\n"
    "        at = cot_print(kind, x, at, ndim - 1, shape + 1);\n"
    "    }\n"
    "    printf(\"]\");\n"
    "    return at;\n"
    "}\n\n";

static char kind_of(cot_dtype d) {
    static const char kinds[] = {[COT_F64] = 'd', [COT_F32] = 'f', [COT_BF16] = 'w', [COT_F16] = 'h', [COT_I64] = 'l',
                                 [COT_I32] = 'i', [COT_U8] = 'u',  [COT_BOOL] = 'b'};
    return kinds[d];
}

/* A name as the inside of a JSON string in a C string. */
static void put_quoted(FILE *to, const char *name) {
    fputs("\\\"", to);
    for (const unsigned char *s = (const unsigned char *)name; *s; s++) {
        if (cot__is_word((char)*s))
            fputc(*s, to);
        else
            fprintf(to, "\\%03o", *s);
    }
    fputs("\\\"", to);
}

static void put_inputs(const compiled *c, FILE *to) {
    cot__text text = cot__text_file(to);
    for (int k = 0; k < c->inputs; k++) {
        const cot_array *x    = &c->input[k];
        int              size = cot__dtype_size(x->dtype);
        fprintf(to, "    static const %s cot_in_%d[%lld] = {", cot__emit_type(x->dtype), k,
                (long long)(x->size ? x->size : 1));
        for (int64_t i = 0; i < x->size; i++) {
            fputs(i ? ", " : "", to);
            cot__emit_literal(&text, x->dtype, (const char *)x->data + i * size);
        }
        fputs(x->size ? "};\n" : "0};\n", to);
    }
}

static void put_outputs(const compiled *c, const cot_program *program, FILE *to) {
    for (int k = 0; k < c->outputs; k++) {
        cot_type type = cot_program_output_type(program, k);
        int64_t  size = cot__count(type.shape.ndim, type.shape.dim);
        fprintf(to, "    static %s cot_out_%d[%lld];\n", cot__emit_type(type.dtype), k, (long long)(size ? size : 1));
    }
}

static void put_call(const compiled *c, FILE *to) {
    char upper[COMPILED_NAME];
    snprintf(upper, sizeof upper, "%s", c->name);
    for (char *s = upper; *s; s++) *s = cot__upper(*s);
    fprintf(to, "    static double cot_space[%s_WORKSPACE / sizeof(double) + 1];\n", upper);
    fprintf(to, "    int cot_failed = %s(", c->name);
    for (int k = 0; k < c->inputs; k++) fprintf(to, "%scot_in_%d, ", c->input[k].shape.ndim ? "" : "*", k);
    for (int k = 0; k < c->outputs; k++) fprintf(to, "cot_out_%d, ", k);
    fputs("cot_space);\n    if (cot_failed) {\n"
          "        fprintf(stderr, \"check %d has refused a position\\n\", cot_failed);\n"
          "        return 1;\n    }\n",
          to);
}

static void put_result(const compiled *c, const cot_program *program, int k, FILE *to) {
    cot_type type = cot_program_output_type(program, k);
    (void)c;
    fprintf(to, "    cot_print('%c', cot_out_%d, 0, %d, (const long[]){", kind_of(type.dtype), k, type.shape.ndim);
    for (int i = 0; i < type.shape.ndim; i++) fprintf(to, "%s%lld", i ? ", " : "", (long long)type.shape.dim[i]);
    fputs(type.shape.ndim ? "});\n" : "0});\n", to);
}

static void put_list(const compiled *c, int k, const char *what, int64_t n, FILE *to) {
    char output[COT__PATTERN_NAME];
    cot__emit_pattern_name((const char *const *)c->output_name, (uint32_t)k, output);
    fprintf(to, "    printf(\",\\\"%s\\\":\");\n", what);
    fprintf(to, "    cot_print('i', %s_%s_%s, 0, 1, (const long[]){%lld});\n", c->name, output, what, (long long)n);
}

/* A block of a sparse matrix: its members, in which output k has the values. */
static void put_block(const compiled *c, const cot_program *program, int k, FILE *to) {
    const cot_sparse_info *s = c->patterns[k];
    fprintf(to, "    printf(\"\\\"shape\\\":[%lld,%lld]\");\n", (long long)s->rows, (long long)s->cols);
    put_list(c, k, "row_start", s->rows + 1, to);
    put_list(c, k, "col", s->nnz, to);
    fputs("    printf(\",\\\"values\\\":\");\n", to);
    put_result(c, program, k, to);
}

/* Where the rows and columns of each input begin. */
static void put_offsets(const compiled *c, FILE *to) {
    int64_t at = 0;
    bool    first = true;
    fputs("    printf(\",\\\"offsets\\\":{", to);
    for (int i = 0; i < c->p->n; i++) {
        if (!c->p->inputs[i].wanted) continue;
        fputs(first ? "" : ",", to);
        put_quoted(to, c->p->inputs[i].name);
        fprintf(to, ":%lld", (long long)at);
        at += c->p->inputs[i].value.size;
        first = false;
    }
    fputs("}\");\n", to);
}

/* "name": for each wanted input, and what `inside` prints behind it. */
static void put_members(const compiled *c, const cot_program *program, int *k, bool pairs, FILE *to) {
    bool first = true;
    for (int i = 0; i < c->p->n; i++) {
        if (!c->p->inputs[i].wanted) continue;
        fprintf(to, "    printf(\"%s", first ? "" : ",");
        put_quoted(to, c->p->inputs[i].name);
        fputs(pairs || c->plan ? ":{\");\n" : ":\");\n", to);
        if (c->plan)
            put_block(c, program, (*k)++, to);
        else if (pairs)
            put_members(c, program, k, false, to);
        else
            put_result(c, program, (*k)++, to);
        if (pairs || c->plan) fputs("    printf(\"}\");\n", to);
        first = false;
    }
}

static void put_results(const compiled *c, const cot_program *program, FILE *to) {
    static const char *const keys[] = {
        [GRAD] = "grad", [VJP] = "grad", [HVP] = "hvp", [JAC] = "jacobian", [HESS] = "hessian"};
    int k = 1;
    fputs("    printf(\"{\\\"value\\\":\");\n", to);
    put_result(c, program, 0, to);
    if (c->what == JVP) {
        fputs("    printf(\",\\\"tangent\\\":\");\n", to);
        put_result(c, program, k, to);
    } else if (c->what != NO_DERIVATIVE) {
        const char *mode = c->what == HESS ? "forward over reverse" : c->mode == COT_REVERSE ? "reverse" : "forward";
        if (c->what == JAC || c->what == HESS) fprintf(to, "    printf(\",\\\"mode\\\":\\\"%s\\\"\");\n", mode);
        if (c->plan)
            fprintf(to, "    printf(\",\\\"colours\\\":%d\");\n", cot_sparse_plan_info(c->plan).colours);
        fprintf(to, "    printf(\",\\\"%s\\\":{\");\n", keys[c->what]);
        if (c->plan && c->what == HESS)
            put_block(c, program, k, to), put_offsets(c, to);
        else
            put_members(c, program, &k, c->what == HESS, to);
        fputs("    printf(\"}\");\n", to);
    }
    fputs("    printf(\"}\\n\");\n", to);
}

/* Its names begin with cot_, which neither the function nor a header has. */
void compiled_main(const compiled *c, const cot_program *program, FILE *to) {
    fputs(printer, to);
    fputs("int main(void) {\n", to);
    put_inputs(c, to);
    put_outputs(c, program, to);
    put_call(c, to);
    put_results(c, program, to);
    fputs("    return 0;\n}\n", to);
}
