/* Derivatives written by hand for the four problems: what a patient programmer gets without a tool,
 * in plain C. Each is exact. Scratch is allocated once when a method is opened, so a run allocates
 * nothing. */
#include "problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct state {
    const struct ab_instance *in;
    size_t                    count; /* doubles in work */
    double                   *work;
};

static void *open_with(const struct ab_instance *in, size_t count, struct ab_error *error) {
    struct state *s = malloc(sizeof *s);
    double       *work = malloc((count ? count : 1) * sizeof *work);
    if (!s || !work) {
        ab_fail(error, "by hand: not enough memory for %zu numbers of scratch", count);
        free(s);
        free(work);
        return NULL;
    }
    *s = (struct state){in, count, work};
    return s;
}

static size_t peak_bytes(const void *state) {
    const struct state *s = state;
    return sizeof *s + s->count * sizeof *s->work;
}

static void close_state(void *state) {
    struct state *s = state;
    free(s->work);
    free(s);
}

/* ---- GMM ------------------------------------------------------------------------------------- */

static void *gmm_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_gmm *g = &in->u.gmm;
    const size_t         d = (size_t)g->d, k = (size_t)g->k;
    return open_with(in, k * (4 * d + 3) + k * d, error);
}

/* v becomes exp(v - max v); returns the sum. */
static double exp_shifted(int n, double *v) {
    double top = v[0], sum = 0;
    for (int i = 1; i < n; i++)
        top = v[i] > top ? v[i] : top;
    for (int i = 0; i < n; i++)
        sum += v[i] = exp(v[i] - top);
    return sum;
}

static double gmm_square(int d, const double *restrict l, const double *restrict z, double *restrict y) {
    double square = 0;
    for (int i = 0; i < d; i++) {
        square += y[i] * y[i];
        for (int j = i + 1; j < d; j++)
            y[j] += *l++ * z[i];
    }
    return square;
}

/* W += r y z' (lower part, diagonal first), Y += r y */
static void gmm_accumulate(int d, double r, const double *restrict z, const double *restrict y, double *restrict W,
                           double *restrict Y) {
    double *restrict l = W + d;
    for (int i = 0; i < d; i++) {
        const double rz = r * z[i];
        W[i] += rz * y[i];
        Y[i] += r * y[i];
        for (int j = i + 1; j < d; j++)
            *l++ += rz * y[j];
    }
}

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    (void)error;
    struct state        *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    const int            d = g->d, k = g->k, n = g->n;
    const size_t         row = (size_t)d * ((size_t)d + 1) / 2, kd = (size_t)k * (size_t)d;
    double *expq = s->work, *z = expq + kd, *y = z + kd, *Y = y + kd, *offset = Y + kd, *r = offset + k, *R = r + k;
    double *d_alpha = gradient, *d_mean = gradient + k, *W = d_mean + kd;

    memset(gradient, 0, s->in->derivative_count * sizeof *gradient);
    memset(Y, 0, kd * sizeof *Y);
    memset(R, 0, (size_t)k * sizeof *R);
    for (int c = 0; c < k; c++) {
        offset[c] = g->alphas[c];
        for (int i = 0; i < d; i++) {
            const double q = g->icf[(size_t)c * row + (size_t)i];
            offset[c] += q;
            expq[c * d + i] = exp(q);
        }
    }

    for (int p = 0; p < n; p++) {
        const double *x = g->x + (size_t)p * (size_t)d;
        for (int c = 0; c < k; c++) {
            double *zc = z + c * d, *yc = y + c * d;
            for (int i = 0; i < d; i++) {
                zc[i] = x[i] - g->means[c * d + i];
                yc[i] = expq[c * d + i] * zc[i];
            }
            r[c] = offset[c] - 0.5 * gmm_square(d, g->icf + (size_t)c * row + d, zc, yc);
        }
        const double scale = 1 / exp_shifted(k, r);
        for (int c = 0; c < k; c++) {
            const double rc = r[c] * scale;
            if (rc == 0) /* far from this component: exp underflowed */
                continue;
            R[c] += rc;
            gmm_accumulate(d, rc, z + c * d, y + c * d, W + (size_t)c * row, Y + c * d);
        }
    }

    memcpy(r, g->alphas, (size_t)k * sizeof *r);
    const double scale = n / exp_shifted(k, r), gamma2 = g->gamma * g->gamma;
    for (int c = 0; c < k; c++) {
        const double *icf = g->icf + (size_t)c * row, *l = icf + d, *e = expq + c * d, *Yc = Y + c * d;
        double       *out = W + (size_t)c * row;
        d_alpha[c] = R[c] - scale * r[c];
        for (int i = 0; i < d; i++) {
            double sum = e[i] * Yc[i]; /* (Q' Y)_i */
            for (int j = i + 1; j < d; j++)
                sum += *l++ * Yc[j];
            d_mean[c * d + i] = sum;
            out[i] = R[c] - e[i] * out[i] + gamma2 * e[i] * e[i] - g->m;
        }
        for (size_t i = (size_t)d; i < row; i++)
            out[i] = gamma2 * icf[i] - out[i];
    }
    return true;
}

