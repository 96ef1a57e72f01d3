/* emit.c: adds steps and names to a program that is being parsed. */
#include "expr/emit.h"

#include <string.h>

cot__expr_step *cot__emit(cot__parser *p, cot__expr_step_kind kind, int change, uint32_t start, uint32_t stop) {
    cot__expr *e = p->e;
    if (e->count == e->room) {
        size_t     room = e->room ? 2 * e->room : 32;
        cot__expr_step *grown = cot__resize(&e->pool.al, e->steps, e->room * sizeof *grown, room * sizeof *grown);
        if (!grown) {
            cot__expr_short_of_memory(p->error);
            return NULL;
        }
        e->steps = grown;
        e->room = room;
    }
    p->height += change;
    /* A comparison in a chain holds one item more than it leaves: its second operand. */
    if (p->height > 0 && (size_t)p->height + 1 > e->height) e->height = (size_t)p->height + 1;
    cot__expr_step *s = &e->steps[e->count++];
    *s = (cot__expr_step){.kind = (uint8_t)kind, .start = start, .stop = stop, .at = start, .at_stop = stop};
    return s;
}

static void reverse(cot__expr_step *a, cot__expr_step *b) {
    for (; b - a > 1; a++) {
        cot__expr_step s = *a;
        *a = *--b;
        *b = s;
    }
}

void cot__exchange(cot__expr *e, size_t a, size_t b, size_t c) {
    reverse(e->steps + a, e->steps + b);
    reverse(e->steps + b, e->steps + c);
    reverse(e->steps + a, e->steps + c);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool grow_table(cot__parser *p) {
    cot__expr     *e = p->e;
    cot_allocator *al = &e->pool.al;
    size_t         room = e->table_room ? 2 * e->table_room : 64;
    uint32_t      *table = cot__alloc(al, room * sizeof *table);
    if (!table) return cot__expr_short_of_memory(p->error);
    memset(table, 0, room * sizeof *table);
    for (size_t i = 0; i < e->name_count; i++) {
        size_t at = e->names[i].hash & (room - 1);
        while (table[at]) at = (at + 1) & (room - 1);
        table[at] = (uint32_t)i + 1;
    }
    cot__free(al, e->table, e->table_room * sizeof *table);
    e->table = table;
    e->table_room = room;
    return true;
}

/* The place of a name in the hash table, or the place where it would be. */
static size_t place_of(const cot__expr *e, const char *text, size_t length, uint32_t *hash) {
    *hash = 2166136261u;
    for (size_t i = 0; i < length; i++) *hash = (*hash ^ (unsigned char)text[i]) * 16777619u;
    size_t at = *hash & (e->table_room - 1);
    for (; e->table[at]; at = (at + 1) & (e->table_room - 1)) {
        const cot__name *n = &e->names[e->table[at] - 1];
        if (n->hash == *hash && n->length == length && memcmp(n->text, text, length) == 0) break;
    }
    return at;
}

int cot__expr_name(const cot__expr *e, const char *text, size_t length) {
    uint32_t hash;
    return e && e->table_room ? (int)e->table[place_of(e, text, length, &hash)] - 1 : -1;
}

int cot__intern(cot__parser *p, uint32_t start, uint32_t stop) {
    cot__expr  *e = p->e;
    const char *text = e->text + start;
    uint32_t    length = stop - start, hash;
    if (2 * (e->name_count + 1) > e->table_room && !grow_table(p)) return -1;
    size_t at = place_of(e, text, length, &hash);
    if (e->table[at]) return (int)(e->table[at] - 1);
    if (e->name_count == e->name_room) {
        size_t     room = e->name_room ? 2 * e->name_room : 16;
        cot__name *grown = cot__resize(&e->pool.al, e->names, e->name_room * sizeof *grown, room * sizeof *grown);
        if (!grown) {
            cot__expr_short_of_memory(p->error);
            return -1;
        }
        e->names = grown;
        e->name_room = room;
    }
    char *copy = cot__store_text(&e->pool, text, length);
    if (!copy) {
        cot__expr_short_of_memory(p->error);
        return -1;
    }
    e->names[e->name_count] = (cot__name){.text = copy, .length = length, .hash = hash};
    e->table[at] = (uint32_t)e->name_count + 1;
    return (int)e->name_count++;
}
