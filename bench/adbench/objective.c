/* The objectives over double. The time of a derivative is divided by their time. */
#include "problems.h"

#include <math.h>

#define T         double
#define EXP       exp
#define LOG       log
#define SQRT      sqrt
#define SIN       sin
#define COS       cos
#define TANH      tanh
#define RE(x)     (x)
#define OBJECTIVE ab_objective
#include "objective.inc"

/* The hand by adbench's formula: every vertex as a sum over every bone, most weights 0. It gives
 * the same numbers as ab_objective, which skips unused vertices and zero weights. The published
 * multiples refer to this one. */
void ab_hand_as_written(const struct ab_instance *in, const double *params, double *work, double *out) {
    const struct ab_hand       *h = &in->u.hand;
    const struct ab_hand_model *m = &h->model;
    double(*transform)[12] = (double(*)[12])work + AB_BONES;
    double(*vert)[3] = (double(*)[3])(work + 2 * AB_BONES * 12);
    /* (vertices, bones), filled by the caller */
    double *dense = work + 2 * AB_BONES * 12 + 3 * (size_t)m->vertices, R[9];
    pose_bones(m, params, (double(*)[12])work, transform);
    global_rotation(params, R);
    for (int v = 0; v < m->vertices; v++) {
        const double *p = m->base[v], *w = dense + AB_BONES * (size_t)v;
        double        s[3] = {0, 0, 0};
        for (int b = 0; b < AB_BONES; b++)
            for (int i = 0; i < 3; i++) {
                const double *a = transform[b] + 4 * i;
                s[i] += w[b] * (a[0] * p[0] + a[1] * p[1] + a[2] * p[2] + a[3]);
            }
        for (int i = 0; i < 3; i++)
            vert[v][i] = R[3 * i] * s[0] + R[3 * i + 1] * s[1] + R[3 * i + 2] * s[2] + params[3 + i];
    }
    for (int i = 0; i < h->n; i++)
        for (int j = 0; j < 3; j++) {
            double at;
            if (h->complicated) {
                const int   *t = m->triangle[h->corr[i]];
                const double u = params[AB_THETA + 2 * i], v = params[AB_THETA + 2 * i + 1];
                at = u * vert[t[0]][j] + v * vert[t[1]][j] + (1 - u - v) * vert[t[2]][j];
            } else
                at = vert[h->corr[i]][j];
            out[3 * (size_t)i + (size_t)j] = h->points[i][j] - at;
        }
}

void ab_hand_dense_weights(const struct ab_hand_model *m, double *work) {
    double *dense = work + 2 * AB_BONES * 12 + 3 * (size_t)m->vertices;
    for (int v = 0; v < m->vertices; v++)
        for (int e = m->weight_start[v]; e < m->weight_start[v + 1]; e++)
            dense[AB_BONES * (size_t)v + (size_t)m->weight_bone[e]] += m->weight[e];
}