/* ---- BA -------------------------------------------------------------------------------------- */

static void *ba_open(const struct ab_instance *in, struct ab_error *error) { return open_with(in, 0, error); }

static double dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross3(const double a[3], const double b[3], double c[3]) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Xc = cos v + sin (u x v) + (1 - cos) (u.v) u, with r = theta u; theta = 0 means Xc = v + r x
 * v. */
struct rotation {
    double theta, cosine, sine, uv;
    double u[3], v[3], uxv[3], Xc[3];
};

static void rotate(const double r[3], const double v[3], struct rotation *t) {
    const double square = dot3(r, r);
    memcpy(t->v, v, sizeof t->v);
    t->theta = sqrt(square);
    if (square == 0) {
        memcpy(t->u, r, sizeof t->u);
        t->cosine = 1;
        t->sine = t->uv = 0;
        cross3(r, v, t->uxv);
        for (int i = 0; i < 3; i++)
            t->Xc[i] = v[i] + t->uxv[i];
        return;
    }
    t->cosine = cos(t->theta);
    t->sine = sin(t->theta);
    const double inverse = 1 / t->theta;
    for (int i = 0; i < 3; i++)
        t->u[i] = r[i] * inverse;
    cross3(t->u, v, t->uxv);
    t->uv = dot3(t->u, v);
    for (int i = 0; i < 3; i++)
        t->Xc[i] = v[i] * t->cosine + t->uxv[i] * t->sine + t->u[i] * (t->uv * (1 - t->cosine));
}

/* From the adjoint g of Xc: those of r and of v. */
static void rotate_back(const struct rotation *t, const double g[3], double gr[3], double gv[3]) {
    double vxg[3];
    cross3(t->v, g, vxg);
    if (t->theta == 0) {
        double gxr[3];
        cross3(g, t->u, gxr);
        for (int i = 0; i < 3; i++) {
            gr[i] = vxg[i];
            gv[i] = g[i] + gxr[i];
        }
        return;
    }
    const double c = t->cosine, s = t->sine, e = 1 - c, ug = dot3(t->u, g), inverse = 1 / t->theta;
    double       gxu[3], gu[3];
    cross3(g, t->u, gxu);
    for (int i = 0; i < 3; i++) {
        gv[i] = c * g[i] + s * gxu[i] + e * ug * t->u[i];
        gu[i] = s * vxg[i] + e * (ug * t->v[i] + t->uv * g[i]);
    }
    /* d Xc / d theta = -sin v + cos (u x v) + sin (u.v) u;  d u / d r = (I - u u') / theta */
    const double gt = -s * dot3(g, t->v) + c * dot3(g, t->uxv) + s * t->uv * ug, along = gt - dot3(gu, t->u) * inverse;
    for (int i = 0; i < 3; i++)
        gr[i] = along * t->u[i] + gu[i] * inverse;
}

