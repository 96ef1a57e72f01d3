/* pack_text: packs the text of exported functions for the library, of which it would be a
 * sixteenth (155 kB, with a pointer for each line; packed it is 39 kB): pack_text IN OUT. OUT is a
 * C file with the packed bytes; src/program/emit/text/exported.c unpacks them and says in which form
 * they are.
 *
 * Run by the build. The least number of bytes is found from the end of the text to its start: of
 * each place the longest earlier repetition is known, and any part of it may be used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4, MOST = 131, LITERALS = 128, FAR = 65535, HASHES = 1 << 16 };

typedef struct place {
    int length, back; /* the longest repetition that starts here, and how far back it was */
    int cost;         /* bytes from here to the end */
    int take;         /* how many letters are repeated here; below 0, how many are not */
} place;

static char *read_all(const char *path, int *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) return NULL;
    long  n    = ftell(f);
    char *text = n < 0 || n > 1 << 24 ? NULL : malloc((size_t)n + 1);
    rewind(f);
    if (text && fread(text, 1, (size_t)n, f) != (size_t)n) free(text), text = NULL;
    fclose(f);
    *size = (int)n;
    return text;
}

static unsigned hash_of(const char *s) {
    unsigned x;
    memcpy(&x, s, sizeof x);
    return x * 2654435761u >> 16;
}

/* The longest repetition at i among the places before it with the same four letters, the nearest
 * one first. */
static void find_longest(const char *text, int size, int i, int candidate, const int *before, place *p) {
    for (; candidate >= 0 && i - candidate <= FAR; candidate = before[candidate]) {
        int n = 0;
        while (n < MOST && i + n < size && text[candidate + n] == text[i + n]) n++;
        if (n > p->length) p->length = n, p->back = i - candidate;
        if (n == MOST) return;
    }
}

static void find_repetitions(const char *text, int size, int *head, int *before, place *p) {
    for (int k = 0; k < HASHES; k++) head[k] = -1;
    for (int i = 0; i + LEAST <= size; i++) {
        unsigned h = hash_of(text + i);
        find_longest(text, size, i, head[h], before, &p[i]);
        before[i] = head[h];
        head[h]   = i;
    }
}

static void choose(place *p, int size) {
    p[size].cost = 0;
    for (int i = size - 1; i >= 0; i--) {
        p[i].cost = 1 << 30;
        for (int n = 1; n <= LITERALS && i + n <= size; n++)
            if (1 + n + p[i + n].cost < p[i].cost) p[i].cost = 1 + n + p[i + n].cost, p[i].take = -n;
        for (int n = LEAST; n <= p[i].length; n++)
            if (3 + p[i + n].cost < p[i].cost) p[i].cost = 3 + p[i + n].cost, p[i].take = n;
    }
}

static void put(FILE *f, unsigned byte, int *column) {
    *column += fprintf(f, "%u,", byte & 255);
    if (*column > 110) fputc('\n', f), *column = 0;
}

static void write_packed(FILE *f, const char *text, const place *p, int size) {
    int column = 0;
    for (int i = 0; i < size;) {
        int take = p[i].take;
        if (take < 0) {
            put(f, (unsigned)(-take - 1), &column);
            for (int k = 0; k < -take; k++) put(f, (unsigned char)text[i + k], &column);
        } else {
            put(f, (unsigned)(take - LEAST + LITERALS), &column);
            put(f, (unsigned)p[i].back, &column);
            put(f, (unsigned)p[i].back >> 8, &column);
        }
        i += take < 0 ? -take : take;
    }
}

int main(int argc, char **argv) {
    int   size = 0, lines = 0;
    char *text = argc == 3 ? read_all(argv[1], &size) : NULL;
    if (!text) return fprintf(stderr, "pack_text: cannot read the text\n"), 1;
    for (int i = 0; i < size; i++)
        if (text[i] == '\n') text[i] = 0, lines++;
    place *p      = calloc((size_t)size + 1, sizeof *p);
    int   *before = malloc(((size_t)size + 1) * sizeof *before), *head = malloc(HASHES * sizeof *head);
    FILE  *f      = fopen(argv[2], "w");
    if (!p || !before || !head || !f) return fprintf(stderr, "pack_text: cannot write '%s'\n", argv[2]), 1;
    find_repetitions(text, size, head, before, p);
    choose(p, size);
    fprintf(f,
            "/* Made by tools/pack_text.c from src/program/emit/text/exported.inc. */\n#include "
            "\"program/emit/text/exported.h\"\n\nconst int cot__packed_lines = %d, cot__packed_letters = %d,\n"
            "    cot__packed_bytes = %d;\nconst unsigned char cot__packed_text[] = {\n",
            lines, size, p[0].cost);
    write_packed(f, text, p, size);
    fprintf(f, "};\n");
    free(text), free(p), free(before), free(head);
    return fclose(f) == 0 ? 0 : 1;
}
