/* Style `compiled` for HAND: a program whose outputs are columns of the Jacobian.
 *
 * An error is a point less a sum of shares: that of the stiff bones, which no angle moves, and one
 * of each finger,
 *     err_i = point_i - Rg (still_i + sum_g maps_g skin_g_i) - shift,
 * where maps_g (3, 12) are the absolute maps of the finger's three joints side by side, and
 * skin_g_i (12) is what the correspondence hangs on these bones with: weight times the place as
 * each bone sees it, inverse_base_absolute (position, 1). So the derivative by the four angles of a
 * finger is that of its share: one function of four angles, batched over the fingers, gives 20
 * columns. Of triangles the skins of three corners are mixed before. The skeleton and the skins are
 * constants, the points have no derivative. */
#include "cot_program.h"

#include <cotangent_transform.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ANGLES = 4, JOINTS = 3, DEPTH = 4 * JOINTS, SKIN_ROWS = AB_FINGERS * DEPTH, CORNERS = 3 };

/* Inputs: theta (26) and, if complicated, u and v (N). */
enum { THETA, U, V };

/* A finger's angles in the order of theta: x and z of the first joint, x of the others. Its map is
 *     root turn[1](z) turn[0](x) turn[2](x') turn[3](x''),   turn[k](a) = one + cos a c + sin a s,
 * with one, c and s (4, 4). */
struct chains {
    double root[AB_FINGERS][12];
    double one[AB_FINGERS][ANGLES][16], c[AB_FINGERS][ANGLES][16], s[AB_FINGERS][ANGLES][16];
};

struct hand {
    const struct ab_hand *h;
    int                   corners;
    struct chains         chains;
    double               *skin;  /* (corners, fingers, 12, N) */
    double               *still; /* (corners, 3, N) */
    struct ab_program     program;
};

/* ---- the skeleton as constants --------------------------------------------------------------- */

/* c = a b */
static void compose(const double a[12], const double b[12], double c[12]) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++)
            c[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j];
        c[4 * i + 3] += a[4 * i + 3];
    }
}

/* turn[k] of a finger = base times a rotation, about z if `axis` is 2, else about x */
static void make_turn(struct chains *f, int finger, int k, const double base[12], int axis) {
    const int a = axis == 2 ? 0 : 1, b = a + 1; /* the plane that turns */
    for (int i = 0; i < 3; i++) {
        double *one = f->one[finger][k] + 4 * i, *c = f->c[finger][k] + 4 * i, *s = f->s[finger][k] + 4 * i;
        one[axis] = base[4 * i + axis];
        one[3] = base[4 * i + 3];
        c[a] = base[4 * i + a];
        c[b] = base[4 * i + b];
        s[a] = base[4 * i + b];
        s[b] = -base[4 * i + a];
    }
    f->one[finger][k][15] = 1;
}

static int finger_of(int bone) { return (bone - 1) / 4; }
/* The place in the finger, 1 to 3, of a bone that bends; 0 for a stiff one. */
static int joint_of(int bone) { return bone == 0 || finger_of(bone) >= AB_FINGERS ? 0 : (bone - 1) % 4; }

