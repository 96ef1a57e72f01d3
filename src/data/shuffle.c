/* shuffle.c: an order of rows from a key: Fisher and Yates, from the last row down, each exchanged
 * with one before it or itself. Number i of the sequence of the key, 64 bits, chooses for row i;
 * that some are likelier than others, by n / 2^64, nobody will see. */
#include "data/data.h"

#include "base/random.h"

void cot_row_order(cot_key key, int64_t n, int64_t *order) {
    enum { BLOCK = 64 };
    uint32_t high[BLOCK], low[BLOCK];
    for (int64_t i = 0; order && i < n; i++) order[i] = i;
    if (!order || n < 2) return;
    for (int64_t first = (n - 1) / BLOCK * BLOCK; first >= 0; first -= BLOCK) {
        int64_t last = first + BLOCK < n ? first + BLOCK : n;
        cot__random_words(key, (uint64_t)first, (int)(last - first), high, low);
        for (int64_t i = last - 1; i >= first; i--) {
            int64_t k    = i - first;
            int64_t j    = (int64_t)(((uint64_t)high[k] << 32 | low[k]) % (uint64_t)(i + 1));
            int64_t kept = order[i];
            order[i]     = order[j];
            order[j]     = kept;
        }
    }
}
