/* load.h: what the two halves of loading share: load.c finds the parts of a file, load_part.c
 * builds the program of one. */
#ifndef COT_PROGRAM_LOAD_H
#define COT_PROGRAM_LOAD_H

#include "program/file/file.h"

/* A file that is being loaded. */
typedef struct cot__loader {
    const cot__caller *caller;
    cot_allocator      al;
    cot__program     **part; /* built so far; operations may have them as bodies */
    uint32_t           parts, room;
} cot__loader;

/* Bytes that are read one number after the other. Behind their end there are zeros. */
typedef struct cot__reader {
    const unsigned char *at, *end;
    bool                 ended; /* more was asked for than there is */
} cot__reader;

/* Builds the program of a part, which has just these bytes. NULL after telling the caller. */
cot__program *cot__load_part(const cot__loader *l, cot__reader r);

/* Tells the caller that the file is not legal, and returns false. */
#define cot__file_illegal(caller, format, ...)                                                                         \
    cot__refuse(caller, COT_VALUE, "this program file is not legal: " format, __VA_ARGS__)

/* n elements of so many bytes; NULL if they are not all there. */
static inline const unsigned char *cot__take(cot__reader *r, uint64_t n, uint64_t size) {
    const unsigned char *at = r->at;
    if (r->ended || n > (uint64_t)(r->end - at) / size) {
        r->ended = true;
        return NULL;
    }
    r->at += n * size;
    return at;
}
static inline uint64_t cot__take_number(cot__reader *r, int bytes) {
    const unsigned char *at = cot__take(r, 1, (uint64_t)bytes);
    return at ? cot__from_bytes(at, bytes) : 0;
}
/* A text that ends with a zero; NULL if it does not. */
const char *cot__take_text(cot__reader *r);
/* The elements of a value of this type, NULL if they are not all there; and as the machine has
 * them. */
const unsigned char *cot__take_elements(cot__reader *r, const cot__type *z);
void                 cot__elements_of_file(const cot__type *z, const unsigned char *from, void *to);

#endif
