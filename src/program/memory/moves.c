/* moves.c: see moves.h. */
#include "program/memory/moves.h"

bool cot__moves_open(cot__moves *m, const cot_allocator *al, const char *folder) {
    m->store = cot__store_open(al, folder);
    if (m->store) cot__store_hire(m->store); /* without a thread bytes are moved at once */
    return m->store != NULL;
}

bool cot__moves_take(cot__moves *m, size_t bytes) {
    return cot__extent_take(m->store, bytes, &m->extent[m->extents]) && (m->extents++, true);
}

bool cot__moves_do(const cot__moves *m, uint32_t move, cot__moving what) {
    void        *data = m->move[move].data;
    cot__extent *e = &m->extent[m->move[move].extent];
    if (!cot__extent_finish(e)) return false;
    switch (what) {
    case COT__MOVE_OUT:
        return cot__extent_write_behind(e, data) || cot__store_write(m->store, e->at, data, e->bytes, &e->sum);
    case COT__MOVE_BACK:
        return cot__extent_read_ahead(e, data) || cot__store_read(m->store, e->at, data, e->bytes, e->sum);
    default: return true;
    }
}

void cot__moves_rest(const cot__moves *m) {
    for (uint32_t k = 0; k < m->extents; k++) cot__extent_finish(&m->extent[k]);
}

void cot__moves_close(cot__moves *m) {
    cot__moves_rest(m);
    cot__store_close(m->store);
    *m = (cot__moves){0};
}
