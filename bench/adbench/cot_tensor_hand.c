/* Style `tensor` for HAND, in matrices, forward.
 *
 * Few inputs and many outputs: each column of the Jacobian is one tangent. All columns are taken in
 * one sweep by giving everything a leading axis of `lanes` copies, 26 (28 if complicated), each of
 * which moves along its own tangent: the errors are then (lanes, N, 3), and so is what one product
 * of Jacobian and tangent returns: the asked layout, column by column. */
#include "cot_common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JOINTS = 3 * AB_FINGERS };

/* Leaves: theta (lanes, 26) and, if complicated, u and v (lanes, 1, N). The rest is constant. */
enum {
    THETA,
    U,
    V,
    ANGLE_X,  /* (15): the place of each joint's angles in a row of theta with a 0 behind it */
    ANGLE_Z,
    JOINT,    /* (15, 4, 4): base_relative of the bones that bend */
    INVERSE,  /* (22, 4, 4): inverse_base_absolute */
    SKIN,     /* (88, used): column v holds weight(b, v) (position_v, 1) for every bone b */
    POINTS,   /* (3, N) */
    SLOT,     /* three index vectors (N), one if simple: the used vertices of each correspondence */
    BONE = SLOT + 3, /* 22 maps: base_relative, (4, 4); (3, 4) for a bone without parent */
    COUNT = BONE + AB_BONES
};

static int lanes_of(const struct ab_hand *h) { return AB_THETA + (h->complicated ? 2 : 0); }

/* The joint's number, 3 a finger, or -1 for a bone that does not bend. */
static int joint_of(int bone) {
    const int finger = (bone - 1) / 4, joint = (bone - 1) % 4;
    return bone > 0 && finger < AB_FINGERS && joint > 0 ? 3 * finger + joint - 1 : -1;
}

/* ---- open: leaves and constants -------------------------------------------------------------- */

static void full_matrix(const double affine[12], double full[16]) {
    memcpy(full, affine, 12 * sizeof *full);
    full[12] = full[13] = full[14] = 0;
    full[15] = 1;
}

static void make_maps(struct ab_cot *s, const struct ab_hand_model *m) {
    double joint[JOINTS][16], inverse[AB_BONES][16], relative[16];
    for (int b = 0; b < AB_BONES; b++) {
        full_matrix(m->inverse_base_absolute[b], inverse[b]);
        full_matrix(m->base_relative[b], relative);
        s->vars[BONE + b] = cot_data(s->tape, COT_F64, COT_SHAPE(m->parent[b] < 0 ? 3 : 4, 4), relative);
        if (joint_of(b) >= 0)
            memcpy(joint[joint_of(b)], relative, sizeof relative);
    }
    s->vars[JOINT] = cot_data(s->tape, COT_F64, COT_SHAPE(JOINTS, 4, 4), joint);
    s->vars[INVERSE] = cot_data(s->tape, COT_F64, COT_SHAPE(AB_BONES, 4, 4), inverse);
}

static void make_angles(struct ab_cot *s) {
    int64_t x[JOINTS], z[JOINTS];
    for (int j = 0; j < JOINTS; j++) {
        /* theta of the finger: first joint x and z, then x of the other two */
        const int first = 6 + 4 * (j / 3);
        x[j] = first + (j % 3 ? j % 3 + 1 : 0);
        z[j] = j % 3 ? AB_THETA : first + 1;
    }
    s->vars[ANGLE_X] = cot_data(s->tape, COT_I64, COT_SHAPE(JOINTS), x);
    s->vars[ANGLE_Z] = cot_data(s->tape, COT_I64, COT_SHAPE(JOINTS), z);
}

/* scratch: at least 88 used, and 3 N */
static void make_skin(struct ab_cot *s, const struct ab_hand *h, double *scratch) {
    const struct ab_hand_model *m = &h->model;
    const size_t                used = (size_t)h->used, n = (size_t)h->n;
    const int                   per = h->complicated ? 3 : 1;
    memset(scratch, 0, 4 * AB_BONES * used * sizeof *scratch);
    for (size_t u = 0; u < used; u++) {
        const int v = h->used_vertex[u];
        for (int e = m->weight_start[v]; e < m->weight_start[v + 1]; e++)
            for (size_t j = 0; j < 4; j++)
                scratch[(4 * (size_t)m->weight_bone[e] + j) * used + u] += m->weight[e] * (j < 3 ? m->base[v][j] : 1);
    }
    s->vars[SKIN] = cot_data(s->tape, COT_F64, COT_SHAPE(4 * AB_BONES, h->used), scratch);
    for (size_t i = 0; i < 3 * n; i++)
        scratch[i] = h->points[i % n][i / n];
    s->vars[POINTS] = cot_data(s->tape, COT_F64, COT_SHAPE(3, h->n), scratch);
    int64_t *slot = (int64_t *)(void *)scratch;
    for (int j = 0; j < per; j++) {
        for (size_t i = 0; i < n; i++)
            slot[i] = h->slot[i * (size_t)per + (size_t)j];
        s->vars[SLOT + j] = cot_data(s->tape, COT_I64, COT_SHAPE(h->n), slot);
    }
}

