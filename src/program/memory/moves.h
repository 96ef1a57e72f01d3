/* moves.h: values of a run that lie in a file while nobody reads them.
 *
 * Each has an extent of its store (base/file/store.h), taken when the run is made. The store's
 * thread moves them meanwhile, where it has time; whoever needs the elements, or their memory,
 * waits first. */
#ifndef COT_PROGRAM_MOVES_H
#define COT_PROGRAM_MOVES_H

#include "base/file/store.h"

/* Out: memory is written to the extent. Back: it is read. Wait: until that is done. */
typedef enum cot__moving { COT__MOVE_OUT, COT__MOVE_BACK, COT__MOVE_WAIT } cot__moving;

/* One of them, for elements at `data`. */
typedef struct cot__move {
    void    *data;
    uint32_t extent;
    bool     awaited; /* while a run is made: its wait has been put */
} cot__move;

/* The lists are their owner's. */
typedef struct cot__moves {
    cot__store  *store; /* NULL: nothing is moved */
    cot__extent *extent;
    cot__move   *move;
    uint32_t     extents; /* that were taken */
} cot__moves;

/* These are false with errno set. */
bool cot__moves_open(cot__moves *m, const cot_allocator *al, const char *folder);
bool cot__moves_take(cot__moves *m, size_t bytes);
bool cot__moves_do(const cot__moves *m, uint32_t move, cot__moving what);
/* Waits for all that was begun. */
void cot__moves_rest(const cot__moves *m);
void cot__moves_close(cot__moves *m);

#endif
