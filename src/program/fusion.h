/* fusion.h: which operations of a program run together, block by block, as one stage of elementwise
 * work (backend/runs.h), and which values then live only while a block is worked on.
 *
 * A group is a row of elementwise operations, casts and copies over arrays of one number of
 * elements, between which only views stand. A member may read anything from before the group: views
 * of any strides, values without axes. Of what the group itself makes it may read element i only to
 * make element i. So blocks can be done in any order, and every element is computed and rounded as
 * if each operation ran alone.
 *
 * A group may hold folds: sums, maxima and minima over all elements of what a member makes. Each
 * block is reduced while it is in cache; the result is there when the group is done, so no member
 * reads it. Or a fold reduces rows, the last axes of its operand: then blocks are whole rows, and
 * all folds of the group reduce rows of one length. Such a group says `row`. What a fold has made
 * of a row is there when the row's block is: members may read it as an array that repeats it along
 * the row (softmax on its way back: z (g - Σ z g)). Elementwise operations on such results, an
 * element for each row, belong to the group, too (the mean and the deviation of a variance).
 *
 * So does one with operations on rows: softmax along the last axis, norms and the ways back through
 * them. Each row of their results is made of that row of their operands, so members may stand
 * before and behind them. They do not write where they read.
 *
 * Shifts: a member may read a range of elements of another one (a slice along the first axis), and
 * a group may hold patches: an array with a range of its elements replaced or added to
 * (update_slice, add_slice). Then members have several sizes, and each has a span: element j is
 * done with element j of the longest, and so many before and after each block are done again. Such
 * a group says `spans`.
 *
 * Products: a group may begin with a matrix product that members read, or folds, or operations on
 * rows. It is made as if it ran alone, as a whole; then the others are done, block by block. Such a
 * group says `product`, and has no shifts.
 *
 * None of these operations has an effect, and none moves across another: a group is where its
 * operations are. The pass `gather` (passes/gather.c) brings together what may stand together. */
#ifndef COT_PROGRAM_FUSION_H
#define COT_PROGRAM_FUSION_H

#include "backend/runs.h"
#include "program/program.h"

/* Why an operation does not run together with elementwise work before it. */
#define COT__UNFUSED(_)                                                                                                \
    _(FUSED, "it does")                                                                                                \
    _(NOT_ELEMENTWISE, "it is not elementwise, or has no axes")                                                        \
    _(NOTHING_BEFORE, "an operation stands between that is not elementwise")                                           \
    _(OTHER_SIZE, "its arrays have another number of elements")                                                        \
    _(OTHER_ORDER, "it reads elements of the group in another order")                                                  \
    _(SHIFTED, "it reads, shifted, what is read outside of the group, too")                                            \
    _(PART_OF_PRODUCT, "it reads a part of the end of a matrix product, which has whole arrays alone")                 \
    _(PART_OF_ROWS, "it reads a part of an array whose rows the group reduces")                                        \
    _(OTHER_ROWS, "the group reduces all of its elements, or has rows of another length")                              \
    _(OTHER_AXIS, "it has no rows along the last axes")                                                                \
    _(ROW_LENGTH, "its rows are too short or too long for a block")                                                    \
    _(SMALL_ROWS, "its arrays are small enough to stay in cache")                                                      \
    _(ROWS_APART, "its operands do not lie row by row")                                                                \
    _(FULL, "the group is full")

#define COT__UNFUSED_NAME(name, text) COT__##name,
typedef enum cot__unfused { COT__UNFUSED(COT__UNFUSED_NAME) COT__UNFUSED_COUNT } cot__unfused;
extern const char *const cot__unfused_text[COT__UNFUSED_COUNT];

/* How a value lives that only its group reads: within a block, or, as the plan decides, in a whole
 * array, mostly where a result of the group will lie. A truth lives within a block as the number 0
 * or 1 in the dtype in which its maker computes: nobody converts it. */
enum { COT__INSIDE = 1, COT__INSIDE_AT_HOME = 2, COT__INSIDE_AS_NUMBER = 3 };

/* What is in front of the range, behind it, and the range itself. */
enum { COT__PATCH_RUNS = 3 };

/* Operations first … end - 1: `runs` members, and `folds` with operations on rows and on what folds
 * have made of these, of two at least, and views. `of` below tells them from views, and
 * cot__is_fold, cot__is_on_rows and cot__is_row_number from members. */
typedef struct cot__group {
    uint32_t first, end, runs, folds; /* a patch counts as COT__PATCH_RUNS */
    int64_t  size;                    /* elements of the largest member */
    bool     spans;                   /* `span` below says what members do for a block */
    bool     product;                 /* operation `first` is one, and no run; see below */
    int64_t  row;                     /* elements of the rows of folds; 0: not rows */
} cot__group;

/* Does the group begin with a matrix product, whose end the members are? */
static inline bool cot__ends_product(const cot__group *g) { return g->product; }
/* Are all elements made by members alone, and its folds of all elements? */
static inline bool cot__is_plain_group(const cot__group *g) { return !g->product && g->row == 0; }

/* Elements of a block that neighbours make, too: a multiple of 64 bytes of them. */
enum { COT__MOST_AGAIN = 1024 };

typedef struct cot__fusion {
    cot_allocator  al;
    uint32_t       values, operations; /* of the program */
    cot__group    *group;
    uint32_t       groups, room;
    uint32_t      *of;     /* for each operation: its group, or COT__NO_VALUE */
    uint8_t       *why;    /* for each operation: a cot__unfused */
    uint8_t       *inside; /* for each value: 0, or how it lives */
    bool           shifts; /* something may be read shifted; else there are no spans */
    /* For each operation of a group that says so; `at` of a patch: where its range begins. */
    cot__run_span *span;
} cot__fusion;

