/* Readers of the ADBench text formats.
 *
 * A file is read into memory whole; every number is checked for presence, form and range, and every
 * size against what the file can hold at all before anything is allocated for it. A failure names
 * file, line and what was expected. */
#include "problems.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scanning -------------------------------------------------------------------------------- */

struct scanner {
    const char      *path;
    char            *text, *at, *end;
    struct ab_error *error;
    int              line;
};

static bool scanner_open(struct scanner *s, const char *path, struct ab_error *error) {
    *s = (struct scanner){.path = path, .error = error, .line = 1};
    FILE *file = fopen(path, "rb");
    if (!file)
        return ab_fail(error, "%s: cannot open: %s", path, strerror(errno));
    size_t size = 0, room = 1 << 16, got;
    bool   ok = (s->text = malloc(room + 1)) != NULL;
    while (ok && (got = fread(s->text + size, 1, room - size, file)) > 0) {
        size += got;
        if (size == room) {
            char *more = realloc(s->text, 2 * room + 1);
            ok = more != NULL;
            if (ok) {
                s->text = more;
                room *= 2;
            }
        }
    }
    if (!ok)
        ab_fail(error, "%s: not enough memory to read the file", path);
    else if (ferror(file))
        ok = ab_fail(error, "%s: cannot read: %s", path, strerror(errno));
    fclose(file);
    if (!ok) {
        free(s->text);
        s->text = NULL;
        return false;
    }
    s->text[size] = 0;
    s->at = s->text;
    s->end = s->text + size;
    return true;
}

static void scanner_close(struct scanner *s) { free(s->text); }

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
static bool is_space(char c) { return is_blank(c) || c == '\n'; }

static void skip_space(struct scanner *s) {
    for (; s->at < s->end && is_space(*s->at); s->at++)
        s->line += *s->at == '\n';
}

static bool at_end(struct scanner *s) {
    skip_space(s);
    return s->at == s->end;
}

/* "FILE:LINE: expected WHAT, found …": the next word is quoted, at most 24 characters of it. */
static bool unexpected(struct scanner *s, const char *what) {
    if (s->at >= s->end)
        return ab_fail(s->error, "%s:%d: expected %s, found the end of the file", s->path, s->line, what);
    if (*s->at == '\n')
        return ab_fail(s->error, "%s:%d: expected %s, found the end of the line", s->path, s->line, what);
    int n = 0;
    while (n < 24 && s->at + n < s->end && !is_space(s->at[n]) && s->at[n] != 0)
        n++;
    return ab_fail(s->error, "%s:%d: expected %s, found '%.*s'", s->path, s->line, what, n, s->at);
}

static bool ends_number(const struct scanner *s, const char *p) { return p == s->end || is_space(*p) || *p == ':'; }

static bool scan_double(struct scanner *s, const char *what, double *value) {
    skip_space(s);
    char *stop;
    *value = strtod(s->at, &stop);
    if (s->at == s->end || stop == s->at || !ends_number(s, stop) || !isfinite(*value))
        return unexpected(s, what);
    s->at = stop;
    return true;
}

static bool scan_int(struct scanner *s, const char *what, long low, long high, int *value) {
    skip_space(s);
    char *stop;
    errno = 0;
    const long v = s->at == s->end ? 0 : strtol(s->at, &stop, 10);
    if (s->at == s->end || stop == s->at || !ends_number(s, stop) || errno || v < low || v > high) {
        char range[160];
        snprintf(range, sizeof range, "%s (a whole number from %ld to %ld)", what, low, high);
        return unexpected(s, range);
    }
    *value = (int)v;
    s->at = stop;
    return true;
}

static bool scan_doubles(struct scanner *s, const char *what, size_t n, double *values) {
    for (size_t i = 0; i < n; i++)
        if (!scan_double(s, "", values + i)) {
            char full[120];
            snprintf(full, sizeof full, "%s, number %zu of %zu", what, i + 1, n);
            return unexpected(s, full);
        }
    return true;
}

static bool scan_end(struct scanner *s) { return at_end(s) || unexpected(s, "the end of the file"); }

