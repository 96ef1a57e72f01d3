/* digest.h: SHA-256 (FIPS 180-4): names objects by what they are made from, and tells whether one
 * is as it was written. */
#ifndef COT_NATIVE_DIGEST_H
#define COT_NATIVE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { COT__DIGEST = 32, COT__DIGEST_TEXT = 2 * COT__DIGEST + 1 };

typedef struct cot__digest {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t  block[64];
} cot__digest;

void cot__digest_begin(cot__digest *d);
void cot__digest_take(cot__digest *d, const void *data, size_t bytes);
void cot__digest_end(cot__digest *d, uint8_t out[COT__DIGEST]);
/* In lower-case hexadecimal. */
void cot__digest_text(const uint8_t digest[COT__DIGEST], char text[COT__DIGEST_TEXT]);

#endif