/* parent: the absolute map that the finger hangs on */
static void make_joint(struct chains *f, int bone, const double base[12], const double parent[12]) {
    static const double nothing[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const int           finger = finger_of(bone), joint = joint_of(bone);
    if (joint > 1) {
        make_turn(f, finger, joint, base, 0);
        return;
    }
    memcpy(f->root[finger], parent, sizeof f->root[finger]);
    make_turn(f, finger, 1, base, 2);
    make_turn(f, finger, 0, nothing, 0);
}

/* The absolute maps of the bones that do not bend, and the chains that hang on them. */
static bool make_chains(struct hand *s, double absolute[AB_BONES][12], struct ab_error *error) {
    const struct ab_hand_model *m = &s->h->model;
    for (int b = 0; b < AB_BONES; b++) {
        const int up = m->parent[b], joint = joint_of(b);
        if (joint > 0 ? up != b - 1 : up > 0 && joint_of(up) > 0)
            return ab_fail(error, "bone %d hangs on %d; fingers are chains, and stiff bones hang on stiff ones", b, up);
        if (joint > 0)
            make_joint(&s->chains, b, m->base_relative[b], absolute[up]);
        else if (up < 0)
            memcpy(absolute[b], m->base_relative[b], sizeof absolute[b]);
        else
            compose(absolute[up], m->base_relative[b], absolute[b]);
    }
    return true;
}

/* out = map (x, y, z, w) */
static void apply(const double map[12], const double x[4], double out[3]) {
    for (int k = 0; k < 3; k++)
        out[k] = map[4 * k] * x[0] + map[4 * k + 1] * x[1] + map[4 * k + 2] * x[2] + map[4 * k + 3] * x[3];
}

/* Adds rows to a column of an array of n columns. */
static void add_column(double *first, size_t n, int rows, double scale, const double *x) {
    for (int k = 0; k < rows; k++)
        first[(size_t)k * n] += scale * x[k];
}

static void make_skins(struct hand *s, double absolute[AB_BONES][12]) {
    const struct ab_hand_model *m = &s->h->model;
    const size_t                n = (size_t)s->h->n, corners = (size_t)s->corners;
    for (size_t column = 0; column < n * corners; column++) {
        const size_t corner = column % corners, i = column / corners;
        const int    v = s->h->used_vertex[s->h->slot[column]];
        for (int e = m->weight_start[v]; e < m->weight_start[v + 1]; e++) {
            const int    b = m->weight_bone[e], joint = joint_of(b);
            const double position[4] = {m->base[v][0], m->base[v][1], m->base[v][2], 1};
            double       seen[4] = {0, 0, 0, 1}, stands[3];
            apply(m->inverse_base_absolute[b], position, seen);
            if (joint > 0) {
                const size_t row = (corner * AB_FINGERS + (size_t)finger_of(b)) * DEPTH + 4 * (size_t)(joint - 1);
                add_column(s->skin + row * n + i, n, 4, m->weight[e], seen);
            } else {
                apply(absolute[b], seen, stands);
                add_column(s->still + corner * 3 * n + i, n, 3, m->weight[e], stands);
            }
        }
    }
}

/* ---- what is recorded ------------------------------------------------------------------------ */

/* xs: angles (4), then one, c, s (4, 4, 4) and root (3, 4) of the finger; ys: its maps (3, 12) */
static int finger_maps(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    static const int order[ANGLES] = {1, 0, 2, 3};
    const cot_var    angle = cot_reshape(xs[0], COT_SHAPE(ANGLES, 1, 1));
    const cot_var    turns = cot_fma(cot_sin(angle), xs[3], cot_fma(cot_cos(angle), xs[2], xs[1]));
    cot_var          map = xs[4], joints[ANGLES];
    (void)n, (void)m, (void)user;
    for (int k = 0; k < ANGLES; k++)
        joints[k] = map = cot_matmul(map, cot_index(turns, 0, order[k]));
    ys[0] = cot_concat(JOINTS, joints + 1, 1);
    return 0;
}

/* What a finger adds to the errors, (N, 3), as a function of its angles. */
struct share {
    const cot_var *chain; /* one, c, s, root */
    cot_var        rotation, skin;
};

static int finger_share(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct share *f = user;
    const cot_var       root = cot_matmul(f->rotation, f->chain[3]);
    const cot_var       all[] = {xs[0], f->chain[0], f->chain[1], f->chain[2], root};
    cot_var             maps;
    (void)n, (void)m;
    if (finger_maps(5, all, 1, &maps, NULL))
        return 1;
    ys[0] = cot_neg(cot_transpose(cot_matmul(maps, f->skin)));
    return 0;
}

/* xs: those of finger_maps, then the skin (12, N) and Rg; ys: four columns, (4, N, 3) */
static int finger_columns(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    struct share f = {xs + 1, .skin = xs[5], .rotation = xs[6]};
    cot_var      jacobian;
    (void)n, (void)m, (void)user;
    if (cot_fn_jacobian(finger_share, &f, 1, xs, 1, NULL, COT_FORWARD, &jacobian) != COT_OK)
        return 1;
    ys[0] = cot_permute(jacobian, COT_AXES(2, 0, 1));
    return 0;
}

/* What the functions below take from outside. */
struct scene {
    const struct hand *s;
    cot_tape          *t;
    cot_var            maps;  /* (3, 60): of all fingers side by side */
    cot_var            turn, shift;
    cot_var            place; /* (3, N): the correspondences before the global transform */
};

/* Rg, (3, 3) */
static cot_var rotation_of(const struct scene *c, cot_var turn) {
    const double *a = c->s->h->theta;
    if (sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) < 1e-4)
        return cot_eye(c->t, COT_F64, 3, 3);
    return cot_reshape(ab_record_turn(cot_reshape(turn, COT_SHAPE(1, 3))), COT_SHAPE(3, 3));
}

