/* zlib.c: zlib, loaded when it is first needed.
 *
 * The shared library has this file, and so has the command; in the static library, and everywhere
 * with COT_LAPACK_AT_RUN_TIME=OFF, zlib_none.c replaces it (see backend/cpu/linalg/lapack.c for
 * why). The layout of z_stream below is zlib's binary interface, which has stayed since 1.0;
 * zlib itself refuses a caller whose size of it differs. */
#include "data/file/zlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef struct stream {
    const unsigned char *next_in;
    unsigned             avail_in;
    unsigned long        total_in;
    unsigned char       *next_out;
    unsigned             avail_out;
    unsigned long        total_out;
    const char          *msg;
    void                *state, *zalloc, *zfree, *opaque;
    int                  data_type;
    unsigned long        adler, reserved;
} stream;

enum { Z_FINISH = 4, Z_OK = 0, Z_STREAM_END = 1, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5, Z_DEFLATED = 8 };
enum { MOST = 1 << 30 }; /* bytes at once: the counts have 32 bits */

static struct zlib {
    pthread_once_t once;
    bool           there;
    int (*inflate_init)(stream *z, int bits, const char *version, int size);
    int (*inflate)(stream *z, int flush);
    int (*inflate_reset)(stream *z);
    int (*inflate_end)(stream *z);
    int (*deflate_init)(stream *z, int level, int method, int bits, int memory, int strategy, const char *version,
                        int size);
    int (*deflate)(stream *z, int flush);
    int (*deflate_end)(stream *z);
} zlib = {.once = PTHREAD_ONCE_INIT};

/* ISO C has no cast from an object pointer to a function; POSIX promises that the bits are the
 * same. */
static bool find(void *handle, const char *name, void *function) {
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* It stays loaded: other threads may be inside. */
static void look(void) {
    void *h    = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    zlib.there = h && find(h, "inflateInit2_", &zlib.inflate_init) && find(h, "inflate", &zlib.inflate) &&
                 find(h, "inflateReset", &zlib.inflate_reset) && find(h, "inflateEnd", &zlib.inflate_end) &&
                 find(h, "deflateInit2_", &zlib.deflate_init) && find(h, "deflate", &zlib.deflate) &&
                 find(h, "deflateEnd", &zlib.deflate_end);
}

bool cot__has_zlib(void) {
    pthread_once(&zlib.once, look);
    return zlib.there;
}

static unsigned part(size_t n) { return n < MOST ? (unsigned)n : MOST; }

/* One call of inflate or deflate, on as much as it takes at once. */
static int turn(int (*go)(stream *, int), stream *z, const unsigned char *from_end, unsigned char *to_end) {
    z->avail_in  = part((size_t)(from_end - z->next_in));
    z->avail_out = part((size_t)(to_end - z->next_out));
    return go(z, z->next_in + z->avail_in == from_end ? Z_FINISH : 0);
}

cot__inflated cot__inflate(const void *from, size_t n, bool gzip, void *to, size_t room, size_t *made) {
    const unsigned char *end = (const unsigned char *)from + n;
    unsigned char       *out = to, *out_end = out + room;
    stream               z = {.next_in = from, .next_out = to};
    *made                  = 0;
    if (!cot__has_zlib()) return COT__INFLATE_MISSING;
    if (zlib.inflate_init(&z, gzip ? 15 + 16 : -15, "1.2.0", (int)sizeof z) != Z_OK) return COT__INFLATE_MEMORY;
    cot__inflated how = COT__INFLATE_DAMAGED;
    for (bool on = true; on;) {
        const unsigned char *in_before = z.next_in, *out_before = z.next_out;
        int                  code = turn(zlib.inflate, &z, end, out_end);
        if (code == Z_STREAM_END) {
            on = gzip && z.next_in < end && *z.next_in == 0x1f && zlib.inflate_reset(&z) == Z_OK;
            if (!on) how = COT__INFLATE_FINE;
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            how = code == Z_MEM_ERROR ? COT__INFLATE_MEMORY : COT__INFLATE_DAMAGED;
            on  = false;
        } else if (z.next_out == out_end) {
            how = COT__INFLATE_FULL;
            on  = false;
        } else {
            on = z.next_in != in_before || z.next_out != out_before;
        }
    }
    zlib.inflate_end(&z);
    *made = (size_t)(z.next_out - out);
    return how;
}

size_t cot__deflate(const void *from, size_t n, void *to, size_t room) {
    unsigned char *out = to;
    stream         z   = {.next_in = from, .next_out = to};
    if (!cot__has_zlib() || zlib.deflate_init(&z, 6, Z_DEFLATED, -15, 8, 0, "1.2.0", (int)sizeof z) != Z_OK) return 0;
    int code = Z_OK;
    while (code == Z_OK && z.next_out < out + room)
        code = turn(zlib.deflate, &z, (const unsigned char *)from + n, out + room);
    zlib.deflate_end(&z);
    return code == Z_STREAM_END ? (size_t)(z.next_out - out) : 0;
}
