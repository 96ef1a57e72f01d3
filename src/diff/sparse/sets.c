/* sets.c: see sets.h. One hash table holds lists and unions. A list is found again by its columns,
 * a union by its two sets. */
#include "diff/sparse/sets.h"

#include <string.h>

/* A union of two lists that has no more columns than this is written as a list at once. */
enum { LISTED = 64 };

bool cot__ensure(const cot_allocator *al, void **data, int64_t *capacity, int64_t count, size_t element) {
    if (count <= *capacity) return true;
    int64_t more = *capacity < 32 ? 64 : 2 * *capacity;
    if (more < count) more = count;
    void *p = cot__resize(al, *data, (size_t)*capacity * element, (size_t)more * element);
    if (!p) return false;
    *data = p;
    *capacity = more;
    return true;
}

#define ENSURE(s, array, capacity, count)                                                                              \
    cot__ensure((s)->al, (void **)&(s)->array, &(s)->capacity, count, sizeof *(s)->array)

bool cot__sets_open(cot__sets *s, const cot_allocator *al, int64_t columns, int64_t most) {
    *s = (cot__sets){.al = al, .count = 1, .width = columns, .most = most, .bucket_count = 1024};
    s->buckets = cot__alloc(al, (size_t)s->bucket_count * sizeof *s->buckets);
    s->seen = cot__alloc(al, (size_t)columns * sizeof *s->seen);
    if (!s->buckets || !s->seen || !ENSURE(s, entries, capacity, 1) ||
        !ENSURE(s, scratch, scratch_capacity, 2 * LISTED))
        return false;
    memset(s->buckets, 0, (size_t)s->bucket_count * sizeof *s->buckets);
    memset(s->seen, 0, (size_t)columns * sizeof *s->seen);
    s->entries[0] = (cot__set_entry){0};
    return true;
}

void cot__sets_close(cot__sets *s) {
    cot__free(s->al, s->entries, (size_t)s->capacity * sizeof *s->entries);
    cot__free(s->al, s->columns, (size_t)s->column_capacity * sizeof *s->columns);
    cot__free(s->al, s->buckets, (size_t)s->bucket_count * sizeof *s->buckets);
    cot__free(s->al, s->seen, (size_t)s->width * sizeof *s->seen);
    cot__free(s->al, s->scratch, (size_t)s->scratch_capacity * sizeof *s->scratch);
    cot__free(s->al, s->stack, (size_t)s->stack_capacity * sizeof *s->stack);
}