/* Numbers still in the file take two characters each at least, a digit and a separator. */
static bool check_room(struct scanner *s, const char *sizes, double numbers) {
    if (numbers > (double)(s->end - s->at) / 2 + 1)
        return ab_fail(s->error, "%s: the sizes (%s) ask for %.0f numbers, more than the file's %td bytes can hold",
                       s->path, sizes, numbers, s->end - s->text);
    return true;
}

enum { MAX_SIZE = 100000000 };
#define MAX_NUMBERS 536870912.0 /* 4 GiB of doubles */

static bool check_total(struct scanner *s, const char *sizes, double numbers) {
    if (numbers > MAX_NUMBERS)
        return ab_fail(s->error, "%s: the sizes (%s) ask for %.0f numbers, more than the %.0f that are supported",
                       s->path, sizes, numbers, MAX_NUMBERS);
    return true;
}

static bool allocate(struct scanner *s, void *pointer, size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    memcpy(pointer, &memory, sizeof memory);
    return memory || ab_fail(s->error, "%s: not enough memory for %zu numbers", s->path, count);
}

/* ---- GMM ------------------------------------------------------------------------------------- */

/* The terms of f that contain no variable: -n d/2 log(2 pi) - k C. */
static double gmm_constant(const struct ab_gmm *g) {
    const double pi = 3.14159265358979323846, freedom = (double)g->d + g->m + 1;
    double       log_gamma = 0.25 * g->d * (g->d - 1.0) * log(pi);
    for (int j = 1; j <= g->d; j++)
        log_gamma += lgamma(0.5 * freedom + 0.5 * (1 - j));
    const double C = freedom * g->d * (log(g->gamma) - 0.5 * log(2)) - log_gamma;
    return -(double)g->n * g->d * 0.5 * log(2 * pi) - g->k * C;
}

/* A file may hold a single point that counts n times: then only gamma and m follow the first
 * point. */
static bool gmm_is_replicated(struct scanner *s) {
    struct ab_error unused;
    struct scanner  ahead = *s;
    double          skip;
    ahead.error = &unused;
    return scan_double(&ahead, "", &skip) && scan_double(&ahead, "", &skip) && at_end(&ahead);
}

static bool read_gmm(struct scanner *s, struct ab_instance *in) {
    struct ab_gmm *g = &in->u.gmm;
    if (!scan_int(s, "the dimension d", 1, 30000, &g->d) ||
        !scan_int(s, "the number of components k", 1, MAX_SIZE, &g->k) ||
        !scan_int(s, "the number of points n", 1, MAX_SIZE, &g->n))
        return false;
    char         sizes[80];
    const size_t d = (size_t)g->d, k = (size_t)g->k, n = (size_t)g->n, row = d * (d + 1) / 2;
    const double count = (double)k * (1 + (double)d + (double)row);
    snprintf(sizes, sizeof sizes, "d = %d, k = %d, n = %d", g->d, g->k, g->n);
    if (!check_room(s, sizes, count + (double)d + 2) || !check_total(s, sizes, count + (double)n * (double)d))
        return false;
    in->param_count = in->derivative_count = k * (1 + d + row);
    in->output_count = 1;
    in->work_count = k * d + 2 * k + 2 * d;
    if (!allocate(s, &in->params, in->param_count, sizeof(double)))
        return false;
    g->alphas = in->params;
    g->means = g->alphas + k;
    g->icf = g->means + k * d;
    if (!scan_doubles(s, "alphas", k, in->params) || !scan_doubles(s, "means", k * d, in->params + k) ||
        !scan_doubles(s, "inverse covariance factors", k * row, in->params + k + k * d))
        return false;

    double *first = in->params; /* only to be set below */
    if (!allocate(s, &first, d, sizeof(double)))
        return false;
    bool       ok = scan_doubles(s, "the first point", d, first);
    const bool replicated = ok && n > 1 && gmm_is_replicated(s);
    ok = ok && (replicated || check_room(s, sizes, (double)(n - 1) * (double)d + 2)) &&
         allocate(s, &g->x, n * d, sizeof(double));
    if (ok) {
        memcpy(g->x, first, d * sizeof *first);
        if (replicated)
            for (size_t i = 1; i < n; i++)
                memcpy(g->x + i * d, first, d * sizeof *first);
        else
            ok = scan_doubles(s, "points after the first", (n - 1) * d, g->x + d);
    }
    free(first);
    if (!ok || !scan_double(s, "the Wishart gamma", &g->gamma) || !scan_int(s, "the Wishart m", 0, MAX_SIZE, &g->m))
        return false;
    if (g->gamma <= 0)
        return ab_fail(s->error, "%s:%d: expected a Wishart gamma above 0, found %g", s->path, s->line, g->gamma);
    g->constant = gmm_constant(g);
    return true;
}