static bool ba_run(void *state, double *values, struct ab_error *error) {
    (void)error;
    const struct ab_ba *a = &((struct state *)state)->in->u.ba;
    double             *weight_rows = values + 2 * AB_BA_ROW * (size_t)a->p;
    for (int i = 0; i < a->p; i++) {
        const double   *cam = a->cams[a->obs[i][0]], *X = a->X[a->obs[i][1]], w = a->w[i];
        const double    v[3] = {X[0] - cam[3], X[1] - cam[4], X[2] - cam[5]};
        struct rotation t;
        rotate(cam, v, &t);
        const double depth = 1 / t.Xc[2], p[2] = {t.Xc[0] * depth, t.Xc[1] * depth}, square = p[0] * p[0] + p[1] * p[1];
        const double L = 1 + square * (cam[9] + square * cam[10]), slope = 2 * (cam[9] + 2 * square * cam[10]),
                     f = cam[6];
        for (int k = 0; k < 2; k++) {
            double      *J = values + AB_BA_ROW * (2 * (size_t)i + (size_t)k);
            double       gp[2] = {w * f * slope * p[k] * p[0], w * f * slope * p[k] * p[1]}, gv[3];
            gp[k] += w * f * L;
            const double g[3] = {gp[0] * depth, gp[1] * depth, -(gp[0] * p[0] + gp[1] * p[1]) * depth};
            rotate_back(&t, g, J, gv);
            for (int j = 0; j < 3; j++) {
                J[3 + j] = -gv[j];
                J[11 + j] = gv[j];
            }
            J[6] = w * p[k] * L;
            J[7] = k == 0 ? w : 0;
            J[8] = k == 1 ? w : 0;
            J[9] = w * f * p[k] * square;
            J[10] = J[9] * square;
            J[14] = p[k] * L * f + cam[7 + k] - a->feats[i][k];
        }
        weight_rows[i] = -2 * w;
    }
    return true;
}

/* ---- LSTM ------------------------------------------------------------------------------------ */

enum { FORGET, IN, OUT, CHANGE, CELL_BEFORE, CELL_TANH, HIDDEN_BEFORE, INPUT, KEPT };

static void *lstm_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_lstm *m = &in->u.lstm;
    const size_t          l = (size_t)m->l, c = (size_t)m->c, b = (size_t)m->b;
    return open_with(in, (c - 1) * l * KEPT * b + (c - 1) * 2 * b + 2 * l * b + b, error);
}

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

/* state (2, b): hidden and cell; y (b): input, then output; kept (KEPT, b) */
static void layer_forward(int b, const double *restrict weight, double *restrict state, double *restrict y,
                          double *restrict kept) {
    const double *bias = weight + 4 * b;
    double       *hidden = state, *cell = state + b;
    for (int j = 0; j < b; j++) {
        const double F = sigmoid(y[j] * weight[j] + bias[j]), I_ = sigmoid(hidden[j] * weight[b + j] + bias[b + j]);
        const double O = sigmoid(y[j] * weight[2 * b + j] + bias[2 * b + j]);
        const double G = tanh(hidden[j] * weight[3 * b + j] + bias[3 * b + j]);
        kept[FORGET * b + j] = F;
        kept[IN * b + j] = I_;
        kept[OUT * b + j] = O;
        kept[CHANGE * b + j] = G;
        kept[CELL_BEFORE * b + j] = cell[j];
        kept[HIDDEN_BEFORE * b + j] = hidden[j];
        kept[INPUT * b + j] = y[j];
        cell[j] = cell[j] * F + I_ * G;
        const double th = tanh(cell[j]);
        kept[CELL_TANH * b + j] = th;
        y[j] = hidden[j] = O * th;
    }
}

/* gy (b): adjoint of the output, then of the input; gstate (2, b): of the state after, then
 * before */
static void layer_backward(int b, const double *restrict weight, const double *restrict kept, double *restrict gstate,
                           double *restrict gy, double *restrict gweight) {
    double *ghidden = gstate, *gcell = gstate + b, *gbias = gweight + 4 * b;
    for (int j = 0; j < b; j++) {
        const double F = kept[FORGET * b + j], I_ = kept[IN * b + j], O = kept[OUT * b + j], G = kept[CHANGE * b + j];
        const double th = kept[CELL_TANH * b + j], h = kept[HIDDEN_BEFORE * b + j], a = kept[INPUT * b + j];
        const double gh = ghidden[j] + gy[j], gc = gcell[j] + gh * O * (1 - th * th);
        const double gF = gc * kept[CELL_BEFORE * b + j] * F * (1 - F), gI = gc * G * I_ * (1 - I_);
        const double gO = gh * th * O * (1 - O), gG = gc * I_ * (1 - G * G);
        gcell[j] = gc * F;
        ghidden[j] = gI * weight[b + j] + gG * weight[3 * b + j];
        gy[j] = gF * weight[j] + gO * weight[2 * b + j];
        gweight[j] += gF * a;
        gweight[b + j] += gI * h;
        gweight[2 * b + j] += gO * a;
        gweight[3 * b + j] += gG * h;
        gbias[j] += gF;
        gbias[b + j] += gI;
        gbias[2 * b + j] += gO;
        gbias[3 * b + j] += gG;
    }
}

