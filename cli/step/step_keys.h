/* step_keys.h: bytes from a terminal become keys. Sequences nobody knows are swallowed whole. */
#ifndef COT_CLI_STEP_KEYS_H
#define COT_CLI_STEP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum { KEYS_ROOM = 256 };

typedef struct step_keys {
    char   bytes[KEYS_ROOM];
    size_t used;
    bool   settled; /* nothing more belongs to what is there */
} step_keys;

/* How many bytes can be added. Never 0 after keys_next has answered -1. */
size_t keys_room(const step_keys *k);
void   keys_add(step_keys *k, const char *bytes, size_t n);
/* The next key: a byte, a KEY_ of step_model.h (KEY_NONE for what means nothing), or -1: more bytes
 * are needed. */
int    keys_next(step_keys *k);
bool   keys_pending(const step_keys *k);
/* No more bytes came in time: what looks like the beginning of a sequence was all of it. */
void   keys_settle(step_keys *k);

#endif