/* ---- BA -------------------------------------------------------------------------------------- */

static bool ba_sizes(struct scanner *s, struct ab_instance *in, char *sizes, size_t room) {
    struct ab_ba *a = &in->u.ba;
    if (!scan_int(s, "the number of cameras n", 1, MAX_SIZE, &a->n) ||
        !scan_int(s, "the number of points m", 1, MAX_SIZE, &a->m) ||
        !scan_int(s, "the number of observations p", 1, MAX_SIZE, &a->p))
        return false;
    const size_t n = (size_t)a->n, m = (size_t)a->m, p = (size_t)a->p;
    snprintf(sizes, room, "n = %d, m = %d, p = %d", a->n, a->m, a->p);
    in->param_count = AB_CAM * n + 3 * m + p;
    in->output_count = 3 * p;
    in->derivative_count = 31 * p;
    in->work_count = 0;
    if (in->kind == AB_BAFULL && !check_room(s, sizes, (double)in->param_count + 4 * (double)p))
        return false;
    return check_total(s, sizes, (double)in->param_count + 3 * (double)p);
}

static bool ba_allocate(struct scanner *s, struct ab_instance *in) {
    struct ab_ba *a = &in->u.ba;
    if (!allocate(s, &in->params, in->param_count, sizeof(double)) ||
        !allocate(s, &a->obs, (size_t)a->p, sizeof *a->obs) || !allocate(s, &a->feats, (size_t)a->p, sizeof *a->feats))
        return false;
    a->cams = (const double(*)[AB_CAM])in->params;
    a->X = (const double(*)[3])(in->params + AB_CAM * (size_t)a->n);
    a->w = in->params + AB_CAM * (size_t)a->n + 3 * (size_t)a->m;
    return true;
}

/* The file holds one camera, point, weight and feature, which count for all. Observation i is (i
 * mod n, i mod m). */
static bool read_ba(struct scanner *s, struct ab_instance *in) {
    struct ab_ba *a = &in->u.ba;
    char          sizes[80];
    double        cam[AB_CAM], X[3], w, feat[2];
    if (!ba_sizes(s, in, sizes, sizeof sizes) || !scan_doubles(s, "the camera", AB_CAM, cam) ||
        !scan_doubles(s, "the point", 3, X) || !scan_double(s, "the weight", &w) ||
        !scan_doubles(s, "the feature", 2, feat) || !ba_allocate(s, in))
        return false;
    double *at = in->params;
    for (int i = 0; i < a->n; i++, at += AB_CAM)
        memcpy(at, cam, sizeof cam);
    for (int i = 0; i < a->m; i++, at += 3)
        memcpy(at, X, sizeof X);
    for (int i = 0; i < a->p; i++) {
        *at++ = w;
        a->obs[i][0] = i % a->n;
        a->obs[i][1] = i % a->m;
        memcpy(a->feats[i], feat, sizeof feat);
    }
    return true;
}

static bool read_bafull(struct scanner *s, struct ab_instance *in) {
    struct ab_ba *a = &in->u.ba;
    char          sizes[80];
    if (!ba_sizes(s, in, sizes, sizeof sizes) || !ba_allocate(s, in))
        return false;
    double *X = in->params + AB_CAM * (size_t)a->n, *w = X + 3 * (size_t)a->m;
    if (!scan_doubles(s, "cameras", AB_CAM * (size_t)a->n, in->params) ||
        !scan_doubles(s, "points", 3 * (size_t)a->m, X) || !scan_doubles(s, "weights", (size_t)a->p, w))
        return false;
    for (int i = 0; i < a->p; i++)
        if (!scan_int(s, "the camera of an observation", 0, a->n - 1, &a->obs[i][0]) ||
            !scan_int(s, "the point of an observation", 0, a->m - 1, &a->obs[i][1]))
            return false;
    return scan_doubles(s, "features", 2 * (size_t)a->p, a->feats[0]);
}

