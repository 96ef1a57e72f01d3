/* conv_plan.h: a convolution as lists of offsets, so that its inner loops know neither stride nor
 * dilation nor rank.
 *
 * One operand is read at shifted places (x, or z when x is wanted). It is copied once into a padded
 * layout in which neighbouring places of the result read neighbouring elements, for every tap:
 * elements a stride apart lie side by side, in one slot for each remainder that the taps use, and
 * zeros stand for elements outside. A tap is then one offset. Plans depend on the geometry only. */
#ifndef COT_CONV_PLAN_H
#define COT_CONV_PLAN_H

#include "backend/cpu/conv/conv.h"

/* Memory of one run, handed out from its front; who is done sets `used` back. The same code runs
 * once without memory, to find out how much it will ask for: it then makes all its requests, each
 * at least as large, and writes nothing. A request for more than any memory has is remembered. */
typedef struct cot__scratch {
    char   *memory; /* 64-byte aligned; NULL: requests are counted */
    int64_t used, most;
    bool    failed;
} cot__scratch;

/* 64-byte aligned; NULL while requests are counted, and after a failure. */
void *cot__scratch_get(cot__scratch *s, int64_t count, int64_t size);
/* May what was requested be written? */
static inline bool cot__scratch_fills(const cot__scratch *s) { return s->memory && !s->failed; }

/* A channel in padded memory: [slot][slot][slot][room][room][room]; element u of slot s is element
 * u·step + start[s] of the source. */
typedef struct cot__layout {
    int64_t  source[COT__SPACE], slots[COT__SPACE], room[COT__SPACE], step[COT__SPACE];
    int64_t *start[COT__SPACE];
    int64_t  channel; /* elements; -1: more than can be addressed */
} cot__layout;

/* The taps along one axis: their element of the kernel, where they read, and the places [low, high)
 * for which that is inside the source. */
typedef struct cot__axis_taps {
    int64_t  n;
    int64_t *kernel, *offset, *low, *high;
} cot__axis_taps;

/* Up to a vector of neighbouring places: where they start in a channel of the layout and in one of
 * the result, and the taps [first, last) that read anything but zeros there. lanes 0: the places
 * are not evenly spaced, see cot__sweep.places. */
typedef struct cot__chunk { int64_t at, out, first, last; int lanes; } cot__chunk;

/* One set of places that share their taps. A result has one, but when x is wanted there is one for
 * each remainder modulo the strides. */
typedef struct cot__sweep {
    /* places; the result's extents */
    int64_t     extent[COT__SPACE], out_start[COT__SPACE], out_stride[COT__SPACE], result[COT__SPACE];
    cot__axis_taps axis[COT__SPACE];
    int         skip;      /* the axis along which taps beyond the border are left out */
    /* none are left out: a weight that is not finite makes padding NaN, wherever chunks are cut */
    bool        whole;
    bool        across;    /* lanes are channels, and a chunk is a few places one after another */
    int64_t     taps;      /* over all channels of a group */
    int64_t    *offset;    /* of each tap, the channel's included */
    int64_t    *channel;   /* the channel that each tap reads, and */
    int64_t    *kernel;    /* the element of the kernel that it takes */
    cot__chunk *chunks;
    int64_t     chunk_count, chunks_a_row; /* chunks_a_row: 0 when places are flattened */
    int64_t    *places;    /* flattened: the place of each lane, -1: none */
    int64_t     out_step;  /* between lanes, in the result */
    int64_t     plane;     /* elements of a channel of the result */
} cot__sweep;

/* The padded layout of x, and the one sweep over the places of z. */
void cot__plan_output(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, cot__layout *layout,
                      cot__sweep *s);
/* The padded layout of z; then, for each remainder of the places of x modulo the strides (`phase`
 * counts them), its sweep. */
void cot__plan_input(cot__scratch *m, const cot__conv *g, cot__layout *layout);
void cot__plan_phase(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, const cot__layout *layout,
                     int64_t phase, cot__sweep *s);
/* The requests of all phases: those of each are no larger than the requests of one of these
 * COT__PHASE_SIZES, whose number is `which`. */
enum { COT__PHASE_SIZES = 8 };
void cot__count_phase(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, const cot__layout *layout,
                      int which, cot__sweep *s);

#endif
