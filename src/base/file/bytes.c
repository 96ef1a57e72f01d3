/* bytes.c: bytes on their way out, gathered so that few calls write them. */
#include "base/file/bytes.h"

#include <stdio.h>
#include <string.h>

static void hand_on(cot__sink *s, const void *bytes, size_t n) {
    if (n && !s->failed) s->failed = !s->write(s->to, bytes, n);
}

static void flush(cot__sink *s) {
    hand_on(s, s->room, s->waiting);
    s->waiting = 0;
}

void cot__sink_put(cot__sink *s, const void *bytes, size_t n) {
    s->count += n;
    if (!s->write || !n) return;
    s->sum = cot__checksum(s->sum, bytes, n);
    if (n > sizeof s->room - s->waiting) flush(s);
    if (n > sizeof s->room) {
        hand_on(s, bytes, n);
        return;
    }
    memcpy(s->room + s->waiting, bytes, n);
    s->waiting += (uint32_t)n;
}

void cot__sink_number(cot__sink *s, uint64_t v, int bytes) {
    unsigned char b[8];
    cot__to_bytes(b, v, bytes);
    cot__sink_put(s, b, (size_t)bytes);
}

bool cot__sink_end(cot__sink *s) {
    if (s->write) flush(s);
    return !s->failed;
}

bool cot__write_to_file(void *file, const void *bytes, size_t n) { return fwrite(bytes, 1, n, file) == n; }