/* scratch: lanes max(26, N) */
static void make_leaves(struct ab_cot *s, const struct ab_hand *h, size_t lanes, double *scratch) {
    const size_t n = (size_t)h->n, first = h->complicated ? 2 : 0;
    for (size_t i = 0; i < lanes * AB_THETA; i++)
        scratch[i] = h->theta[i % AB_THETA];
    s->vars[THETA] = cot_tensor(s->tape, COT_F64, COT_SHAPE((int64_t)lanes, AB_THETA), scratch);
    for (size_t j = 0; j < first; j++) {
        for (size_t i = 0; i < lanes * n; i++)
            scratch[i] = h->us[2 * (i % n) + j];
        s->vars[U + j] = cot_tensor(s->tape, COT_F64, COT_SHAPE((int64_t)lanes, 1, h->n), scratch);
    }
}

static void *open_lanes(const struct ab_instance *in, int count, struct ab_error *error) {
    const struct ab_hand *h = &in->u.hand;
    const size_t          lanes = (size_t)count, n = (size_t)h->n, used = (size_t)h->used;
    double               *scratch = malloc((lanes * (AB_THETA + n) + 4 * AB_BONES * used) * sizeof *scratch);
    struct ab_cot        *s = ab_cot_create(in, COUNT, lanes * (AB_THETA + 2 * n), error);
    if (!s || !scratch) {
        ab_fail(error, "not enough memory");
        free(scratch);
        if (s)
            ab_cot_close(s);
        return NULL;
    }
    make_maps(s, &h->model);
    make_angles(s);
    make_skin(s, h, scratch);
    make_leaves(s, h, lanes, scratch);
    free(scratch);
    s->start = cot_tape_mark(s->tape);
    return s;
}

/* Tangents: lane `first` + i moves theta i; lane 0 moves every u, lane 1 every v: their errors do
 * not meet. */
static void *hand_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_hand *h = &in->u.hand;
    const size_t          lanes = (size_t)lanes_of(h), n = (size_t)h->n, first = lanes - AB_THETA;
    struct ab_cot        *s = open_lanes(in, lanes_of(h), error);
    if (!s)
        return NULL;
    for (size_t i = 0; i < AB_THETA; i++)
        s->numbers[(first + i) * AB_THETA + i] = 1;
    for (size_t j = 0; j < first; j++)
        for (size_t i = 0; i < n; i++)
            s->numbers[lanes * AB_THETA + (j * lanes + j) * n + i] = 1;
    return s;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* (15, 4, lanes, 4): base_relative Rz(tz) Rx(tx) of every joint. The lanes lie beside each other,
 * so that one constant matrix meets them all in one product, here as in record_bones. */
static cot_var record_joints(const struct ab_cot *s, int64_t lanes) {
    const cot_var none = cot_zeros(s->tape, COT_F64, COT_SHAPE(lanes, 1)), both[] = {s->vars[THETA], none};
    const cot_var angles = cot_concat(2, both, 1);
    /* (lanes, 15) */
    const cot_var x = cot_take(angles, s->vars[ANGLE_X], 1), z = cot_take(angles, s->vars[ANGLE_Z], 1);
    const cot_var sx = cot_sin(x), cx = cot_cos(x), sz = cot_sin(z), cz = cot_cos(z);
    const cot_var o           = cot_zeros(s->tape, COT_F64, COT_SHAPE(lanes, JOINTS)),
                  i           = cot_ones(s->tape, COT_F64, COT_SHAPE(lanes, JOINTS));
    const cot_var entries[16] = {cz, cot_neg(cot_mul(sz, cx)), cot_mul(sz, sx),          o, /**/
                                 sz, cot_mul(cz, cx),          cot_neg(cot_mul(cz, sx)), o, /**/
                                 o,  sx,                       cx,                       o, /**/
                                 o,  o,                        o,                        i};
    const cot_var stacked = cot_reshape(cot_stack(16, entries, 0), COT_SHAPE(4, 4, lanes, JOINTS));
    const cot_var turns = cot_reshape(cot_permute(stacked, COT_AXES(3, 0, 2, 1)), COT_SHAPE(JOINTS, 4, lanes * 4));
    return cot_reshape(cot_matmul(s->vars[JOINT], turns), COT_SHAPE(JOINTS, 4, lanes, 4));
}

