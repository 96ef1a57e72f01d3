/* native.c: native code of a program: whether there can be some, its text, and what it says of
 * itself. */
#define _GNU_SOURCE /* open_memstream */
#include "native/native.h"
#include "native/object.h"
#include "native/text.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

int cot__native_secure = -1;

bool cot__native_wanted(bool wanted) {
    const char *text = getenv("COTANGENT_NATIVE");
    if (text && strcmp(text, "0") == 0) return false;
    return wanted || (text && strcmp(text, "1") == 0);
}

#if COT__HAS_NATIVE
#include "base/cpu.h"

#include <sys/auxv.h>

/* Lines of text: more would keep a compiler busy for minutes. */
enum { MOST_LINES = 40000 };

/* ---- the text -------------------------------------------------------------------------------- */

static void hear(const cot__caller *c, cot_status code, const char *text) {
    cot__native *n = c->to;
    (void)code;
    if (!n->why[0]) cot__format(n->why, sizeof n->why, "%s", text);
}

static bool keep_parts(cot__native *n, const cot__choice *c) {
    size_t parts = c->parts * sizeof *c->part, values = c->values * sizeof *c->value;
    char  *lists = malloc(parts + values + 1);
    if (!lists) return false;
    if (parts) memcpy(lists, c->part, parts);
    if (values) memcpy(lists + parts, c->value, values);
    n->lists = lists;
    n->parts = (cot__run_parts){(const cot__run_part *)(void *)lists, (const uint32_t *)(void *)(lists + parts),
                                c->parts, c->values};
    return true;
}

static bool is_short(cot__native *n, uint32_t lines) {
    if (lines > MOST_LINES)
        cot__format(n->why, sizeof n->why, "the program is too large: about %u lines of C, of %d at most", lines,
                    MOST_LINES);
    return lines <= MOST_LINES;
}

static bool write_text(cot__native *n, const cot__choice *c, const cot__caller *caller) {
    uint32_t lines = 0;
    FILE *file = open_memstream(&n->text, &n->text_bytes);
    if (!file) return cot__refuse(caller, COT_MEMORY, "out of memory: a text");
    cot__text text = cot__text_file(file);
    bool      ok = cot__native_write(c, &text, &lines, caller) && is_short(n, lines);
    if (fclose(file) && ok) ok = cot__refuse(caller, COT_MEMORY, "out of memory: a text");
    return ok;
}

/* Parts and text. False: there is nothing to compile, or no memory. */
static bool prepare(cot__native *n, const cot_allocator *al) {
    cot__caller caller = {"native", n, hear, NULL, NULL};
    cot__choice c;
    if (!cot__choice_open(&c, n->p, al, &caller)) return false;
    bool ok = false;
    if (c.parts == 0) cot__format(n->why, sizeof n->why, "there is nothing in the program that native code would do");
    else ok = write_text(n, &c, &caller) && (keep_parts(n, &c) || cot__refuse(&caller, COT_MEMORY, "out of memory"));
    cot__choice_close(&c);
    return ok;
}

static void find_key(cot__native *n) {
    uint8_t     digest[COT__DIGEST];
    cot__digest d;
    cot__digest_begin(&d);
    cot__compiler_digest(&n->compiler, &d);
    cot__digest_take(&d, n->text, n->text_bytes);
    cot__digest_end(&d, digest);
    cot__digest_text(digest, n->key);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* A program that runs with the rights of another user trusts neither environment nor home. */
static bool is_secure(void) { return cot__native_secure >= 0 ? cot__native_secure > 0 : getauxval(AT_SECURE) != 0; }

static bool is_possible(cot__native *n) {
    if (is_secure())
        cot__format(n->why, sizeof n->why, "the process has rights that its user has not (AT_SECURE), so it trusts no "
                                           "compiler");
    else if (n->p->bound)
        cot__format(n->why, sizeof n->why, "the program calls functions of its user's, which a comparison would call "
                                           "twice");
    else if (!cot__loads_objects)
        cot__format(n->why, sizeof n->why, "the static library loads no objects; link the shared one");
    else if (COT__ISAS > 1 && cot__cpu_isa() == COT__ISA_PLAIN)
        cot__format(n->why, sizeof n->why, "the processor has no fused multiply-add, or COTANGENT_ISA forbids it");
    return !n->why[0];
}

/* The object of an earlier process, or a compiler is started. What was found and cannot be used is
 * made again: rename puts the new one in its place. */
static bool obtain(cot__native *n) {
    char unusable[COT__NATIVE_TEXT];
    if (!cot__folder_open(&n->folder, n->why)) return false;
    bool found = cot__native_find(n, unusable);
    cot__folder_close(&n->folder);
    if (found) return atomic_store(&n->state, COT__NATIVE_LOADED), true;
    return cot__native_queue(n, n->why);
}

cot__native *cot__native_open(const cot__program *p, const cot_allocator *al) {
    cot__native *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    n->p = p;
    n->folder.fd = -1;
    atomic_init(&n->refs, 1);
    atomic_init(&n->state, COT__NATIVE_DROPPED);
    atomic_flag_clear(&n->told);
    if (!is_possible(n) || !cot__folder_find(&n->folder, n->why) || !cot__compiler_find(&n->compiler, n->why)) return n;
    if (!prepare(n, al)) return n;
    find_key(n);
    if (!obtain(n)) atomic_store(&n->state, COT__NATIVE_DROPPED);
    return n;
}

void cot__native_release(cot__native *n) {
    if (atomic_fetch_sub(&n->refs, 1) > 1) return;
    cot__object_unload(&n->loaded);
    cot__compiler_close(&n->compiler);
    free(n->text);
    free(n->lists);
    free(n);
}

void cot__native_close(cot__native *n) {
    if (n) cot__native_release(n);
}

/* ---- what it says ---------------------------------------------------------------------------- */

cot__native_state cot__native_look(cot__native *n, bool wait) {
    if (!n) return COT__NATIVE_OFF;
    if (wait) cot__native_wait(n);
    return (cot__native_state)atomic_load(&n->state);
}

/* Why nobody has tried. */
static const char *why_off(void) {
    const char *text = getenv("COTANGENT_NATIVE");
    if (!text || !text[0] || strcmp(text, "1") == 0) return "native code was not asked for";
    return strcmp(text, "0") == 0 ? "COTANGENT_NATIVE=0 forbids native code"
                                  : "native code was not asked for: COTANGENT_NATIVE is neither 0 nor 1";
}

const char *cot__native_message(const cot__native *n) {
    if (!n) return why_off();
    switch (atomic_load(&n->state)) {
    case COT__NATIVE_COMPILING: return "a compiler is at work; until then the executor runs";
    case COT__NATIVE_LOADED: return "native code is loaded; its first run will be compared with the executor's";
    case COT__NATIVE_READY: return "native code runs; its first results had the executor's bits";
    default: return n->differs[0] ? n->differs : n->why;
    }
}

const cot__run_parts *cot__native_parts(const cot__native *n) { return n && n->parts.parts ? &n->parts : NULL; }
#else
cot__native *cot__native_open(const cot__program *p, const cot_allocator *al) { return (void)p, (void)al, NULL; }
void         cot__native_close(cot__native *n) { (void)n; }
cot__native_state     cot__native_look(cot__native *n, bool wait) { return (void)n, (void)wait, COT__NATIVE_OFF; }
const char *cot__native_message(const cot__native *n) { return (void)n, "there is no native code on this system"; }
const cot__run_parts *cot__native_parts(const cot__native *n) { return (void)n, NULL; }
#endif
