/* job.h: one operation on arrays, without a tape: what the functions infer, check, workspace, run
 * and view of a record see.
 *
 * A job names an operation and gives its operands as views, its attributes, and the backend that
 * computes. The executor, whoever it is (the recorder of a tape, tape/record_job.h, or a test),
 * asks the record in this order, through backend/job_run.h:
 *
 *   infer      the dtype and shape of each result, from types and attributes alone
 *   workspace  how many bytes the run needs besides
 *   check      whether the elements are legal: positions in range, …
 *   run        writes the results
 *   tell       words what the run found in the data, if it found something
 *
 * or, where the result is a view of operand 0, `view` in place of the last four. The executor
 * answers for the operands: each has a type that a value can have (cot__job_check_type), and memory
 * for it.
 *
 * May call: base. Must not touch: elements; tapes, nodes and storages. */
#ifndef COT_JOB_H
#define COT_JOB_H

#include "base/base.h"

struct cot__op;
struct cot__backend;
struct cot__program;

/* What is known of a value without its elements. */
typedef struct cot__type {
    cot_dtype dtype;
    cot_shape shape;
} cot__type;

/* Attributes and further operands of a structural node. On a tape it lives in the arena. */
typedef struct cot__attr {
    uint32_t    nargs, nints; /* nargs: 0 unless the node has COT__NARY */
    double      number;
    const void *pointer, *pointer2;
    uint32_t   *args;
    int64_t     ints[];
} cot__attr;

/* On whose behalf an operation runs: how messages call it, and where they go. */
typedef struct cot__caller {
    const char *name; /* "matmul": of the function that was called */
    void       *to;
    void (*fail)(const struct cot__caller *c, cot_status code, const char *text);
    void (*note)(const struct cot__caller *c, const char *text);
    /* Operand k holds positions that do not exist. May it stand for zeros instead? While a body is
     * recorded its values are examples. NULL: never. */
    bool (*excuse)(const struct cot__caller *c, int k);
} cot__caller;

/* An operation that runs without a tape, and has no bodies, has no more results than this. */
enum { COT__JOB_RESULTS = 4 };

typedef struct cot__job {
    const cot__caller          *caller;
    const struct cot__backend  *backend;
    const struct cot__op       *record;
    int                         op;
    int                         n; /* operands */
    /* Of an elementwise operation: mask of operands that are plain numbers. */
    uint32_t                    numbers;
    /* infer, workspace, view: shapes and strides; check, run: elements too. */
    cot__view                  *x;
    const cot__attr            *attr; /* NULL: none */
    /* workspace, check: the shape; run: where the result goes, row-major. */
    cot__view                   z;
    /* The same for results 1, 2, … of an operation that has several (cot__op.results). Each is
     * written, and none is read. */
    cot__view                  *more;
    /* Of an operation that has bodies: programs of their own. */
    int                         bodies;
    struct cot__program *const *body;
    void                       *held; /* what cot__op.open made */
    void                       *workspace;
    /* What a run found in the data, in memory of the backend, zeroed before: how many things, and
     * the number of the first. */
    int64_t                    *status;
} cot__job;