static bool lstm_run(void *state, double *gradient, struct ab_error *error) {
    (void)error;
    struct state         *s = state;
    const struct ab_lstm *m = &s->in->u.lstm;
    const int             b = m->b, l = m->l, steps = m->c - 1;
    const size_t          layer = (size_t)KEPT * (size_t)b, bits = (size_t)b;
    /* (steps, 2, b): last hidden, d y */
    double *kept = s->work, *ends = kept + (size_t)steps * (size_t)l * layer;
    double *carried = ends + (size_t)steps * 2 * bits, *y = carried + 2 * (size_t)l * bits;
    double *gextra = gradient + 8 * (size_t)l * bits;
    const double scale = -1.0 / ((double)b * steps);

    memcpy(carried, m->state, 2 * (size_t)l * bits * sizeof *carried);
    for (int t = 0; t < steps; t++) {
        const double *now = m->seq + (size_t)t * bits, *next = now + b;
        double       *hidden = ends + 2 * (size_t)t * bits, *gout = hidden + b, sum = 2, ones = 0;
        for (int j = 0; j < b; j++)
            y[j] = now[j] * m->extra[j];
        for (int i = 0; i < l; i++)
            layer_forward(b, m->main + 8 * (size_t)i * bits, carried + 2 * (size_t)i * bits, y,
                          kept + ((size_t)t * (size_t)l + (size_t)i) * layer);
        for (int j = 0; j < b; j++) {
            hidden[j] = y[j];
            sum += gout[j] = exp(y[j] * m->extra[b + j] + m->extra[2 * b + j]);
            ones += next[j];
        }
        const double share = ones / sum; /* d total / d y_j = next_j - (sum next) exp(y_j) / sum */
        for (int j = 0; j < b; j++)
            gout[j] = scale * (next[j] - share * gout[j]);
    }

    memset(gradient, 0, s->in->derivative_count * sizeof *gradient);
    memset(carried, 0, 2 * (size_t)l * bits * sizeof *carried);
    for (int t = steps - 1; t >= 0; t--) {
        const double *now = m->seq + (size_t)t * bits, *hidden = ends + 2 * (size_t)t * bits, *gout = hidden + b;
        for (int j = 0; j < b; j++) {
            gextra[b + j] += gout[j] * hidden[j];
            gextra[2 * b + j] += gout[j];
            y[j] = gout[j] * m->extra[b + j];
        }
        for (int i = l - 1; i >= 0; i--)
            layer_backward(b, m->main + 8 * (size_t)i * bits, kept + ((size_t)t * (size_t)l + (size_t)i) * layer,
                           carried + 2 * (size_t)i * bits, y, gradient + 8 * (size_t)i * bits);
        for (int j = 0; j < b; j++)
            gextra[j] += y[j] * now[j];
    }
    return true;
}

/* ---- HAND ------------------------------------------------------------------------------------ */

enum { ANGLES = 20, COLUMNS = AB_THETA };

struct bone {
    double absolute[12], transform[12];
    int    angles;             /* how many angles move it */
    int    angle[ANGLES];      /* which, 0..19 */
    double tangent[ANGLES][12]; /* d absolute / d angle */
    double moved[ANGLES][12];   /* -Rg d transform / d angle */
};

/* vert (used, 3), D (used, 26, 3) = -d vert / d theta */
static void *hand_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_hand *h = &in->u.hand;
    const size_t          bones = AB_BONES * (sizeof(struct bone) + sizeof(double) - 1) / sizeof(double);
    return open_with(in, bones + (size_t)h->used * (3 + 3 * COLUMNS), error);
}

/* c = a b, where b's fourth row is 0 0 0 last: 1 for a map, 0 for the derivative of a rotation. */
static void affine(const double *restrict a, const double *restrict b, double last, double *restrict c) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++)
            c[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j];
        c[4 * i + 3] += last * a[4 * i + 3];
    }
}

/* Rz(tz) Rx(tx) from cosines and sines; a derivative passes (-sin, cos) for (cos, sin) of its angle
 * and 0 for `one`. */