/* The errors, (N, 3), but for the points. */
static cot_var errors_of(const struct scene *c, cot_var turn, cot_var shift, cot_var place) {
    const cot_var vert = cot_add(cot_matmul(rotation_of(c, turn), place), cot_expand_dims(shift, 1));
    return cot_neg(cot_transpose(vert));
}

/* xs: turn and shift */
static int by_turn_and_shift(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct scene *c = user;
    (void)n, (void)m;
    ys[0] = errors_of(c, xs[0], xs[1], c->place);
    return 0;
}

/* What the three corners of each triangle have, mixed by u, v and 1 - u - v; numbers are (corners,
 * rows, N), of one corner if simple. */
static cot_var mixed(const struct scene *c, const cot_var *uv, int64_t rows, const double *numbers) {
    const int64_t n = c->s->h->n;
    const size_t  corner = (size_t)(rows * n);
    const cot_var a = cot_data(c->t, COT_F64, COT_SHAPE(rows, n), numbers);
    if (c->s->corners == 1)
        return a;
    const cot_var b = cot_data(c->t, COT_F64, COT_SHAPE(rows, n), numbers + corner);
    const cot_var last = cot_data(c->t, COT_F64, COT_SHAPE(rows, n), numbers + 2 * corner);
    const cot_var w = cot_sub(cot_sub(1.0, uv[0]), uv[1]);
    return cot_fma(uv[0], a, cot_fma(uv[1], b, cot_mul(w, last)));
}

/* uv: none if simple. Where the correspondences are, (3, N), and their skin, (60, N). */
static void record_place(const struct scene *c, const cot_var *uv, cot_var *place, cot_var *skin) {
    *skin = mixed(c, uv, SKIN_ROWS, c->s->skin);
    *place = cot_add(mixed(c, uv, 3, c->s->still), cot_matmul(c->maps, *skin));
}

/* xs: u and v */
static int by_mixture(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct scene *c = user;
    cot_var             place, skin;
    (void)n, (void)m;
    record_place(c, xs, &place, &skin);
    ys[0] = errors_of(c, c->turn, c->shift, place);
    return 0;
}

