/* step_keys.c: reads escape sequences as terminals send them: ESC [ numbers letter, ESC O letter,
 * ESC letter. */
#include "step/step_keys.h"

#include <stdlib.h>
#include <string.h>

#include "step/step_model.h"

enum { ESCAPE = 27, LONGEST = 32 };

size_t keys_room(const step_keys *k) { return KEYS_ROOM - k->used; }
bool   keys_pending(const step_keys *k) { return k->used > 0; }
void   keys_settle(step_keys *k) { k->settled = true; }

void keys_add(step_keys *k, const char *bytes, size_t n) {
    memcpy(k->bytes + k->used, bytes, n);
    k->used += n;
    k->settled = false;
}

static int take(step_keys *k, size_t n, int key) {
    k->used -= n;
    memmove(k->bytes, k->bytes + n, k->used);
    if (k->used == 0) k->settled = false;
    return key;
}

static int by_letter(char letter) {
    static const char letters[] = "ABCDHF";
    static const int  keys[] = {KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT, KEY_HOME, KEY_END};
    const char       *at = strchr(letters, letter);
    return at && letter ? keys[at - letters] : KEY_NONE;
}

static int by_number(int number) {
    switch (number) {
    case 1:
    case 7: return KEY_HOME;
    case 4:
    case 8: return KEY_END;
    case 5: return KEY_PAGE_UP;
    case 6: return KEY_PAGE_DOWN;
    default: return KEY_NONE;
    }
}

/* ESC [ …: parameters are 0x20 to 0x3f, the letter at the end is 0x40 to 0x7e. A sequence that
 * breaks off is dropped. */
static int bracketed(step_keys *k) {
    for (size_t i = 2; i < k->used; i++) {
        unsigned char c = (unsigned char)k->bytes[i];
        if (c >= 0x20 && c < 0x40 && i < LONGEST) continue;
        if (c < 0x20 || c > 0x7e) return take(k, i, KEY_NONE);
        return take(k, i + 1, c == '~' ? by_number(atoi(k->bytes + 2)) : by_letter((char)c));
    }
    return k->settled ? take(k, k->used, KEY_NONE) : -1;
}

int keys_next(step_keys *k) {
    if (k->used == 0) return -1;
    if (k->bytes[0] != ESCAPE) return take(k, 1, (unsigned char)k->bytes[0]);
    if (k->used == 1) return k->settled ? take(k, 1, KEY_ESCAPE) : -1;
    if (k->bytes[1] == '[') return bracketed(k);
    if (k->bytes[1] == 'O')
        return k->used > 2 ? take(k, 3, by_letter(k->bytes[2])) : k->settled ? take(k, 2, KEY_NONE) : -1;
    if (k->bytes[1] == ESCAPE) return take(k, 1, KEY_ESCAPE);
    return take(k, 2, KEY_NONE); /* Alt with a key */
}
