/* The four ADBench problems: their data, objectives, derivatives and the table of ways to
 * differentiate them.
 *
 * An instance owns one contiguous vector `params` of the independent variables in the reference
 * order, so an objective can be evaluated at any other point (also a complex one) by passing
 * another vector of the same length. Everything else in an instance is constant once it is read.
 *
 * Layouts of the derivative, in doubles:
 *   gmm    gradient: alphas[k], means[k][d], icf[k][d(d+1)/2]
 *   ba     CSR values: 2p rows of 15 (rows 2i, 2i+1 of observation i), then p weight rows of 1: 31p
 *          in all
 *   lstm   gradient: main[8lb], extra[3b]
 *   hand   column-major, 3N rows; 26 columns theta; complicated: 28 columns [du, dv (compressed),
 *          theta]
 */
#ifndef ADBENCH_PROBLEMS_H
#define ADBENCH_PROBLEMS_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ab_kind { AB_GMM, AB_BA, AB_BAFULL, AB_LSTM, AB_HAND, AB_HAND_COMPLICATED, AB_KINDS };

enum { AB_CAM = 11, AB_BA_ROW = 15, AB_BONES = 22, AB_THETA = 26, AB_FINGERS = 5 };

/* A failure in words: "FILE:LINE: what was expected, what was found". */
struct ab_error {
    char text[512];
};

/* d dimensions, k components, n points; icf per component: d log-diagonals, then the strict lower
 * part by columns. */
struct ab_gmm {
    int           d, k, n, m;
    double        gamma;
    const double *alphas;     /* (k), inside params */
    const double *means;      /* (k, d), inside params */
    const double *icf;        /* (k, d(d+1)/2), inside params */
    double       *x;          /* (n, d) */
    double        constant;   /* all terms of the objective that contain no variable */
};

/* n cameras, m points, p observations. A camera is r[3], C[3], f, u0, v0, k1, k2. */
struct ab_ba {
    int           n, m, p;
    const double (*cams)[AB_CAM]; /* (n), inside params */
    const double (*X)[3];         /* (m), inside params */
    const double *w;              /* (p), inside params */
    int (*obs)[2];                /* (p): camera, point */
    double (*feats)[2];           /* (p) */
};

/* l layers, c characters, b bits. main per layer: weight {forget, in, out, change}[b], bias {the
 * same}[b]. */
struct ab_lstm {
    int           l, c, b;
    const double *main;  /* (l, 8, b), inside params */
    const double *extra; /* in_weight[b], out_weight[b], out_bias[b], inside params */
    double       *state; /* (l, 2, b): hidden, cell */
    double       *seq;   /* (c, b) */
};

/* Affine maps are 3x4, row-major: the last row (0 0 0 1) of the file's 4x4 is checked and
 * dropped. */
struct ab_hand_model {
    int    vertices, triangles;
    int    parent[AB_BONES];               /* -1 or a lower bone */
    double base_relative[AB_BONES][12];
    double inverse_base_absolute[AB_BONES][12];
    double (*base)[3];                     /* (vertices) */
    /* (vertices + 1): range of v's weights in the next two */
    int    *weight_start;
    int    *weight_bone;
    double *weight;
    int (*triangle)[3];                    /* (triangles): vertices */
};

struct ab_hand {
    int                  n;     /* correspondences */
    bool                 complicated;
    const double        *theta; /* (26), inside params */
    const double        *us;    /* (n, 2), inside params; NULL if simple */
    int                 *corr;  /* (n): vertex, or triangle if complicated */
    double              (*points)[3];
    struct ab_hand_model model;
    int                  used;  /* number of different vertices that some correspondence needs */
    int                 *used_vertex; /* (used): vertex */
    int                 *slot;  /* (n) or (n, 3): which used vertex */
};

struct ab_instance {
    enum ab_kind kind;
    double      *params;
    size_t       param_count, output_count, derivative_count;
    size_t       work_count; /* scalars of scratch that an objective needs */
    union {
        struct ab_gmm  gmm;
        struct ab_ba   ba;
        struct ab_lstm lstm;
        struct ab_hand hand;
    } u;
};

/* kinds.c: names are gmm ba bafull lstm hand hand_complicated. */
const char *ab_kind_name(enum ab_kind kind);
bool        ab_kind_parse(const char *name, enum ab_kind *kind);
bool        ab_fail(struct ab_error *error, const char *format, ...)
#if defined __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ; /* always returns false */

/* read.c: on failure *in is empty and error says why; ab_free takes an empty instance too. */
bool ab_read(enum ab_kind kind, const char *path, struct ab_instance *in, struct ab_error *error);
void ab_free(struct ab_instance *in);

/* generate.c: a small random instance in the text format; for hand also the folder model/ beside
 * it. */
bool   ab_generate(enum ab_kind kind, uint64_t seed, const char *path, struct ab_error *error);
/* in [-scale, scale), a pure function of (seed, i) */
double ab_random(uint64_t seed, uint64_t i, double scale);

/* objective.c and objective_complex.c: the same formulas (objective.inc) over double and double
 * complex. params has in->param_count scalars, work in->work_count, out in->output_count. */
void ab_objective(const struct ab_instance *in, const double *params, double *work, double *out);
void ab_objective_complex(const struct ab_instance *in, const double complex *params, double complex *work,
                          double complex *out);

/* The hand by the formula, every vertex over every bone; work: absolute and transform (22, 12
 * each), vert (vertices, 3), then the weights (vertices, 22), which ab_hand_dense_weights puts
 * there. */
void ab_hand_as_written(const struct ab_instance *in, const double *params, double *work, double *out);
void ab_hand_dense_weights(const struct ab_hand_model *m, double *work);

/* complex_step.c: column j of the Jacobian, d out / d params[j], exact to rounding. params, work
 * and out are scratch of the sizes above; params must hold the point (imaginary parts 0) and does
 * so again afterwards. */
void ab_complex_step(const struct ab_instance *in, size_t j, double complex *params, double complex *work,
                     double complex *out, double *column);

/* One way to differentiate one problem. */
struct ab_method {
    enum ab_kind kind;
    /* NULL ends a table */
    const char  *style;
    /* preparation, not timed; NULL = failure */
    void *(*open)(const struct ab_instance *in, struct ab_error *error);
    /* timed; derivative_count doubles */
    bool (*run)(void *state, double *derivative, struct ab_error *error);
    /* most memory it has held so far */
    size_t (*peak_bytes)(const void *state);
    void (*close)(void *state);
};

/* methods.c: every table that was compiled in. */
const struct ab_method *ab_method_find(enum ab_kind kind, const char *style);
extern const struct ab_method ab_methods_by_hand[];
/* cot_scalar.c: one operation at a time on scalars */
extern const struct ab_method ab_methods_scalar[];
/* cot_fused.c: scalars with fma, dot_of, sum_of */
extern const struct ab_method ab_methods_fused[];
extern const struct ab_method ab_methods_tensor[]; /* cot_tensor.c: tensors */
/* cot_tensor_hand.c: the same style for the hand */
extern const struct ab_method ab_methods_tensor_hand[];
/* cot_sparse.c: BA as one function with a sparse Jacobian */
extern const struct ab_method ab_methods_sparse[];
/* cot_compiled.c: style tensor as programs */
extern const struct ab_method ab_methods_compiled[];
/* cot_compiled_hand.c: programs for the hand */
extern const struct ab_method ab_methods_compiled_hand[];

#endif