/* Puts "[name] text" where errors go, and returns false. */
bool cot__refuse(const cot__caller *c, cot_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a note. */
void cot__remark(const cot__caller *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* That all elements of an operand are positions on an axis of this extent, counted from its end too
 * where they may be negative (wrap). rows: messages leave out its last axis, which is of extent
 * 1. */
typedef struct cot__positions { int operand; int64_t extent; bool wrap, rows; } cot__positions;

/* For which function an operation on positions looks at them: its own, or one that is composed of
 * it, whose derivative it is, or that it stands for in a batch. It is the number among the
 * attributes of such an operation (cot__op.asker), so that a program refuses what the function
 * refuses, in its words. */
typedef enum cot__asker {
    COT__FOR_ITSELF,
    COT__FOR_TAKE,
    COT__FOR_TAKE_ALONG_AXIS,
    COT__FOR_EMBEDDING,
    COT__FOR_SCATTER_ADD,
    COT__FOR_SCATTER_ADD_ALONG,
    COT__FOR_SCATTER,
    COT__FOR_GATHER,
    /* those that follow take labels: none is negative */
    COT__FOR_NLL,
    COT__FOR_CROSS_ENTROPY,
    COT__FOR_SOFTMAX_CROSS_ENTROPY,
    COT__FOR_NN_CROSS_ENTROPY,
    COT__ASKERS
} cot__asker;
/* The asker of an operation with these attributes; COT__ASKERS: the number is none. */
cot__asker  cot__asker_of(const cot__attr *a);
/* What the function is called; NULL: of itself. */
const char *cot__asker_name(cot__asker who);
/* What it calls the positions, and do negative ones count from the end? */
const char *cot__asker_what(cot__asker who);
static inline bool cot__asker_wraps(cot__asker who) { return who < COT__FOR_NLL; }

/* ---- checks that infer is made of ------------------------------------------------------------ */

/* These fail for jobs that no public function makes: a file may hold anything. */

/* From `least` to `most` operands and at least `ints` integers among the attributes. */
bool cot__job_has(const cot__job *j, int least, int most, int ints);
/* Is attribute `at` an axis of rank ndim, counted from the front? */
bool cot__job_axis(const cot__job *j, int at, int ndim);
/* Is attribute `at` from low to high? */
bool cot__job_range(const cot__job *j, int at, int64_t low, int64_t high);
/* Has operand k this dtype? */
bool cot__job_dtype(const cot__job *j, int k, cot_dtype dtype);
/* Is operand k of a float dtype? Of integers (no bool)? */
bool cot__job_float(const cot__job *j, int k);
bool cot__job_integers(const cot__job *j, int k, const char *what);
/* Has operand k this shape? */
bool cot__job_shape(const cot__job *j, int k, int ndim, const int64_t *shape);
/* Is this a dtype? */
bool cot__legal_dtype(const cot__caller *c, cot_dtype dtype);
/* Has it no more axes than there can be, no negative extent, and a number of elements that can be
 * addressed even if empty extents counted as 1? */
bool cot__legal_shape(const cot__caller *c, const cot_shape *s);
/* Is *z a type that a value can have: both of the above? What infer was given must be looked at;
 * what it gives is. */
bool cot__job_check_type(const cot__job *j, const cot__type *z);
/* infer and view of an operation whose only operand has the elements of its result. */
bool cot__infer_same(const cot__job *j, cot__type *z);
bool cot__view_same(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset);
/* Is the number among the attributes an asker? */
bool cot__job_asker(const cot__job *j);
/* "[name] operand k …: this is no legal operation". */
bool cot__job_illegal(const cot__job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int64_t   cot__job_int(const cot__job *j, int at) { return j->attr->ints[at]; }
/* These write no more of a shape than it has axes: a whole one is 136 bytes. */
static inline void cot__extents_of(cot_shape *s, const cot__view *v) {
    s->ndim = v->ndim;
    for (int k = 0; k < v->ndim; k++) s->dim[k] = v->shape[k];
}
static inline void cot__type_like(cot__type *z, cot_dtype dtype, const cot__view *v) {
    z->dtype = dtype;
    cot__extents_of(&z->shape, v);
}
/* What is asked of a result's type; infer refuses a shape of too many axes. */
static inline const cot__type *cot__ask_dtype(cot__type *asked, cot_dtype dtype) {
    asked->dtype = dtype;
    asked->shape.ndim = 0;
    return asked;
}
static inline const cot__type *cot__ask_shape(cot__type *asked, const cot_shape *shape) {
    asked->dtype = COT_F64;
    asked->shape.ndim = shape->ndim;
    for (int k = 0; k < shape->ndim && k < COT_MAX_NDIM; k++) asked->shape.dim[k] = shape->dim[k];
    return asked;
}
static inline cot_shape cot__view_extents(const cot__view *v) {
    cot_shape s;
    cot__extents_of(&s, v);
    return s;
}
static inline int64_t cot__view_size(const cot__view *v) { return cot__count(v->ndim, v->shape); }
/* Strides that show v in another shape of as many elements without moving any; false when there are
 * none. */
bool cot__view_strides(const cot__view *v, const cot_shape *shape, int64_t *stride);

/* Do elements first, first + step, …, `length` of them, lie on an axis of this extent? */
bool cot__slice_is_inside(int64_t extent, int64_t first, int64_t length, int64_t step);

/* "(64,128)"; buf of at least COT__SHAPE_TEXT bytes. */
#define COT__SHAPE_TEXT 256
const char *cot__shape_text(int ndim, const int64_t *shape, char *buf);

#endif
