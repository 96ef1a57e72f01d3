/* step_keys.h: turns bytes from a terminal into keys. Unknown sequences are skipped as a whole. */
#ifndef COT_CLI_STEP_KEYS_H
#define COT_CLI_STEP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum { KEYS_ROOM = 256 };

typedef struct step_keys {
    char   bytes[KEYS_ROOM];
    size_t used;
    bool   settled; /* no more bytes belong to the present ones */
} step_keys;

/* The number of bytes that can be added. Never 0 after keys_next has returned -1. */
size_t keys_room(const step_keys *k);
void   keys_add(step_keys *k, const char *bytes, size_t n);
/* The next key: a byte, or a KEY_ of step_model.h (KEY_NONE for a sequence without meaning). -1:
 * more bytes are needed. */
int    keys_next(step_keys *k);
bool   keys_pending(const step_keys *k);
/* No more bytes came in time, so the beginning of a sequence is taken as a whole one. */
void   keys_settle(step_keys *k);

#endif
