/* emit_test.h: exported programs, compiled and run: a folder in which each program becomes a C
 * file, and one main that calls all of them and prints the bits of what they give. */
#ifndef COT_EMIT_TEST_H
#define COT_EMIT_TEST_H

#include "support/program_test.h"

#include "program/emit/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EMIT_STRICT "-std=c99 -Wall -Wextra -Werror -pedantic -Wconversion"

typedef struct emitted {
    char   folder[64];
    int    count;
    /* main.c is what `main` holds, then main(), which has the calls */
    FILE  *main, *calls, *expected;
    char  *calls_text, *expected_text;
    size_t calls_size, expected_size;
} emitted;

static inline FILE *emit_open(const emitted *e, const char *name, const char *mode) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", e->folder, name);
    FILE *f = fopen(path, mode);
    if (!f) fprintf(stderr, "%s cannot be opened\n", path), abort();
    return f;
}

static inline void emitted_begin(emitted *e) {
    *e = (emitted){.folder = "/tmp/cotangent-emit-XXXXXX"};
    if (!mkdtemp(e->folder)) abort();
    e->main = emit_open(e, "main.c", "w");
    e->calls = open_memstream(&e->calls_text, &e->calls_size);
    e->expected = open_memstream(&e->expected_text, &e->expected_size);
    fputs("#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
          "static double space[40000];\n"
          "static void put(const char *name, const void *p, int n, int size, int real) {\n"
          "    const unsigned char *b = p;\n"
          "    printf(\"%s\", name);\n"
          "    for (int i = 0; i < n; i++, b += size) {\n"
          "        double d = 0; float f = 0; uint16_t h = 0;\n"
          "        if (real && size == 8) memcpy(&d, b, 8);\n"
          "        if (real && size == 4) memcpy(&f, b, 4);\n"
          "        if (real && size == 2) memcpy(&h, b, 2);\n"
          "        if (isnan(d) || isnan(f) || (h & 0x7fff) > real) printf(\" nan\");\n"
          "        else { printf(\" \"); for (int k = size; k-- > 0;) printf(\"%02x\", b[k]); }\n"
          "    }\n"
          "    printf(\"\\n\");\n"
          "}\n", e->main);
}

/* The same in this process. */
static inline void emit_bits(FILE *to, const char *name, const void *p, int64_t n, cot_dtype d) {
    const unsigned char *b = p;
    int                  size = cot__dtype_size(d);
    fprintf(to, "%s", name);
    for (int64_t i = 0; i < n; i++, b += size) {
        if (cot__dtype_is_float(d) && isnan(cot__load_f64(b, d))) fprintf(to, " nan");
        else {
            fprintf(to, " ");
            for (int k = size; k-- > 0;) fprintf(to, "%02x", b[k]);
        }
    }
    fprintf(to, "\n");
}

/* What an export has refused. */
typedef struct emit_refusal { char text[512]; } emit_refusal;
static inline void emit_hear(const cot__caller *c, cot_status code, const char *text) {
    (void)code;
    snprintf(((emit_refusal *)c->to)->text, sizeof((emit_refusal *)c->to)->text, "%s", text);
}

static inline bool emit_files(const emitted *e, const cot__program *p, bool libm, const char *name, emit_refusal *why) {
    char              file[80], header[80];
    cot__caller       caller = {"compile", why, emit_hear, NULL, NULL};
    cot__emit_options o = {.name = name, .header = header, .title = name, .libm = libm};
    snprintf(file, sizeof file, "%s.c", name);
    snprintf(header, sizeof header, "%s.h", name);
    FILE     *c = emit_open(e, file, "w"), *h = emit_open(e, header, "w");
    cot__text source = cot__text_file(c), head = cot__text_file(h);
    why->text[0] = 0;
    bool ok = cot__program_emit_c(p, &o, NULL, &head, &source, &caller);
    fclose(c);
    fclose(h);
    char path[160];
    snprintf(path, sizeof path, "%s/%s", e->folder, file);
    if (!ok) remove(path);
    return ok;
}

