/* replay: runs a fuzz target without libFuzzer. Every file of a folder as it is, then a number of
 * mutations of each that depends on nothing but the files: the same run everywhere.
 *
 *     replay FOLDER MUTATIONS */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FILES = 512, MOST_BYTES = 4096 };

typedef struct text {
    char    name[64];
    uint8_t data[MOST_BYTES];
    size_t  size;
} text;

static text files[MOST_FILES];
static int  count;

static int by_name(const void *a, const void *b) { return strcmp(((const text *)a)->name, ((const text *)b)->name); }

static int read_files(const char *folder) {
    DIR *d = opendir(folder);
    if (!d) return 0;
    for (struct dirent *entry; (entry = readdir(d)) && count < MOST_FILES;) {
        char  path[4096];
        text *t = &files[count];
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof t->name) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *f = fopen(path, "rb");
        if (!f) continue;
        strcpy(t->name, entry->d_name);
        t->size = fread(t->data, 1, sizeof t->data, f);
        fclose(f);
        count++;
    }
    closedir(d);
    qsort(files, (size_t)count, sizeof *files, by_name); /* the order of a folder is anyone's */
    return count;
}

/* ---- mutations ------------------------------------------------------------------------------- */

static uint64_t state = 1;
static size_t   below(size_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n ? (size_t)(state >> 33) % n : 0;
}

static const char *const words[] = {
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    ";",
    "\n",
    "=",
    "==",
    "<",
    "<=",
    "**",
    "//",
    "%",
    "@",
    "-",
    "+",
    "*",
    "/",
    ".",
    "...",
    "'",
    "#",
    "\\\n",
    "if",
    "else",
    " and ",
    " or ",
    "not ",
    "None",
    "True",
    "x",
    "v",
    "A",
    "i",
    "0",
    "1",
    "-1",
    "1e308",
    "9223372036854775807",
    "0.5",
    "nan",
    "sum(",
    "axis=",
    "keepdims=",
    "reshape(",
    "zeros(",
    "where(",
    "einsum('ij,jk->ik', ",
    "[1, 2]",
    "[[1, 2], [3, 4]]",
    "f32",
    ".T",
    ".shape",
    "a, b = ",
    "x += ",
    "\xc3\xa4",
    "\xff",
    "^",
};

static size_t insert(uint8_t *data, size_t size, size_t at, const void *what, size_t n) {
    if (size + n > MOST_BYTES) return size;
    memmove(data + at + n, data + at, size - at);
    memcpy(data + at, what, n);
    return size + n;
}

static size_t mutate(uint8_t *data, size_t size) {
    size_t at = below(size + 1), n = below(size - at + 1);
    if (n > 12) n = below(12);
    switch (below(7)) {
    case 6: { /* a number written over others, of bits that are all alike or a power of two */
        uint64_t number = below(2) ? UINT64_C(1) << below(64) : below(2) ? UINT64_MAX : below(16);
        for (size_t k = 0, width = (size_t)1 << below(4); k < width && at + k < size; k++)
            data[at + k] = (uint8_t)(number >> 8 * k);
        return size;
    }
    case 0: /* a byte changed */
        if (size) data[below(size)] = (uint8_t)below(256);
        return size;
    case 1: /* a piece removed */
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 2: { /* a piece of the same text */
        uint8_t piece[16];
        memcpy(piece, data + at, n);
        return insert(data, size, below(size + 1), piece, n);
    }
    case 3: { /* the end of another text */
        const text *other = &files[below((size_t)count)];
        size_t      from = below(other->size + 1);
        return insert(data, at, at, other->data + from, other->size - from);
    }
    default: { /* a word */
        const char *word = words[below(sizeof words / sizeof *words)];
        return insert(data, size, at, word, strlen(word));
    }
    }
}

int main(int argc, char **argv) {
    static uint8_t data[MOST_BYTES];
    int            mutations = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 2 || !read_files(argv[1])) {
        fprintf(stderr, "replay FOLDER [MUTATIONS]: no files\n");
        return 2;
    }
    for (int i = 0; i < count; i++) LLVMFuzzerTestOneInput(files[i].data, files[i].size);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < mutations; k++) {
            size_t size = files[i].size, rounds = 1 + below(4);
            memcpy(data, files[i].data, size);
            while (rounds-- > 0) size = mutate(data, size);
            /* Exactly so many bytes, so that a sanitizer sees a read beyond them. */
            uint8_t *exact = malloc(size ? size : 1);
            if (!exact) return 3;
            memcpy(exact, data, size);
            if (getenv("REPLAY_SHOW")) {
                fwrite(exact, 1, size, stderr);
                fputs("\n----\n", stderr);
            }
            LLVMFuzzerTestOneInput(exact, size);
            free(exact);
        }
    printf("%d files, %d mutations each\n", count, mutations);
    return 0;
}
