/* Small random instances in the text formats, the same on every machine: number i of stream `seed`
 * depends on both alone (splitmix64 of a counter). They cover cases that the shipped data leave
 * out: GMM with gamma != 1 and m > 0, BA without replication and with a camera that has exactly
 * zero rotation. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "problems.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

double ab_random(uint64_t seed, uint64_t i, double scale) {
    uint64_t z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (2 * ((double)(z >> 11) * 0x1p-53) - 1) * scale;
}

struct stream {
    FILE    *file;
    uint64_t seed, next;
};

static double draw(struct stream *s, double centre, double scale) {
    return centre + ab_random(s->seed, s->next++, scale);
}

static int draw_index(struct stream *s, int n) {
    const int i = (int)(draw(s, 0.5, 0.5) * n);
    return i < n ? i : n - 1;
}

/* n numbers on one line */
static void numbers(struct stream *s, int n, double centre, double scale) {
    for (int i = 0; i < n; i++)
        fprintf(s->file, "%.17g%c", draw(s, centre, scale), i + 1 < n ? ' ' : '\n');
}

static void lines(struct stream *s, int count, int n, double centre, double scale) {
    for (int i = 0; i < count; i++)
        numbers(s, n, centre, scale);
}

static void generate_gmm(struct stream *s) {
    const int d = 2 + (int)(s->seed % 3), k = 3, n = 12;
    fprintf(s->file, "%d %d %d\n", d, k, n);
    lines(s, k, 1, 0, 1);
    lines(s, k, d, 0, 1);
    lines(s, k, d * (d + 1) / 2, 0, 0.7);
    lines(s, n, d, 0, 2);
    fprintf(s->file, "%.17g %d\n", 0.7 + 0.1 * (double)(s->seed % 5), 1 + (int)(s->seed % 4));
}

static void camera(struct stream *s, bool rotated) {
    if (!rotated)
        fputs("0 0 0", s->file);
    for (int i = rotated ? 0 : 3; i < AB_CAM; i++) {
        static const double centre[AB_CAM] = {0, 0, 0, 0, 0, -25, 300, 0, 0, 0, 0};
        static const double scale[AB_CAM] = {.3, .3, .3, 2, 2, 4, 100, 10, 10, .1, .01};
        fprintf(s->file, "%s%.17g", i ? " " : "", draw(s, centre[i], scale[i]));
    }
    fputc('\n', s->file);
}

static void generate_ba(struct stream *s) {
    fputs("3 5 11\n", s->file);
    camera(s, s->seed % 4 != 0);
    numbers(s, 3, 0, 2);
    numbers(s, 1, 1, 0.5);
    numbers(s, 2, 0, 50);
}

static void generate_bafull(struct stream *s) {
    const int n = 4, m = 9, p = 24;
    fprintf(s->file, "%d %d %d\n", n, m, p);
    for (int i = 0; i < n; i++)
        camera(s, i > 0);
    lines(s, m, 3, 0, 2);
    lines(s, p, 1, 1, 0.5);
    for (int i = 0; i < p; i++) {
        const int cam = i < n ? i : draw_index(s, n);
        fprintf(s->file, "%d %d\n", cam, draw_index(s, m));
    }
    lines(s, p, 2, 0, 50);
}

static void generate_lstm(struct stream *s) {
    const int l = 1 + (int)(s->seed % 3), c = 9, b = 5;
    fprintf(s->file, "%d %d %d\n\n", l, c, b);
    lines(s, 2 * l, 4 * b, 0, 1);
    fputc('\n', s->file);
    lines(s, 3, b, 0, 1);
    fputc('\n', s->file);
    lines(s, 2 * l, b, 0, 1);
    fputc('\n', s->file);
    for (int i = 0; i < c * b; i++)
        fprintf(s->file, "%d%c", draw(s, 0, 1) > 0, (i + 1) % b ? ' ' : '\n');
}

/* ---- hand ------------------------------------------------------------------------------------ */

enum { VERTICES = 60, TRIANGLES = 40 };

/* A random rotation from a random unit quaternion, and a small shift. */
static void rigid(struct stream *s, double a[12]) {
    double q[4], square = 0;
    for (int i = 0; i < 4; i++) {
        q[i] = draw(s, i == 0 ? 1.5 : 0, 1);
        square += q[i] * q[i];
    }
    const double t = 2 / square, w = q[0], x = q[1], y = q[2], z = q[3];
    const double full[12] = {1 - t * (y * y + z * z), t * (x * y - w * z),     t * (x * z + w * y),     0,
                             t * (x * y + w * z),     1 - t * (x * x + z * z), t * (y * z - w * x),     0,
                             t * (x * z - w * y),     t * (y * z + w * x),     1 - t * (x * x + y * y), 0};
    memcpy(a, full, sizeof full);
    for (int i = 0; i < 3; i++)
        a[4 * i + 3] = draw(s, 0, 0.1);
}

static void multiply(const double a[12], const double b[12], double c[12]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            c[4 * i + j] =
                a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j] + (j == 3 ? a[4 * i + 3] : 0);
}

static void print_affine(FILE *file, const double a[12]) {
    for (int i = 0; i < 12; i++)
        fprintf(file, ":%.17g", a[i]);
    fputs(":0:0:0:1", file);
}