static void bone_rotation(double cx, double sx, double one_x, double cz, double sz, double one_z, double R[12]) {
    const double full[12] = {cz * one_x, -sz * cx, sz * sx, 0,          sz * one_x, cz * cx,
                             -cz * sx,   0,        0,       one_z * sx, one_z * cx, 0};
    memcpy(R, full, sizeof full);
}

static void add_angle(struct bone *b, int angle, const double *left, const double *rotation) {
    b->angle[b->angles] = angle;
    affine(left, rotation, 0, b->tangent[b->angles++]);
}

static void hand_bones(const struct ab_hand *h, const double Rg[9], struct bone *bones) {
    const struct ab_hand_model *m = &h->model;
    for (int k = 0; k < AB_BONES; k++) {
        struct bone       *b = bones + k;
        const struct bone *up = m->parent[k] < 0 ? NULL : bones + m->parent[k];
        const int          joint = (k - 1) & 3, finger = (k - 1) >> 2;
        const bool         bends = k > 0 && finger < AB_FINGERS && joint > 0;
        double             relative[12], left[12];
        b->angles = 0;
        if (up)
            affine(up->absolute, m->base_relative[k], 1, left);
        else
            memcpy(left, m->base_relative[k], sizeof left);
        if (bends) {
            const double *theta = h->theta + 6 + 4 * finger;
            const double  tx = joint == 1 ? theta[0] : theta[joint], tz = joint == 1 ? theta[1] : 0;
            const double  cx = cos(tx), sx = sin(tx), cz = cos(tz), sz = sin(tz);
            double        R[12], dR[12];
            bone_rotation(cx, sx, 1, cz, sz, 1, R);
            affine(left, R, 1, b->absolute);
            affine(m->base_relative[k], R, 1, relative);
            bone_rotation(-sx, cx, 0, cz, sz, 1, dR);
            add_angle(b, 4 * finger + (joint == 1 ? 0 : joint), left, dR);
            if (joint == 1) {
                bone_rotation(cx, sx, 1, -sz, cz, 0, dR);
                add_angle(b, 4 * finger + 1, left, dR);
            }
        } else {
            memcpy(b->absolute, left, sizeof left);
            memcpy(relative, m->base_relative[k], sizeof relative);
        }
        for (int a = 0; up && a < up->angles; a++) {
            b->angle[b->angles] = up->angle[a];
            affine(up->tangent[a], relative, 1, b->tangent[b->angles++]);
        }
        affine(b->absolute, m->inverse_base_absolute[k], 1, b->transform);
        for (int a = 0; a < b->angles; a++) {
            double moved[12];
            affine(b->tangent[a], m->inverse_base_absolute[k], 1, moved);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 4; j++)
                    b->moved[a][4 * i + j] =
                        -(Rg[3 * i] * moved[j] + Rg[3 * i + 1] * moved[4 + j] + Rg[3 * i + 2] * moved[8 + j]);
        }
    }
}

/* Rg = cos I + sin [u] + (1 - cos) u u' and its three derivatives by a = norm u; no rotation below
 * 1e-4. */
static void hand_rotation(const double a[3], double Rg[9], double dRg[3][9]) {
    static const int next[3] = {1, 2, 0};
    const double     norm = sqrt(dot3(a, a));
    if (norm < 1e-4) {
        for (int i = 0; i < 9; i++)
            Rg[i] = i % 4 == 0;
        memset(dRg, 0, 27 * sizeof(double));
        return;
    }
    const double c = cos(norm), s = sin(norm), e = 1 - c, u[3] = {a[0] / norm, a[1] / norm, a[2] / norm};
    double       by_norm[9], by_u[3][9] = {{0}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            Rg[3 * i + j] = e * u[i] * u[j] + (i == j ? c : 0);
            by_norm[3 * i + j] = s * u[i] * u[j] - (i == j ? s : 0);
            by_u[i][3 * i + j] += e * u[j];
            by_u[j][3 * i + j] += e * u[i];
        }
    for (int i = 0; i < 3; i++) { /* [u](k,j) = u_i, [u](j,k) = -u_i for (i,j,k) cyclic */
        const int j = next[i], k = next[j];
        Rg[3 * k + j] += s * u[i];
        Rg[3 * j + k] -= s * u[i];
        by_norm[3 * k + j] += c * u[i];
        by_norm[3 * j + k] -= c * u[i];
        by_u[i][3 * k + j] += s;
        by_u[i][3 * j + k] -= s;
    }
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 9; i++) {
            const double along = u[0] * by_u[0][i] + u[1] * by_u[1][i] + u[2] * by_u[2][i];
            dRg[q][i] = by_norm[i] * u[q] + (by_u[q][i] - along * u[q]) / norm;
        }
}

