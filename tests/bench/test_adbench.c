/* The promises of bench/adbench: derivatives in every style are exact, objectives over double and
 * double complex are the same function, readers answer bad input with a clear message, and the
 * reference data are reproduced. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif

#include "adbench/problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef COT_SHARED_DATA
#define COT_SHARED_DATA ""
#endif

static char folder[] = "/tmp/adbench_test_XXXXXX";

static void in_folder(char *path, size_t size, const char *name) { snprintf(path, size, "%s/%s", folder, name); }

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const made[] = {
        "model/bones.txt", "model/vertices.txt", "model/triangles.txt", "model", "a.txt", ""};
    char                     path[200];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        in_folder(path, sizeof path, made[i]);
        remove(path);
    }
    return 0;
}

/* ADBench's distance: relative above 1, absolute below. A NaN is far from everything. */
static double rho(double x, double y) {
    const double d = fabs(x - y) / fmax(1, fabs(x) + fabs(y));
    return isnan(d) ? INFINITY : d;
}

static void *room(size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

static void read_or_fail(enum ab_kind kind, const char *path, struct ab_instance *in) {
    struct ab_error error;
    if (!ab_read(kind, path, in, &error))
        fail_msg("%s", error.text);
}

static const char *const styles[] = {"hand", "scalar", "fused", "tensor", "compiled", "sparse"};
enum { STYLES = sizeof styles / sizeof *styles };

/* Every problem has every style, but a sparse Jacobian only where it is one. */
static bool has_style(const struct ab_instance *in, const char *style) {
    return strcmp(style, "sparse") != 0 || in->kind == AB_BA || in->kind == AB_BAFULL;
}

static double *derivative(const struct ab_instance *in, const char *style) {
    struct ab_error         error = {""};
    const struct ab_method *m = ab_method_find(in->kind, style);
    if (!m)
        fail_msg("%s has no style %s", ab_kind_name(in->kind), style);
    double *J = room(in->derivative_count, sizeof *J);
    void   *state = m->open(in, &error);
    if (!state)
        fail_msg("%s, %s: %s", ab_kind_name(in->kind), style, error.text);
    for (int twice = 0; twice < 2; twice++) /* a second run must not depend on the first */
        if (!m->run(state, J, &error))
            fail_msg("%s, %s: %s", ab_kind_name(in->kind), style, error.text);
    assert_true(m->peak_bytes(state) > 0);
    m->close(state);
    return J;
}

/* Where entry (row, column) of the full Jacobian lies in the reference layout, or -1 if it is
 * structurally zero. */
static ptrdiff_t place(const struct ab_instance *in, size_t row, size_t column) {
    if (in->kind == AB_GMM || in->kind == AB_LSTM)
        return (ptrdiff_t)column;
    if (in->kind == AB_HAND)
        return (ptrdiff_t)(in->output_count * column + row);
    if (in->kind == AB_HAND_COMPLICATED) {
        if (column < AB_THETA)
            return (ptrdiff_t)(in->output_count * (column + 2) + row);
        const size_t us = column - AB_THETA;
        return row / 3 == us / 2 ? (ptrdiff_t)(in->output_count * (us % 2) + row) : -1;
    }
    const struct ab_ba *a = &in->u.ba;
    const size_t        p = (size_t)a->p, points = AB_CAM * (size_t)a->n, weights = points + 3 * (size_t)a->m;
    if (row >= 2 * p)
        return column == weights + row - 2 * p ? (ptrdiff_t)(30 * p + row - 2 * p) : -1;
    const size_t i = row / 2, base = AB_BA_ROW * row;
    if (column < points)
        return column / AB_CAM == (size_t)a->obs[i][0] ? (ptrdiff_t)(base + column % AB_CAM) : -1;
    if (column < weights)
        return (column - points) / 3 == (size_t)a->obs[i][1] ? (ptrdiff_t)(base + AB_CAM + (column - points) % 3) : -1;
    return column == weights + i ? (ptrdiff_t)(base + 14) : -1;
}

/* Every entry of the Jacobian, the structurally zero ones too, against the complex step. */
static void check_instance(const struct ab_instance *in) {
    double          *J[STYLES], *column = room(in->output_count, sizeof *column);
    double complex  *params = room(in->param_count, sizeof *params), *work = room(in->work_count, sizeof *work);
    double complex  *out = room(in->output_count, sizeof *out);
    double          *work_real = room(in->work_count, sizeof *work_real), *f = room(in->output_count, sizeof *f);
    size_t           met = 0;
    for (int s = 0; s < STYLES; s++)
        J[s] = has_style(in, styles[s]) ? derivative(in, styles[s]) : NULL;
    for (size_t j = 0; j < in->param_count; j++)
        params[j] = in->params[j];
    ab_objective(in, in->params, work_real, f);
    ab_objective_complex(in, params, work, out);
    for (size_t i = 0; i < in->output_count; i++) {
        assert_true(rho(f[i], creal(out[i])) < 1e-13);
        assert_true(cimag(out[i]) == 0);
    }
    for (size_t j = 0; j < in->param_count; j++) {
        ab_complex_step(in, j, params, work, out, column);
        for (size_t i = 0; i < in->output_count; i++) {
            const ptrdiff_t at = place(in, i, j);
            met += at >= 0;
            for (int s = 0; s < STYLES; s++) {
                if (!J[s])
                    continue;
                const double have = at < 0 ? 0 : J[s][at], by_hand = at < 0 ? 0 : J[0][at];
                if (!(rho(have, column[i]) < 1e-10) || !(rho(have, by_hand) < 1e-10))
                    fail_msg("%s: d f[%zu] / d x[%zu] is %.17g by style %s, %.17g by hand, %.17g by complex step",
                             ab_kind_name(in->kind), i, j, have, styles[s], by_hand, column[i]);
            }
        }
    }
    assert_int_equal(met, in->derivative_count);
    for (int s = 0; s < STYLES; s++)
        free(J[s]);
    free(column);
    free(params);
    free(work);
    free(out);
    free(work_real);
    free(f);
}

static void generate(enum ab_kind kind, uint64_t seed, char *path, size_t size) {
    struct ab_error error;
    in_folder(path, size, "a.txt");
    if (!ab_generate(kind, seed, path, &error))
        fail_msg("%s", error.text);
}

static void every_style_equals_complex_step_on_generated_instances(void **state) {
    (void)state;
    for (int kind = 0; kind < AB_KINDS; kind++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            char               path[200];
            struct ab_instance in;
            generate((enum ab_kind)kind, seed, path, sizeof path);
            read_or_fail((enum ab_kind)kind, path, &in);
            check_instance(&in);
            ab_free(&in);
        }
}

static void generated_instances_cover_what_shipped_ones_leave_out(void **state) {
    (void)state;
    char               path[200];
    struct ab_instance in;
    generate(AB_GMM, 1, path, sizeof path);
    read_or_fail(AB_GMM, path, &in);
    assert_true(in.u.gmm.gamma != 1 && in.u.gmm.m > 0);
    ab_free(&in);
    generate(AB_BAFULL, 1, path, sizeof path);
    read_or_fail(AB_BAFULL, path, &in);
    assert_true(in.u.ba.cams[0][0] == 0 && in.u.ba.cams[0][1] == 0 && in.u.ba.cams[0][2] == 0);
    assert_true(in.u.ba.cams[1][0] != 0 && in.u.ba.obs[0][0] == 0);
    ab_free(&in);
}

static void random_numbers_follow_the_written_formula(void **state) {
    (void)state;
    uint64_t z = ((UINT64_C(3) << 32) + 5 + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    assert_true(ab_random(3, 5, 2.0) == (2 * ((double)(z >> 11) * ldexp(1, -53)) - 1) * 2.0);
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void write_text(const char *name, const char *text, size_t size) {
    char path[200];
    in_folder(path, sizeof path, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static void write_string(const char *name, const char *text) { write_text(name, text, strlen(text)); }

static char *read_text(const char *name, size_t *size) {
    char path[200];
    in_folder(path, sizeof path, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = room(1 << 20, 1);
    *size = fread(text, 1, 1 << 20, file);
    fclose(file);
    return text;
}

/* The message must name the file and hold `part`; the instance must be empty, so freeing it again
 * is harmless. */
static void expect_refusal(enum ab_kind kind, const char *part) {
    char               path[200];
    struct ab_instance in;
    struct ab_error    error = {""};
    in_folder(path, sizeof path, "a.txt");
    if (ab_read(kind, path, &in, &error))
        fail_msg("%s: accepted, expected a message with '%s'", ab_kind_name(kind), part);
    assert_null(in.params);
    ab_free(&in);
    if (!strstr(error.text, part) || !strstr(error.text, folder))
        fail_msg("message '%s' lacks '%s' or the file's name", error.text, part);
}

static void truncated_files_are_refused_wherever_they_end(void **state) {
    (void)state;
    static const char *const files[] = {"a.txt", "model/bones.txt", "model/vertices.txt"};
    for (int kind = 0; kind < AB_KINDS; kind++) {
        char path[200];
        generate((enum ab_kind)kind, 1, path, sizeof path);
        for (size_t f = 0; f < (kind >= AB_HAND ? 3u : 1u); f++) {
            size_t size;
            char  *text = read_text(files[f], &size);
            /* A cut inside the last number leaves a shorter number, and a vertex file may end after
             * any line. */
            const size_t last = f == 2 ? size - 200 : size - 22, step = 1 + size / 150;
            for (size_t cut = 0; cut < last; cut += step) {
                if (f == 2 && (cut == 0 || text[cut - 1] != '\n'))
                    while (cut > 0 && text[cut - 1] != ':')
                        cut++;
                write_text(files[f], text, cut);
                expect_refusal((enum ab_kind)kind, "");
            }
            write_text(files[f], text, size);
            free(text);
        }
    }
}

static void bad_numbers_and_sizes_are_refused_with_a_clear_message(void **state) {
    (void)state;
    static const struct {
        enum ab_kind kind;
        const char  *text, *part;
    } cases[] = {
        {AB_GMM, "", "expected the dimension d"},
        {AB_GMM, "-2 3 4\n", "expected the dimension d (a whole number from 1 to 30000), found '-2'"},
        {AB_GMM, "2 0 4\n", "components k"},
        {AB_GMM, "2 99999999999999999999 4\n", "components k"},
        {AB_GMM, "30000 100000000 100000000\n", "more than the file's"},
        {AB_GMM, "1 1 100000000\n0\n0\n0\n1 2 3 4 5\n", "more than the file's"},
        {AB_GMM, "30000 1 100000000\n", "more than the file's"},
        {AB_GMM, "1 1 1\nx\n0\n0\n0\n1 0\n", "expected alphas, number 1 of 1, found 'x'"},
        {AB_GMM, "1 1 1\n0\nnan\n0\n0\n1 0\n", "expected means"},
        {AB_GMM, "1 1 1\n0\n0\n1e999\n0\n1 0\n", "expected inverse covariance factors"},
        {AB_GMM, "1 1 1\n0\n0\n0\n0\n1 -1\n", "expected the Wishart m"},
        {AB_GMM, "1 1 1\n0\n0\n0\n0\n0 0\n", "gamma above 0"},
        {AB_GMM, "1 1 1\n0\n0\n0\n0\n1 0\n7\n", "expected the end of the file, found '7'"},
        {AB_BA, "1 1 -1\n", "observations p"},
        {AB_BA, "100000000 100000000 100000000\n", "that are supported"},
        {AB_BA, "2 2 2\n1 2 3\n", "expected the camera, number 4 of 11, found the end of the file"},
        {AB_BAFULL, "100000 100000 100000\n1 2 3\n", "more than the file's"},
        {AB_BAFULL, "1 1 1\n0 0 0 0 0 0 1 0 0 0 0\n1 1 1\n1\n1 0\n0 0\n", "camera of an observation"},
        {AB_BAFULL, "1 1 1\n0 0 0 0 0 0 1 0 0 0 0\n1 1 1\n1\n0 -1\n0 0\n", "point of an observation"},
        {AB_LSTM, "1 1 5\n", "characters c"},
        {AB_LSTM, "100000000 100000000 100000000\n", "more than the file's"},
        {AB_LSTM, "1 2 1\n1 2 3\n", "more than the file's"},
        {AB_HAND, "-1 26\n", "correspondences N"},
        {AB_HAND, "1 25\n", "number of angles"},
        {AB_HAND, "100000000 26\n", "more than the file's"},
    };
    char path[200];
    generate(AB_HAND, 1, path, sizeof path); /* for its model */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_string("a.txt", cases[i].text);
        expect_refusal(cases[i].kind, cases[i].part);
    }
    static const char holes[] = "1 1 1\n0\0\n0\n0\n0\n1 0\n"; /* a zero byte ends no number */
    write_text("a.txt", holes, sizeof holes - 1);
    expect_refusal(AB_GMM, "expected alphas");
    remove(path);
    expect_refusal(AB_GMM, "cannot open");
}

static void bad_hand_models_are_refused_with_a_clear_message(void **state) {
    (void)state;
    static const char matrix[] = ":1:0:0:0:0:1:0:0:0:0:1:0:0:0:0:1", bad[] = ":1:0:0:0:0:1:0:0:0:0:1:0:0:0:0:2";
    char              path[200], text[400];
    generate(AB_HAND, 1, path, sizeof path);
    write_string("a.txt", "1 26\n60 0 0 0\n0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    expect_refusal(AB_HAND, "a vertex of the model");
    write_string("model/triangles.txt", "0:1:60\n");
    expect_refusal(AB_HAND, "triangles.txt:1: expected a vertex");
    write_string("model/triangles.txt", "0:1\n2:3:4\n");
    expect_refusal(AB_HAND, "':' and a vertex, found the end of the line");
    write_string("model/vertices.txt", "1:2:3:0:0:0:0:0:1:22:1\n");
    expect_refusal(AB_HAND, "vertices.txt:1: expected a bone (a whole number from 0 to 21), found '22:1'");
    write_string("model/vertices.txt", "1:2:3:0:0:0:0:0:2:1:1\n");
    expect_refusal(AB_HAND, "found the end of the line");
    write_string("model/vertices.txt", "1:2:3:0:0:0:0:0:1000000:1:1\n");
    expect_refusal(AB_HAND, "number of bones");
    snprintf(text, sizeof text, "wrist:0%s%s\n", matrix, matrix);
    write_string("model/bones.txt", text);
    expect_refusal(AB_HAND, "bones.txt:1: expected the bone's parent");
    snprintf(text, sizeof text, "wrist:-1%s%s\n", matrix, bad);
    write_string("model/bones.txt", text);
    expect_refusal(AB_HAND, "0:0:0:1");
    snprintf(text, sizeof text, "wrist:-1%s%s\n", matrix, matrix);
    write_string("model/bones.txt", text);
    expect_refusal(AB_HAND, "must have 22");
}

static void a_single_point_is_meant_for_all_points(void **state) {
    (void)state;
    static const char  text[] = "2 1 3\n0\n0 0\n0 0 0\n1 2\n1 0\n";
    char               path[200];
    struct ab_instance in;
    write_text("a.txt", text, sizeof text - 1);
    in_folder(path, sizeof path, "a.txt");
    read_or_fail(AB_GMM, path, &in);
    for (int i = 0; i < 6; i++)
        assert_true(in.u.gmm.x[i] == 1 + i % 2);
    ab_free(&in);
}

/* ---- reference data -------------------------------------------------------------------------- */

/* PATH.txt -> PATH + ending, read whole as numbers: text, or raw float64 if the ending is .bin.
 * NULL if absent. */
static double *read_reference(const char *path, const char *ending, size_t *count) {
    char name[1100];
    snprintf(name, sizeof name, "%.*s%s", (int)strlen(path) - 4, path, ending);
    FILE *file = fopen(name, "rb");
    if (!file)
        return NULL;
    size_t  size = 1024, n = 0;
    double *v = malloc(size * sizeof *v);
    assert_non_null(v);
    const bool binary = strcmp(ending + strlen(ending) - 4, ".bin") == 0;
    while (binary ? fread(v + n, sizeof *v, 1, file) == 1 : fscanf(file, "%lf", v + n) == 1)
        if (++n == size) {
            v = realloc(v, (size *= 2) * sizeof *v);
            assert_non_null(v);
        }
    fclose(file);
    *count = n;
    return v;
}

/* Sanitizers make everything slow: COT_TEST_SMALL leaves the large instances out. */
static bool is_too_long(const struct ab_instance *in) {
    const struct ab_gmm *g = &in->u.gmm;
    if (!getenv("COT_TEST_SMALL"))
        return false;
    return in->kind == AB_GMM ? (double)g->n * g->k * g->d * g->d > 5e5 : in->kind == AB_BA ? in->u.ba.p > 5000 : false;
}

static double worst(size_t n, const double *have, const double *want) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, rho(have[i], want[i]));
    return most;
}

/* Largest difference, relative to the largest wanted value. */
static double objective_error(size_t n, const double *have, const double *want) {
    double most = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(have[i] - want[i]);
        most = isnan(d) ? INFINITY : fmax(most, d);
        scale = fmax(scale, fabs(want[i]));
    }
    return most / scale;
}

/* One observation's values stand for all of a replicated BA: (2p, p) from 2 + 1, (2p rows of 15, p)
 * from 30 + 1. */
static double *replicate(const struct ab_instance *in, double *one, size_t per_observation, size_t *count) {
    const size_t p = (size_t)in->u.ba.p;
    assert_int_equal(*count, per_observation + 1);
    double *all = room(p * (per_observation + 1), sizeof *all);
    for (size_t i = 0; i < p; i++) {
        memcpy(all + i * per_observation, one, per_observation * sizeof *one);
        all[p * per_observation + i] = one[per_observation];
    }
    *count = p * (per_observation + 1);
    free(one);
    return all;
}

/* Row pointers and columns as the reference states them: where our layout says an entry lies, it
 * must lie there. */
static void check_csr(const struct ab_instance *in, const char *path) {
    size_t  count;
    double *csr = read_reference(path, ".csr.txt", &count);
    if (!csr)
        return;
    const size_t rows = in->output_count, nnz = in->derivative_count;
    assert_int_equal(count, 3 + rows + 1 + nnz);
    assert_true(csr[0] == (double)rows && csr[1] == (double)in->param_count && csr[2] == (double)nnz);
    const double *start = csr + 3, *columns = start + rows + 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t e = (size_t)start[r]; e < (size_t)start[r + 1]; e++)
            assert_int_equal(place(in, r, (size_t)columns[e]), e);
    free(csr);
}

static void check_against_reference(enum ab_kind kind, const char *path) {
    struct ab_instance in;
    size_t             n_f, n_J;
    read_or_fail(kind, path, &in);
    if (is_too_long(&in)) {
        print_message("%-18s %-30s left out: COT_TEST_SMALL is set\n", ab_kind_name(kind), strrchr(path, '/') + 1);
        ab_free(&in);
        return;
    }
    double *want_f = read_reference(path, kind == AB_BA ? ".f3.txt" : ".f.txt", &n_f);
    double *want_J = read_reference(path, kind == AB_BA ? ".Jblock.bin" : ".J.bin", &n_J);
    assert_non_null(want_f);
    assert_non_null(want_J);
    if (kind == AB_BA) {
        want_f = replicate(&in, want_f, 2, &n_f);
        want_J = replicate(&in, want_J, 30, &n_J);
    }
    assert_int_equal(n_f, in.output_count);
    assert_int_equal(n_J, in.derivative_count);
    double *f = room(n_f, sizeof *f), *work = room(in.work_count, sizeof *work);
    ab_objective(&in, in.params, work, f);
    const double f_error = objective_error(n_f, f, want_f);
    print_message("%-18s %-30s objective %.1e", ab_kind_name(kind), strrchr(path, '/') + 1, f_error);
    double most = 0;
    for (int s = 0; s < STYLES; s++) {
        if (!has_style(&in, styles[s]))
            continue;
        double *J = derivative(&in, styles[s]);
        const double J_error = worst(n_J, J, want_J);
        print_message(", %s %.1e", styles[s], J_error);
        most = fmax(most, J_error);
        free(J);
    }
    print_message("\n");
    if (!(f_error < 1e-10) || !(most < 1e-8))
        fail_msg("%s: differs from the reference", path);
    if (kind == AB_BAFULL)
        check_csr(&in, path);
    free(f);
    free(work);
    free(want_f);
    free(want_J);
    ab_free(&in);
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* NAME.txt, but not NAME.f.txt, NAME.f3.txt, NAME.csr.txt */
static bool is_instance(const char *name) {
    const size_t n = strlen(name);
    if (n < 4 || strcmp(name + n - 4, ".txt") != 0)
        return false;
    static const char *const results[] = {".f.txt", ".f3.txt", ".csr.txt"};
    for (size_t i = 0; i < 3; i++)
        if (n > strlen(results[i]) && strcmp(name + n - strlen(results[i]), results[i]) == 0)
            return false;
    return true;
}

static bool kind_of(const char *name, enum ab_kind *kind) {
    static const struct {
        const char  *start;
        enum ab_kind kind;
    } starts[] = {{"gmm", AB_GMM},   {"bafull", AB_BAFULL},      {"ba", AB_BA},
                  {"lstm", AB_LSTM}, {"hand_simple", AB_HAND}, {"hand_complicated", AB_HAND_COMPLICATED}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(name, starts[i].start, strlen(starts[i].start)) == 0) {
            *kind = starts[i].kind;
            return true;
        }
    return false;
}

/* Checks every instance in `path`; folders of hand instances are entered with their kind. Returns
 * how many. */
static int check_folder(const char *path, const enum ab_kind *kind_inside) {
    DIR *dir = opendir(path);
    int  checked = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char         inside[1000];
        enum ab_kind kind;
        if (e->d_name[0] == '.' || (!kind_inside && !kind_of(e->d_name, &kind)))
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (kind_inside)
            kind = *kind_inside;
        if (is_folder(inside))
            checked += kind_inside ? 0 : check_folder(inside, &kind);
        else if (is_instance(e->d_name)) {
            check_against_reference(kind, inside);
            checked++;
        }
    }
    closedir(dir);
    return checked;
}

static void reference_data_are_reproduced(void **state) {
    (void)state;
    const char *base = getenv("COT_SHARED_DATA");
    char        path[800];
    snprintf(path, sizeof path, "%s/adbench", base ? base : COT_SHARED_DATA);
    if (!is_folder(path)) {
        print_message("skipped: no reference data at %s (set COT_SHARED_DATA)\n", path);
        skip();
    }
    assert_true(check_folder(path, NULL) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_follow_the_written_formula),
        cmocka_unit_test(every_style_equals_complex_step_on_generated_instances),
        cmocka_unit_test(generated_instances_cover_what_shipped_ones_leave_out),
        cmocka_unit_test(truncated_files_are_refused_wherever_they_end),
        cmocka_unit_test(bad_numbers_and_sizes_are_refused_with_a_clear_message),
        cmocka_unit_test(bad_hand_models_are_refused_with_a_clear_message),
        cmocka_unit_test(a_single_point_is_meant_for_all_points),
        cmocka_unit_test(reference_data_are_reproduced),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