/* Columns one after the other: those of u and of v, compressed, if there are such, then theta. */
static int columns(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    static const int   axes[] = {0, 0, 0, 0, 0, 0, COT_NOT_BATCHED};
    const struct hand *s = user;
    const cot_shape    turns = COT_SHAPE(AB_FINGERS, ANGLES, 4, 4);
    const cot_var      theta = xs[THETA];
    struct scene       c = {.s = s, .t = cot_tape_of(theta)};
    cot_var            finger[7], skin, maps, moved, errors;
    (void)m;
    c.turn = cot_slice(theta, 0, 0, 3, 1);
    c.shift = cot_slice(theta, 0, 3, 6, 1);
    finger[0] = cot_reshape(cot_slice(theta, 0, 6, AB_THETA, 1), COT_SHAPE(AB_FINGERS, ANGLES));
    finger[1] = cot_data(c.t, COT_F64, turns, s->chains.one);
    finger[2] = cot_data(c.t, COT_F64, turns, s->chains.c);
    finger[3] = cot_data(c.t, COT_F64, turns, s->chains.s);
    finger[4] = cot_data(c.t, COT_F64, COT_SHAPE(AB_FINGERS, 3, 4), s->chains.root);
    if (cot_vmap(finger_maps, NULL, 5, finger, NULL, 1, &maps, NULL) != COT_OK)
        return 1;
    c.maps = cot_reshape(cot_permute(maps, COT_AXES(1, 0, 2)), COT_SHAPE(3, SKIN_ROWS));
    record_place(&c, xs + U, &c.place, &skin);

    for (int k = 0; k < n - U; k++) { /* no error depends on two of them */
        cot_var tangents[2] = {COT_NONE, COT_NONE};
        tangents[k] = cot_ones(c.t, COT_F64, COT_SHAPE(s->h->n));
        if (cot_fn_jvp(by_mixture, &c, 2, xs + U, tangents, 1, &errors, &moved) != COT_OK)
            return 1;
        *ys++ = moved;
    }
    const cot_var whole[] = {c.turn, c.shift};
    cot_var       jacobians[2];
    if (cot_fn_jacobian(by_turn_and_shift, &c, 2, whole, 1, NULL, COT_FORWARD, jacobians) != COT_OK)
        return 1;
    for (int k = 0; k < 2; k++)
        *ys++ = cot_permute(jacobians[k], COT_AXES(2, 0, 1));
    finger[5] = cot_reshape(skin, COT_SHAPE(AB_FINGERS, DEPTH, s->h->n));
    finger[6] = rotation_of(&c, c.turn);
    return cot_vmap(finger_columns, NULL, 7, finger, axes, 1, ys, NULL) != COT_OK;
}

/* ---- the method ------------------------------------------------------------------------------ */

static void close_hand(void *state) {
    struct hand *s = state;
    ab_close_program(&s->program);
    free(s->skin);
    free(s->still);
    free(s);
}

static bool make_hand(struct hand *s, struct ab_error *error) {
    const size_t   n = (size_t)s->h->n, corners = (size_t)s->corners;
    const int      inputs = s->h->complicated ? 3 : 1;
    const cot_type each = {COT_F64, COT_SHAPE(s->h->n)}, types[] = {{COT_F64, COT_SHAPE(AB_THETA)}, each, each};
    double         absolute[AB_BONES][12] = {{0}}; /* of the stiff bones */
    s->skin = calloc(corners * SKIN_ROWS * n + 1, sizeof *s->skin);
    s->still = calloc(corners * 3 * n + 1, sizeof *s->still);
    if (!s->skin || !s->still)
        return ab_fail(error, "not enough memory");
    if (!make_chains(s, absolute, error))
        return false;
    make_skins(s, absolute);
    if (!ab_open_program(&s->program, columns, s, inputs, types, inputs + 2, error))
        return false;
    memcpy(s->program.in[THETA], s->h->theta, AB_THETA * sizeof(double));
    for (size_t i = 0; inputs > 1 && i < 2 * n; i++)
        ((double *)s->program.in[i % 2 ? V : U])[i / 2] = s->h->us[i];
    return true;
}

static void *open_hand(const struct ab_instance *in, struct ab_error *error) {
    struct hand *s = calloc(1, sizeof *s);
    if (!s) {
        ab_fail(error, "not enough memory");
        return NULL;
    }
    s->h = &in->u.hand;
    s->corners = s->h->complicated ? CORNERS : 1;
    if (make_hand(s, error))
        return s;
    close_hand(s);
    return NULL;
}

static bool run_hand(void *state, double *derivative, struct ab_error *error) {
    return ab_run_in_row(&((struct hand *)state)->program, derivative, error);
}

static size_t hand_bytes(const void *state) {
    const struct hand *s = state;
    const size_t       columns_of_skin = (size_t)s->corners * (size_t)s->h->n;
    return cot_run_bytes(s->program.run) + s->program.bytes + columns_of_skin * (SKIN_ROWS + 3) * sizeof(double);
}

const struct ab_method ab_methods_compiled_hand[] = {
    {AB_HAND, "compiled", open_hand, run_hand, hand_bytes, close_hand},
    {AB_HAND_COMPLICATED, "compiled", open_hand, run_hand, hand_bytes, close_hand},
    {.style = NULL},
};