static cot__set fail(cot__sets *s) {
    s->failed = true;
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void grow_table(cot__sets *s) {
    int64_t   wide = 2 * s->bucket_count;
    uint32_t *buckets = cot__alloc(s->al, (size_t)wide * sizeof *buckets);
    if (!buckets) return; /* the old table still works, with longer chains */
    memset(buckets, 0, (size_t)wide * sizeof *buckets);
    for (int64_t i = 1; i < s->count; i++) {
        uint32_t *bucket = &buckets[s->entries[i].hash & (uint64_t)(wide - 1)];
        s->entries[i].next = *bucket;
        *bucket = (uint32_t)i;
    }
    cot__free(s->al, s->buckets, (size_t)s->bucket_count * sizeof *s->buckets);
    s->buckets = buckets;
    s->bucket_count = wide;
}

static cot__set add_entry(cot__sets *s, cot__set_entry e) {
    if (s->count >= UINT32_MAX || !ENSURE(s, entries, capacity, s->count + 1)) return fail(s);
    if (s->count > s->bucket_count) grow_table(s);
    cot__set  set = (cot__set)s->count++;
    uint32_t *bucket = &s->buckets[e.hash & (uint64_t)(s->bucket_count - 1)];
    e.next = *bucket;
    e.as = set;
    s->entries[set] = e;
    return *bucket = set;
}

static uint32_t mix(uint64_t h) {
    h = (h ^ h >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

/* The list of n columns as a set. `columns` may be the scratch array, but not a part of the
 * table. */
static cot__set list(cot__sets *s, const uint32_t *columns, int64_t n) {
    if (n == 0) return 0;
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = (h ^ columns[i]) * UINT64_C(0x100000001b3);
    uint32_t hash = mix(h);
    for (cot__set c = s->buckets[hash & (uint64_t)(s->bucket_count - 1)]; c; c = s->entries[c].next) {
        const cot__set_entry *e = &s->entries[c];
        if (e->hash == hash && !e->pair && (int64_t)e->cost == n &&
            !memcmp(s->columns + e->start, columns, (size_t)n * sizeof *columns))
            return c;
    }
    s->full = s->full || n > s->most - s->column_count;
    if (s->full || !ENSURE(s, columns, column_capacity, s->column_count + n)) return fail(s);
    memcpy(s->columns + s->column_count, columns, (size_t)n * sizeof *columns);
    cot__set set = add_entry(
        s,
        (cot__set_entry){.start = (uint64_t)s->column_count, .cost = (uint64_t)n, .least = (uint32_t)n, .hash = hash});
    s->column_count += n;
    return set;
}

cot__set cot__set_of(cot__sets *s, uint32_t column) { return s->failed ? 0 : list(s, &column, 1); }

/* ---- writing out ----------------------------------------------------------------------------- */

static void sift(uint32_t *a, int64_t i, int64_t n) {
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && a[child + 1] > a[child]) child++;
        if (a[i] >= a[child]) return;
        uint32_t x = a[i];
        a[i] = a[child];
        a[child] = x;
    }
}

/* Heap sort: in place and without recursion. The qsort of libc may allocate. */
void cot__sort(uint32_t *a, int64_t n) {
    for (int64_t i = n / 2; i-- > 0;) sift(a, i, n);
    for (int64_t i = n; i-- > 1;) {
        uint32_t x = a[0];
        a[0] = a[i];
        a[i] = x;
        sift(a, 0, i);
    }
}

static bool push(cot__sets *s, int64_t *depth, cot__set a) {
    if (!ENSURE(s, stack, stack_capacity, *depth + 1)) return false;
    s->stack[(*depth)++] = a;
    return true;
}

/* Writes the columns of n sets to the scratch array, ascending. Returns their number, or -1. */
static int64_t gather(cot__sets *s, int n, const cot__set *sets) {
    int64_t  depth = 0, found = 0;
    uint32_t low = UINT32_MAX, high = 0;
    /* `round` has wrapped around: marks of four billion rounds ago must not count. */
    if (++s->round == 0) {
        memset(s->seen, 0, (size_t)s->width * sizeof *s->seen);
        s->round = 1;
    }
    for (int k = 0; k < n; k++)
        if (!push(s, &depth, sets[k])) return -1;
    while (depth > 0) {
        const cot__set_entry *e = &s->entries[s->stack[--depth]];
        e = &s->entries[e->as];
        if (e->pair) {
            cot__set a = (cot__set)(e->start >> 32), b = (cot__set)e->start;
            if (!push(s, &depth, a) || !push(s, &depth, b)) return -1;
            continue;
        }
        if (!ENSURE(s, scratch, scratch_capacity, found + (int64_t)e->cost)) return -1;
        for (const uint32_t *c = s->columns + e->start, *end = c + e->cost; c < end; c++) {
            if (s->seen[*c] == s->round) continue;
            s->seen[*c] = s->round;
            s->scratch[found++] = *c;
            low = *c < low ? *c : low;
            high = *c > high ? *c : high;
        }
    }
    if (found > 0 && (int64_t)(high - low) < 8 * found) {
        /* the columns are dense: reading the marks is faster than sorting */
        int64_t k = 0;
        for (uint32_t c = low; k < found; c++)
            if (s->seen[c] == s->round) s->scratch[k++] = c;
    } else
        cot__sort(s->scratch, found);
    return found;
}

const uint32_t *cot__set_columns(cot__sets *s, cot__set a, int64_t *count) {
    const cot__set_entry *e = &s->entries[s->entries[a].as];
    *count = (int64_t)e->cost;
    if (!e->pair) return cot__behind(s->columns, e->start);
    *count = gather(s, 1, &a);
    if (*count >= 0) return s->scratch;
    fail(s);
    *count = 0;
    return NULL;
}

/* ---- unions ---------------------------------------------------------------------------------- */

static cot__set merge(cot__sets *s, cot__set a, cot__set b) {
    const cot__set_entry *x = &s->entries[a], *y = &s->entries[b];
    const uint32_t *p = s->columns + x->start, *q = s->columns + y->start, *p_end = p + x->cost, *q_end = q + y->cost;
    uint32_t       *z = s->scratch;
    while (p < p_end && q < q_end) {
        uint32_t c = *p < *q ? *p : *q;
        p += *p == c;
        q += *q == c;
        *z++ = c;
    }
    while (p < p_end) *z++ = *p++;
    while (q < q_end) *z++ = *q++;
    int64_t n = z - s->scratch;
    return n == (int64_t)x->cost ? a : n == (int64_t)y->cost ? b : list(s, s->scratch, n);
}

static bool has_part(const cot__set_entry *e, cot__set b) {
    return e->pair && ((cot__set)(e->start >> 32) == b || (cot__set)e->start == b);
}

cot__set cot__set_union(cot__sets *s, cot__set a, cot__set b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const cot__set_entry *x = &s->entries[a], *y = &s->entries[b];
    if (!x->pair && !y->pair && x->cost + y->cost <= LISTED) return merge(s, a, b);
    if (has_part(x, b)) return a;
    if (has_part(y, a)) return b;
    uint64_t both = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a, cost = x->cost + y->cost;
    uint32_t hash = mix(both), least = x->least > y->least ? x->least : y->least;
    for (cot__set c = s->buckets[hash & (uint64_t)(s->bucket_count - 1)]; c; c = s->entries[c].next)
        if (s->entries[c].pair && s->entries[c].start == both) return s->entries[c].as;
    cot__set pair =
        add_entry(s, (cot__set_entry){.start = both, .cost = cost, .least = least, .hash = hash, .pair = true});
    if (s->failed || cost <= 4 * (uint64_t)least) return pair;
    int64_t n = gather(s, 2, (cot__set[]){a, b});
    if (n < 0) return fail(s);
    cot__set whole = list(s, s->scratch, n);
    s->entries[pair].as = whole;
    return whole;
}

/* The set as a list. Equal sets have the same list. */
static cot__set written(cot__sets *s, cot__set a) {
    a = s->entries[a].as;
    if (!s->entries[a].pair) return a;
    int64_t n = gather(s, 1, &a);
    if (n < 0) return fail(s);
    cot__set whole = list(s, s->scratch, n);
    return s->entries[a].as = whole;
}

bool cot__set_same(cot__sets *s, cot__set a, cot__set b) {
    return a == b || (a != 0 && b != 0 && written(s, a) == written(s, b) && !s->failed);
}