/* ---- LSTM ------------------------------------------------------------------------------------ */

static bool read_lstm(struct scanner *s, struct ab_instance *in) {
    struct ab_lstm *m = &in->u.lstm;
    if (!scan_int(s, "the number of layers l", 1, MAX_SIZE, &m->l) ||
        !scan_int(s, "the number of characters c", 2, MAX_SIZE, &m->c) ||
        !scan_int(s, "the bits of a character b", 1, MAX_SIZE, &m->b))
        return false;
    char         sizes[80];
    const double numbers = (double)m->b * (10 * (double)m->l + 3 + m->c);
    snprintf(sizes, sizeof sizes, "l = %d, c = %d, b = %d", m->l, m->c, m->b);
    if (!check_room(s, sizes, numbers) || !check_total(s, sizes, numbers))
        return false;
    const size_t l = (size_t)m->l, c = (size_t)m->c, b = (size_t)m->b;
    in->param_count = in->derivative_count = 8 * l * b + 3 * b;
    in->output_count = 1;
    in->work_count = 2 * l * b + b;
    if (!allocate(s, &in->params, in->param_count, sizeof(double)) ||
        !allocate(s, &m->state, 2 * l * b, sizeof(double)) || !allocate(s, &m->seq, c * b, sizeof(double)))
        return false;
    m->main = in->params;
    m->extra = in->params + 8 * l * b;
    return scan_doubles(s, "main parameters", 8 * l * b, in->params) &&
           scan_doubles(s, "extra parameters", 3 * b, in->params + 8 * l * b) &&
           scan_doubles(s, "state", 2 * l * b, m->state) && scan_doubles(s, "sequence", c * b, m->seq);
}

/* ---- HAND ------------------------------------------------------------------------------------ */

/* Moves past the ':' that must stand before the next field of a line. */
static bool scan_colon(struct scanner *s, const char *before) {
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    if (s->at == s->end || *s->at != ':') {
        char what[80];
        snprintf(what, sizeof what, "':' and %s", before);
        return unexpected(s, what);
    }
    s->at++;
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    return (s->at < s->end && *s->at != '\n') || unexpected(s, before);
}

static bool scan_line_end(struct scanner *s) {
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    return s->at == s->end || *s->at == '\n' || unexpected(s, "the end of the line");
}

static bool scan_fields(struct scanner *s, const char *what, int n, double *values) {
    for (int i = 0; i < n; i++)
        if (!scan_colon(s, what) || !scan_double(s, what, values + i))
            return false;
    return true;
}

static bool scan_affine(struct scanner *s, const char *what, double affine[12]) {
    double full[16];
    if (!scan_fields(s, what, 16, full))
        return false;
    if (full[12] != 0 || full[13] != 0 || full[14] != 0 || full[15] != 1)
        return ab_fail(s->error, "%s:%d: expected %s to end in the row 0:0:0:1", s->path, s->line, what);
    memcpy(affine, full, 12 * sizeof *full);
    return true;
}

/* name : parent : 16 numbers base_relative : 16 numbers inverse_base_absolute */
static bool read_bones(struct scanner *s, struct ab_hand_model *m) {
    for (int b = 0; b < AB_BONES; b++) {
        if (at_end(s))
            return unexpected(s, "a bone (the model must have 22)");
        while (s->at < s->end && *s->at != ':' && *s->at != '\n')
            s->at++;
        if (!scan_colon(s, "the bone's parent") || !scan_int(s, "the bone's parent", -1, b - 1, &m->parent[b]) ||
            !scan_affine(s, "the base relative matrix", m->base_relative[b]) ||
            !scan_affine(s, "the inverse base absolute matrix", m->inverse_base_absolute[b]) || !scan_line_end(s))
            return false;
    }
    return scan_end(s);
}