/* inputs: their strides; NULL: they are row-major. False after telling the caller that there is no
 * memory; then there is nothing to close. */
bool cot__fusion_open(cot__fusion *f, const cot__program *p, const cot_allocator *al, const cot__view *inputs,
                      const cot__caller *caller);
void cot__fusion_close(cot__fusion *f);

/* ---- for those who look at a program the same way -------------------------------------------- */

/* Can operation k be a member of a group? */
bool cot__is_fusable(const cot__program *p, uint32_t k);
/* Can operation k be a fold of a group that makes its operand? */
bool cot__is_fold(const cot__program *p, uint32_t k);
/* The cot__reduction that a fold does; -1: the operation is none. */
int cot__fold_reduction(int op);
/* Elements of the rows that a fold reduces, or an operation on rows reads; 0: a fold reduces all to
 * one. */
int64_t cot__fold_row(const cot__program *p, uint32_t k);
/* Is operation k a fold of rows whose results members may read, repeated along the rows? */
bool cot__is_row_fold(const cot__program *p, uint32_t k);
/* Is operation k, of a group, elementwise on what folds of it have made of rows? */
bool cot__is_row_number(const cot__fusion *f, const cot__program *p, uint32_t k);
/* Does operation k repeat each element of its operand along the last axes, as many as a row has? */
bool cot__is_along_rows(const cot__program *p, uint32_t k);
/* Can operation k be an operation on rows of a group? */
bool cot__is_on_rows(const cot__program *p, uint32_t k);
/* Bytes of the smallest array for these: smaller ones stay in cache between operations, so nothing
 * is gained. It is a variable only for the tests, which make it small, but never 0. */
extern int64_t cot__small_rows;
/* How many of its operands have rows: the first. The others are the same for all rows. */
int cot__rows_read(const cot__program *p, uint32_t k);
/* Its axes in front of those of a row. */
static inline int cot__axes_of_rows(const cot__program *p, uint32_t k) {
    return (int)cot__operation_attr(p, k)->ints[0];
}
/* Is operation k a product of two matrices with which a group can begin? */
bool cot__is_product(const cot__program *p, uint32_t k);
/* The dtype in which a member computes that is elementwise: that of its first operand that is no
 * number and no condition. */
cot_dtype cot__member_compute(const cot__program *p, uint32_t k);
/* The dtype in which a value of a group lies. */
cot_dtype cot__inside_dtype(const cot__fusion *f, const cot__program *p, uint32_t v);
/* Is operation k a patch: operand 0 with a range of its elements changed by operand 1? */
bool cot__is_patch(const cot__program *p, uint32_t k);
/* The first element of the range that a slice or a patch has in operand 0, whose elements lie side
 * by side; -1: they do not. */
int64_t cot__range_at(const cot__program *p, uint32_t k);
/* The number of elements that a group of it has. */
int64_t cot__fused_size(const cot__program *p, uint32_t k);
/* Is operation k a view in every plan, and of no effect but this? `dense`: its operand has all
 * elements of a result in their order. */
bool cot__is_always_view(const cot__program *p, uint32_t k, bool dense);
/* Does it leave the order of the elements as it is? */
bool cot__keeps_order(int op);

/* ---- the inside of looking for groups, which fusion.c and spans.c share ---------------------- */

/* How a value views the elements of its base: all of them, a range, or each of them repeated along
 * a row. */
enum { COT__OTHER_WAY, COT__WHOLE_IN_ORDER, COT__RANGE_IN_ORDER, COT__ALONG_ROWS };

typedef struct cot__group_search {
    cot__fusion        *f;
    const cot__program *p;
    const cot__view    *inputs; /* their strides, or NULL */
    /* For each value: the one whose elements it views, itself if it is no view; how; and of a range
     * its first element. */
    uint32_t           *base;
    uint8_t            *straight;
    int64_t            *shift;
    uint32_t           *last_reader; /* of each base; p->operations: it is given out */
    /* For each operation: it may read nothing shifted, because that did not work out. */
    uint8_t            *alone;
    int64_t             size;       /* of the group that is open */
    uint32_t            open, last; /* its number (COT__NO_VALUE: none) and its last member */
    uint32_t            shifted;    /* the first member that reads something shifted, or none */
    bool                reads_product; /* does a member, if the group begins with one? */
    uint32_t            again;      /* where the walk goes on if not with the next operation */
} cot__group_search;

/* Does the group that is open make the value, or what it views? */
static inline bool cot__in_open_group(const cot__group_search *s, uint32_t v) {
    if (v == COT__NO_VALUE || s->open == COT__NO_VALUE) return false;
    uint32_t base = s->base[v];
    return cot__value_origin(s->p, base) == COT__FROM_OPERATION && s->f->of[cot__value_maker(s->p, base)] == s->open;
}

/* How many elements further on than its result operation k reads operand i, which its group makes;
 * of a patch, than the result that is patched. */
int64_t cot__shift_of(const cot__group_search *s, uint32_t k, int i);
/* Is that within what groups do? */
bool cot__shift_is_short(int64_t shift);

/* The spans of the members of the group that is open. False: there are none, because what would be
 * made twice is read elsewhere, or is too much. */
bool cot__find_spans(cot__group_search *s);

#endif