/* The vertex and D (26, 3) = -d vertex / d theta. */
static void hand_vertex(const struct ab_hand *h, int v, const struct bone *bones, const double Rg[9],
                        const double dRg[3][9], double vert[3], double (*D)[3]) {
    const struct ab_hand_model *m = &h->model;
    const double               *p = m->base[v];
    double                      pos[3] = {0};
    memset(D, 0, COLUMNS * sizeof *D);
    for (int e = m->weight_start[v]; e < m->weight_start[v + 1]; e++) {
        const struct bone *b = bones + m->weight_bone[e];
        const double       w = m->weight[e], x = w * p[0], y = w * p[1], z = w * p[2];
        for (int i = 0; i < 3; i++)
            pos[i] += b->transform[4 * i] * x + b->transform[4 * i + 1] * y + b->transform[4 * i + 2] * z +
                      b->transform[4 * i + 3] * w;
        for (int a = 0; a < b->angles; a++) {
            const double *t = b->moved[a];
            double       *out = D[6 + b->angle[a]];
            for (int i = 0; i < 3; i++)
                out[i] += t[4 * i] * x + t[4 * i + 1] * y + t[4 * i + 2] * z + t[4 * i + 3] * w;
        }
    }
    for (int i = 0; i < 3; i++) {
        vert[i] = dot3(Rg + 3 * i, pos) + h->theta[3 + i];
        D[3 + i][i] = -1;
        for (int q = 0; q < 3; q++)
            D[q][i] = -dot3(dRg[q] + 3 * i, pos);
    }
}

static bool hand_run(void *state, double *J, struct ab_error *error) {
    (void)error;
    struct state         *s = state;
    const struct ab_hand *h = &s->in->u.hand;
    struct bone          *bones = (struct bone *)(void *)s->work;
    double(*vert)[3] = (double(*)[3])(void *)(bones + AB_BONES);
    double(*D)[COLUMNS][3] = (double(*)[COLUMNS][3])(void *)(vert + h->used);
    double       Rg[9], dRg[3][9];
    const size_t n = (size_t)h->n, rows = 3 * n;

    hand_rotation(h->theta, Rg, dRg);
    hand_bones(h, Rg, bones);
    for (int u = 0; u < h->used; u++)
        hand_vertex(h, h->used_vertex[u], bones, Rg, (const double(*)[9])dRg, vert[u], D[u]);

    if (!h->complicated) {
        for (int c = 0; c < COLUMNS; c++)
            for (size_t i = 0; i < n; i++)
                memcpy(J + (size_t)c * rows + 3 * i, D[h->slot[i]][c], sizeof *D[0]);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const int *t = h->slot + 3 * i;
        for (int j = 0; j < 3; j++) {
            J[3 * i + (size_t)j] = vert[t[2]][j] - vert[t[0]][j];
            J[rows + 3 * i + (size_t)j] = vert[t[2]][j] - vert[t[1]][j];
        }
    }
    for (int c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < n; i++) {
            const int   *t = h->slot + 3 * i;
            const double u = h->us[2 * i], v = h->us[2 * i + 1], w = 1 - u - v;
            for (int j = 0; j < 3; j++)
                J[(size_t)(c + 2) * rows + 3 * i + (size_t)j] =
                    u * D[t[0]][c][j] + v * D[t[1]][c][j] + w * D[t[2]][c][j];
        }
    return true;
}

const struct ab_method ab_methods_by_hand[] = {
    {AB_GMM, "hand", gmm_open, gmm_run, peak_bytes, close_state},
    {AB_BA, "hand", ba_open, ba_run, peak_bytes, close_state},
    {AB_BAFULL, "hand", ba_open, ba_run, peak_bytes, close_state},
    {AB_LSTM, "hand", lstm_open, lstm_run, peak_bytes, close_state},
    {AB_HAND, "hand", hand_open, hand_run, peak_bytes, close_state},
    {AB_HAND_COMPLICATED, "hand", hand_open, hand_run, peak_bytes, close_state},
    {.style = NULL},
};