static inline void emit_array(FILE *to, const char *type, const char *name, int64_t n, cot_dtype d, const void *data) {
    cot__text text = cot__text_file(to);
    fprintf(to, "static %s %s[%d]", type, name, n ? (int)n : 1);
    for (int64_t i = 0; data && i < n; i++) {
        fprintf(to, i ? ", " : " = {");
        cot__emit_literal(&text, d, (const char *)data + i * cot__dtype_size(d));
    }
    fprintf(to, data && n ? "};\n" : ";\n");
}

/* Exports the program, and notes a call of it on these inputs, and the bits that it gives here, in
 * `outputs`. False: refused. */
static inline bool emitted_add(emitted *e, const cot__program *p, bool libm, void *const *in, void *const *out,
                               emit_refusal *why) {
    char name[32], array[48];
    snprintf(name, sizeof name, "f%d", e->count);
    if (!emit_files(e, p, libm, name, why)) return false;
    fprintf(e->main, "#include \"%s.h\"\ntypedef char %s_fits[%s_WORKSPACE <= sizeof space ? 1 : -1];\n", name, name,
            (snprintf(array, sizeof array, "F%d", e->count), array));
    fprintf(e->calls, "    if (%s(", name);
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view v = cot__value_view(p, p->input[k]);
        snprintf(array, sizeof array, "%s_in%u", name, k);
        emit_array(e->main, cot__emit_type(v.dtype), array, cot__view_size(&v), v.dtype, in[k]);
        fprintf(e->calls, "%s%s, ", v.ndim ? "" : "*", array);
    }
    for (uint32_t k = 0; k < p->outputs; k++) {
        cot__view v = cot__value_view(p, p->output[k]);
        snprintf(array, sizeof array, "%s_out%u", name, k);
        emit_array(e->main, cot__emit_type(v.dtype), array, cot__view_size(&v), v.dtype, NULL);
        fprintf(e->calls, "%s, ", array);
    }
    fprintf(e->calls, "space)) printf(\"refused\\n\");\n");
    for (uint32_t k = 0; k < p->outputs; k++) {
        cot__view v = cot__value_view(p, p->output[k]);
        snprintf(array, sizeof array, "%s_out%u", name, k);
        /* of 16 bits: those of the infinity */
        int real = v.dtype == COT_F16 ? 0x7c00 : v.dtype == COT_BF16 ? 0x7f80 : cot__dtype_is_float(v.dtype);
        fprintf(e->calls, "    put(\"%s\", %s, %d, %d, %d);\n", array, array, (int)cot__view_size(&v),
                cot__dtype_size(v.dtype), real);
        emit_bits(e->expected, array, out[k], cot__view_size(&v), v.dtype);
    }
    e->count++;
    return true;
}

static inline void emitted_end(emitted *e) {
    fclose(e->calls);
    fclose(e->expected);
    fprintf(e->main, "int main(void) {\n%s    return 0;\n}\n", e->calls_text);
    fclose(e->main);
}

static inline bool emit_has(const char *command) {
    char line[128];
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", command);
    return system(line) == 0;
}

/* Compiles everything with `compiler` and strict warnings, runs it, and compares what it prints. */
static inline void emitted_compare(const emitted *e, const char *compiler, const char *runner) {
    char  line[1024], *text = NULL;
    size_t size = 0;
    snprintf(line, sizeof line, "cd %s && %s " EMIT_STRICT " *.c -o all -lm 2> errors && %s ./all > printed", e->folder,
             compiler, runner);
    if (system(line) != 0) {
        snprintf(line, sizeof line, "head -40 %s/errors >&2", e->folder);
        if (system(line)) abort();
        test_note("with %s it does not compile, or not run", compiler);
        return;
    }
    FILE *f = emit_open(e, "printed", "r");
    const char *want = e->expected_text;
    while (getline(&text, &size, f) > 0) {
        size_t n = strcspn(want, "\n") + 1;
        TEST_CHECK(strlen(text) == n && memcmp(text, want, n) == 0, "%s: it printed %sinstead of %.*s", compiler, text,
                   (int)n, want);
        want += n <= strlen(want) ? n : strlen(want);
    }
    TEST_CHECK(*want == 0, "%s: it printed less than it should", compiler);
    free(text);
    fclose(f);
}

static inline void emitted_close(emitted *e) {
    char line[128];
    snprintf(line, sizeof line, "rm -r %s", e->folder);
    if (system(line)) abort();
    free(e->calls_text);
    free(e->expected_text);
}

#endif