static int count_lines(const struct scanner *s) {
    int  lines = 0;
    bool text = false;
    for (const char *p = s->text; p < s->end; p++)
        if (*p == '\n') {
            lines += text;
            text = false;
        } else if (!is_space(*p))
            text = true;
    return lines + text;
}

/* x:y:z : 5 ignored : nb : (bone:weight) x nb */
static bool read_vertices(struct scanner *s, struct ab_hand_model *m) {
    m->vertices = count_lines(s);
    if (m->vertices == 0)
        return unexpected(s, "a vertex");
    size_t colons = 0; /* bounds the number of weights: each has two */
    for (const char *p = s->text; p < s->end; p++)
        colons += *p == ':';
    if (!allocate(s, &m->base, (size_t)m->vertices, sizeof *m->base) ||
        !allocate(s, &m->weight_start, (size_t)m->vertices + 1, sizeof(int)) ||
        !allocate(s, &m->weight_bone, colons / 2, sizeof(int)) || !allocate(s, &m->weight, colons / 2, sizeof(double)))
        return false;
    int filled = 0;
    for (int v = 0; v < m->vertices; v++) {
        double ignored[5];
        int    bones;
        if (!scan_double(s, "a vertex's x", &m->base[v][0]) ||
            !scan_fields(s, "a vertex's y and z", 2, &m->base[v][1]) ||
            !scan_fields(s, "one of five further fields", 5, ignored) || !scan_colon(s, "the number of bones") ||
            !scan_int(s, "the number of bones of a vertex", 0, AB_BONES, &bones))
            return false;
        for (int i = 0; i < bones; i++, filled++)
            if (!scan_colon(s, "a bone") || !scan_int(s, "a bone", 0, AB_BONES - 1, &m->weight_bone[filled]) ||
                !scan_fields(s, "a weight", 1, &m->weight[filled]))
                return false;
        if (!scan_line_end(s))
            return false;
        m->weight_start[v + 1] = filled;
    }
    return scan_end(s);
}

static bool read_triangles(struct scanner *s, struct ab_hand_model *m) {
    m->triangles = count_lines(s);
    if (!allocate(s, &m->triangle, (size_t)m->triangles, sizeof *m->triangle))
        return false;
    for (int t = 0; t < m->triangles; t++) {
        for (int i = 0; i < 3; i++)
            if ((i > 0 && !scan_colon(s, "a vertex")) ||
                !scan_int(s, "a vertex", 0, m->vertices - 1, &m->triangle[t][i]))
                return false;
        if (!scan_line_end(s))
            return false;
    }
    return scan_end(s);
}

static bool read_model_file(const char *instance, const char *name, struct ab_hand_model *m, struct ab_error *error,
                            bool (*read)(struct scanner *, struct ab_hand_model *)) {
    const char  *slash = strrchr(instance, '/');
    const int    folder = slash ? (int)(slash - instance) + 1 : 0;
    const size_t size = (size_t)folder + strlen(name) + sizeof "model/";
    char        *path = malloc(size);
    if (!path)
        return ab_fail(error, "%s: not enough memory", instance);
    snprintf(path, size, "%.*smodel/%s", folder, instance, name);
    struct scanner s;
    bool           ok = scanner_open(&s, path, error);
    if (ok) {
        ok = read(&s, m);
        scanner_close(&s);
    }
    free(path);
    return ok;
}

/* Numbers the vertices that correspondences need, so that nothing is computed for the others. */
static bool find_used(struct scanner *s, struct ab_hand *h) {
    const int per = h->complicated ? 3 : 1;
    int      *place = NULL; /* vertex -> slot + 1 */
    if (!allocate(s, &h->slot, (size_t)h->n * (size_t)per, sizeof(int)) ||
        !allocate(s, &h->used_vertex, (size_t)h->model.vertices, sizeof(int)) ||
        !allocate(s, &place, (size_t)h->model.vertices, sizeof(int)))
        return false;
    for (int i = 0; i < h->n; i++)
        for (int j = 0; j < per; j++) {
            const int v = h->complicated ? h->model.triangle[h->corr[i]][j] : h->corr[i];
            if (place[v] == 0) {
                h->used_vertex[h->used++] = v;
                place[v] = h->used;
            }
            h->slot[(size_t)i * (size_t)per + (size_t)j] = place[v] - 1;
        }
    free(place);
    return true;
}

