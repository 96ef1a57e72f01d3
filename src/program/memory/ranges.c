/* ranges.c: free ranges in a sorted list. Few ranges are free at a time, so the list is short. */
#include "program/memory/ranges.h"

#include <string.h>

static void remove_range(cot__ranges *r, uint32_t k) {
    r->count--;
    memmove(r->free + k, r->free + k + 1, (r->count - k) * sizeof *r->free);
}

int64_t cot__ranges_take(cot__ranges *r, int64_t bytes) {
    uint32_t best = UINT32_MAX;
    for (uint32_t k = 0; k < r->count; k++)
        if (r->free[k].bytes >= bytes && (best == UINT32_MAX || r->free[k].bytes < r->free[best].bytes)) best = k;
    if (best == UINT32_MAX) {
        int64_t at = r->top;
        if (bytes > COT__SIZE_MOST / 4 - at) return -1;
        r->top += bytes;
        return at;
    }
    int64_t at = r->free[best].at;
    r->free[best].at += bytes;
    r->free[best].bytes -= bytes;
    if (!r->free[best].bytes) remove_range(r, best);
    return at;
}

static bool has_room(cot__ranges *r) {
    uint32_t room = r->room ? 2 * r->room : 16;
    if (r->count < r->room) return true;
    void *more = cot__resize(r->al, r->free, r->room * sizeof *r->free, room * sizeof *r->free);
    if (!more) return false;
    r->free = more;
    r->room = room;
    return true;
}

/* The number of the first free range behind `at`. */
static uint32_t place_of(const cot__ranges *r, int64_t at) {
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->free[middle].at < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void join(cot__ranges *r, uint32_t k) {
    if (k + 1 >= r->count || r->free[k].at + r->free[k].bytes != r->free[k + 1].at) return;
    r->free[k].bytes += r->free[k + 1].bytes;
    remove_range(r, k + 1);
}

bool cot__ranges_give(cot__ranges *r, int64_t at, int64_t bytes) {
    uint32_t k = place_of(r, at);
    if (!has_room(r)) return false;
    memmove(r->free + k + 1, r->free + k, (r->count - k) * sizeof *r->free);
    r->free[k] = (cot__range){at, bytes};
    r->count++;
    join(r, k);
    if (k > 0) join(r, k - 1);
    return true;
}

void cot__ranges_close(cot__ranges *r) { cot__free(r->al, r->free, r->room * sizeof *r->free); }