static void generate_bones(struct stream *s) {
    static const char *const fingers[] = {"thumb", "index", "middle", "ring", "pinky"};
    double                   absolute[AB_BONES][12];
    for (int b = 0; b < AB_BONES; b++) {
        const int parent = b == 0 ? -1 : b == AB_BONES - 1 || b % 4 == 1 ? 0 : b - 1;
        double    relative[12], inverse[12];
        rigid(s, relative);
        if (parent < 0)
            memcpy(absolute[b], relative, sizeof relative);
        else
            multiply(absolute[parent], relative, absolute[b]);
        for (int i = 0; i < 3; i++) { /* inverse of a rigid map: R' and -R' t */
            inverse[4 * i + 3] = 0;
            for (int j = 0; j < 3; j++) {
                inverse[4 * i + j] = absolute[b][4 * j + i];
                inverse[4 * i + 3] -= absolute[b][4 * j + i] * absolute[b][4 * j + 3];
            }
        }
        if (b == 0)
            fputs("wrist", s->file);
        else if (b == AB_BONES - 1)
            fputs("forearm", s->file);
        else
            fprintf(s->file, "%s%d", fingers[(b - 1) / 4], (b - 1) % 4 + 1);
        fprintf(s->file, ":%d", parent);
        print_affine(s->file, relative);
        print_affine(s->file, inverse);
        fputc('\n', s->file);
    }
}

static void generate_vertices(struct stream *s) {
    for (int v = 0; v < VERTICES; v++) {
        const int bones = 1 + v % 4, first = draw_index(s, AB_BONES);
        /* one draw a statement: arguments have no order of evaluation */
        for (int i = 0; i < 3; i++)
            fprintf(s->file, "%.17g:", draw(s, 0, 0.2));
        fprintf(s->file, "0:0:1:0:0:%d", bones);
        for (int i = 0; i < bones; i++)
            fprintf(s->file, ":%d:%.17g", (first + i) % AB_BONES, draw(s, 1.0 / bones, 0.1));
        fputc('\n', s->file);
    }
}

static void generate_triangles(struct stream *s) {
    for (int t = 0; t < TRIANGLES; t++) {
        const int a = draw_index(s, VERTICES);
        fprintf(s->file, "%d:%d:%d\n", a, (a + 1) % VERTICES, (a + 2 + draw_index(s, VERTICES - 2)) % VERTICES);
    }
}

static void generate_hand(struct stream *s, bool complicated) {
    const int n = 25;
    fprintf(s->file, "%d %d\n", n, AB_THETA);
    for (int i = 0; i < n; i++) {
        fprintf(s->file, "%d ", draw_index(s, complicated ? TRIANGLES : VERTICES));
        numbers(s, 3, 0, 1);
    }
    if (complicated)
        lines(s, n, 2, 0.4, 0.4);
    if (s->seed % 4 == 0) /* exactly zero: no global rotation */
        fputs("0\n0\n0\n", s->file);
    else
        lines(s, 3, 1, 0, 1);
    lines(s, AB_THETA - 3, 1, 0, 0.8);
}

static void generate_simple(struct stream *s) { generate_hand(s, false); }
static void generate_complicated(struct stream *s) { generate_hand(s, true); }

/* ---- files ----------------------------------------------------------------------------------- */

static bool write_file(const char *path, uint64_t seed, void (*write)(struct stream *), struct ab_error *error) {
    struct stream s = {fopen(path, "w"), seed, 0};
    if (!s.file)
        return ab_fail(error, "%s: cannot create: %s", path, strerror(errno));
    write(&s);
    const bool bad = ferror(s.file) != 0;
    if (fclose(s.file) != 0 || bad)
        return ab_fail(error, "%s: cannot write", path);
    return true;
}

static bool write_model(const char *instance, uint64_t seed, struct ab_error *error) {
    static const struct {
        const char *name;
        void (*write)(struct stream *);
    } files[] = {
        {"/bones.txt", generate_bones}, {"/vertices.txt", generate_vertices}, {"/triangles.txt", generate_triangles}};
    const char  *slash = strrchr(instance, '/');
    const int    folder = slash ? (int)(slash - instance) + 1 : 0;
    const size_t size = (size_t)folder + 32;
    char        *path = malloc(size);
    if (!path)
        return ab_fail(error, "%s: not enough memory", instance);
    snprintf(path, size, "%.*smodel", folder, instance);
    bool ok =
        mkdir(path, 0777) == 0 || errno == EEXIST || ab_fail(error, "%s: cannot create: %s", path, strerror(errno));
    for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++) {
        snprintf(path, size, "%.*smodel%s", folder, instance, files[i].name);
        ok = write_file(path, seed + 1000 * (i + 1), files[i].write, error);
    }
    free(path);
    return ok;
}

bool ab_generate(enum ab_kind kind, uint64_t seed, const char *path, struct ab_error *error) {
    static void (*const writers[AB_KINDS])(struct stream *) = {generate_gmm,  generate_ba,     generate_bafull,
                                                               generate_lstm, generate_simple, generate_complicated};
    return write_file(path, seed, writers[kind], error) &&
           ((kind != AB_HAND && kind != AB_HAND_COMPLICATED) || write_model(path, seed, error));
}