static bool read_hand(struct scanner *s, struct ab_instance *in) {
    struct ab_hand *h = &in->u.hand;
    int             angles;
    h->complicated = in->kind == AB_HAND_COMPLICATED;
    if (!read_model_file(s->path, "bones.txt", &h->model, s->error, read_bones) ||
        !read_model_file(s->path, "vertices.txt", &h->model, s->error, read_vertices) ||
        !read_model_file(s->path, "triangles.txt", &h->model, s->error, read_triangles))
        return false;
    if (!scan_int(s, "the number of correspondences N", 1, MAX_SIZE, &h->n) ||
        !scan_int(s, "the number of angles", AB_THETA, AB_THETA, &angles))
        return false;
    char         sizes[40];
    const size_t n = (size_t)h->n;
    snprintf(sizes, sizeof sizes, "N = %d", h->n);
    if (!check_room(s, sizes, (double)n * (h->complicated ? 6 : 4) + AB_THETA))
        return false;
    in->param_count = AB_THETA + (h->complicated ? 2 * n : 0);
    in->output_count = 3 * n;
    in->derivative_count = 3 * n * (AB_THETA + (h->complicated ? 2 : 0));
    if (!allocate(s, &in->params, in->param_count, sizeof(double)) || !allocate(s, &h->corr, n, sizeof(int)) ||
        !allocate(s, &h->points, n, sizeof *h->points))
        return false;
    const int limit = h->complicated ? h->model.triangles : h->model.vertices;
    for (size_t i = 0; i < n; i++)
        if (!scan_int(s, h->complicated ? "a triangle of the model" : "a vertex of the model", 0, limit - 1,
                      &h->corr[i]) ||
            !scan_doubles(s, "a point", 3, h->points[i]))
            return false;
    h->theta = in->params;
    if (h->complicated) {
        h->us = in->params + AB_THETA;
        if (!scan_doubles(s, "barycentric coordinates", 2 * n, in->params + AB_THETA))
            return false;
    }
    if (!scan_doubles(s, "angles", AB_THETA, in->params) || !find_used(s, h))
        return false;
    in->work_count = 2 * AB_BONES * 12 + 3 * (size_t)h->used;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

bool ab_read(enum ab_kind kind, const char *path, struct ab_instance *in, struct ab_error *error) {
    static bool (*const readers[AB_KINDS])(struct scanner *, struct ab_instance *) = {read_gmm,  read_ba,   read_bafull,
                                                                                      read_lstm, read_hand, read_hand};
    struct scanner s;
    memset(in, 0, sizeof *in);
    in->kind = kind;
    if (!scanner_open(&s, path, error))
        return false;
    const bool ok = readers[kind](&s, in) && scan_end(&s);
    scanner_close(&s);
    if (!ok)
        ab_free(in);
    return ok;
}

void ab_free(struct ab_instance *in) {
    switch (in->kind) {
    case AB_GMM: free(in->u.gmm.x); break;
    case AB_BA:
    case AB_BAFULL:
        free(in->u.ba.obs);
        free(in->u.ba.feats);
        break;
    case AB_LSTM:
        free(in->u.lstm.state);
        free(in->u.lstm.seq);
        break;
    case AB_HAND:
    case AB_HAND_COMPLICATED:
        free(in->u.hand.corr);
        free(in->u.hand.points);
        free(in->u.hand.used_vertex);
        free(in->u.hand.slot);
        free(in->u.hand.model.base);
        free(in->u.hand.model.weight_start);
        free(in->u.hand.model.weight_bone);
        free(in->u.hand.model.weight);
        free(in->u.hand.model.triangle);
        break;
    case AB_KINDS: break;
    }
    free(in->params);
    memset(in, 0, sizeof *in);
}
