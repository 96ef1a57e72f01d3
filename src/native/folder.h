/* folder.h: the folder in which objects are kept, so that a program is compiled once and not in
 * every process.
 *
 *   COTANGENT_CACHE, or XDG_CACHE_HOME/cotangent, or HOME/.cache/cotangent
 *
 * What is loaded from it is run, so it must be the user's own: the folder and every object belong
 * to the effective user, nobody else may write to them, and neither is a symbolic link. An object
 * is called KEY.so, the key being the digest of all that it was made from, and ends with a digest
 * of itself. It is written beside its place and renamed, so it is there as a whole or not at all.
 * When all objects together have more bytes than COTANGENT_CACHE_BYTES (256 MiB), those go that
 * were not used for the longest time. */
#ifndef COT_NATIVE_FOLDER_H
#define COT_NATIVE_FOLDER_H

#include "native/digest.h"

#include <stdbool.h>

enum { COT__PATH = 4096, COT__NATIVE_TEXT = 512, COT__FILE_NAME = 80 };

typedef struct cot__folder {
    int     fd; /* -1: it is not open */
    int64_t most_bytes;
    char    path[COT__PATH];
} cot__folder;

/* Reads the environment. False: there is no such folder, `why` says so. */
bool cot__folder_find(cot__folder *f, char why[COT__NATIVE_TEXT]);
/* Makes it if need be and opens it. False: it cannot be used, and `why` says why. */
bool cot__folder_open(cot__folder *f, char why[COT__NATIVE_TEXT]);
void cot__folder_close(cot__folder *f);

/* The object of a key, open for reading and found to be whole. -1: there is none (then `why` is
 * empty), or it cannot be used. */
int cot__folder_object(const cot__folder *f, const char key[COT__DIGEST_TEXT], char why[COT__NATIVE_TEXT]);

/* A name for an unfinished file that nobody else has. */
void cot__folder_unfinished(char name[COT__FILE_NAME], const char *ending);
/* The unfinished object gets its digest and its name, then old objects go. False, and `why`. */
bool cot__folder_add(const cot__folder *f, const char *unfinished, const char key[COT__DIGEST_TEXT],
                     char why[COT__NATIVE_TEXT]);

#endif