/* (lanes, 3, 88): the maps of all bones side by side */
static cot_var record_bones(const struct ab_cot *s, const struct ab_hand_model *m, int64_t lanes) {
    const cot_var joints = record_joints(s, lanes);
    cot_var       absolute[AB_BONES], full[AB_BONES];
    for (int b = 0; b < AB_BONES; b++) {
        const int joint = joint_of(b);
        cot_var relative = joint < 0 ? s->vars[BONE + b] : cot_permute(cot_index(joints, 0, joint), COT_AXES(1, 0, 2));
        if (m->parent[b] >= 0)
            relative = cot_matmul(absolute[m->parent[b]], relative);
        else if (joint >= 0)
            relative = cot_slice(relative, 1, 0, 3, 1);
        absolute[b] = relative;
        full[b] = cot_broadcast_to(relative, COT_SHAPE(lanes, 3, 4));
    }
    const cot_var all = cot_reshape(cot_stack(AB_BONES, full, 0), COT_SHAPE(AB_BONES, lanes * 3, 4));
    /* (lanes 3, 22, 4) */
    const cot_var transforms = cot_permute(cot_matmul(all, s->vars[INVERSE]), COT_AXES(1, 0, 2));
    return cot_reshape(transforms, COT_SHAPE(lanes, 3, 4 * AB_BONES));
}

/* cos I + sin [u] + (1 - cos) u u'; [u], the matrix of x -> u x x, is u times a (3, 9) one,
 * flattened. */
cot_var ab_record_turn(cot_var turn) {
    static const double crosses[3][9] = {
        {0, 0, 0, 0, 0, -1, 0, 1, 0}, {0, 0, 1, 0, 0, 0, -1, 0, 0}, {0, -1, 0, 1, 0, 0, 0, 0, 0}};
    cot_tape           *t = cot_tape_of(turn);
    const int64_t       lanes = cot_shape_of(turn).dim[0];
    /* (lanes, 3), (lanes, 1) */
    const cot_var norm = cot_norm(turn, 2, COT_KEEP(1)), u = cot_div(turn, norm);
    const cot_var angle = cot_expand_dims(norm, 2), cosine = cot_cos(angle);
    const cot_var flat = cot_matmul(u, cot_data(t, COT_F64, COT_SHAPE(3, 9), crosses));
    const cot_var cross = cot_reshape(flat, COT_SHAPE(lanes, 3, 3));
    const cot_var outer = cot_mul(cot_expand_dims(u, 2), cot_expand_dims(u, 1));
    return cot_fma(cosine, cot_sub(cot_eye(t, COT_F64, 3, 3), outer), cot_fma(cot_sin(angle), cross, outer));
}

static cot_var record_global(const struct ab_cot *s, const struct ab_hand *h) {
    const double *a = h->theta;
    if (sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) < 1e-4)
        return cot_eye(s->tape, COT_F64, 3, 3);
    return ab_record_turn(cot_slice(s->vars[THETA], 1, 0, 3, 1));
}

static cot_var record_hand(const struct ab_cot *s) {
    const struct ab_hand *h = &s->in->u.hand;
    const int64_t         lanes = cot_shape_of(s->vars[THETA]).dim[0];
    /* (lanes, 3, used) */
    const cot_var         still = cot_matmul(record_bones(s, &h->model, lanes), s->vars[SKIN]);
    /* (lanes, 3, 1) */
    const cot_var         shift = cot_expand_dims(cot_slice(s->vars[THETA], 1, 3, 6, 1), 2);
    const cot_var         vert = cot_add(cot_matmul(record_global(s, h), still), shift);
    /* (lanes, 3, N) */
    cot_var               at = cot_take(vert, s->vars[SLOT], 2);
    if (h->complicated) {
        const cot_var u = s->vars[U], v = s->vars[V], w = cot_sub(cot_sub(1.0, u), v);
        const cot_var b = cot_take(vert, s->vars[SLOT + 1], 2), c = cot_take(vert, s->vars[SLOT + 2], 2);
        at = cot_fma(u, at, cot_fma(v, b, cot_mul(w, c)));
    }
    return cot_permute(cot_sub(s->vars[POINTS], at), COT_AXES(0, 2, 1));
}

static bool hand_run(void *state, double *J, struct ab_error *error) {
    struct ab_cot *s = state;
    const cot_var  errors = record_hand(s);
    cot_jvps(1, s->in->u.hand.complicated ? 3 : 1, s->vars, s->numbers, 1, &errors, J);
    return ab_cot_finish(s, error);
}

const struct ab_method ab_methods_tensor_hand[] = {
    {AB_HAND, "tensor", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_HAND_COMPLICATED, "tensor", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {.style = NULL},
};
