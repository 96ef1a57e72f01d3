/* events.c: writes event files. A record is: the length of its data (8 bytes), a checksum of that
 * (4), the data, a checksum of those (4); all with the least byte first. The data are an Event:
 *
 *     1: double date   2: int step   3: string "brain.Event:2", in the first one
 *     5: Summary, a list (1) of values, each 1: string name, 2: float
 *     7: a session's log, 1: 1 for its start
 *
 * where each field is preceded by 8 times its number plus its kind on the wire (0: a number in
 * groups of seven bits, 1: 8 bytes, 2: a length and so many bytes, 5: 4 bytes). */
#include "watch/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME = 200, ROW = 64 };
enum { NUMBER = 0, EIGHT = 1, BYTES = 2, FOUR = 5 };

typedef struct buffer {
    uint8_t bytes[(NAME + 16) * ROW + 128];
    size_t  n;
} buffer;

uint32_t events_crc(const void *bytes, size_t n) {
    const uint8_t *at  = bytes;
    uint32_t       crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

/* The checksum of bytes that hold checksums themselves is turned and moved. */
static uint32_t masked(const void *bytes, size_t n) {
    uint32_t crc = events_crc(bytes, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_least_first(buffer *b, uint64_t v, int n) {
    for (int k = 0; k < n; k++) b->bytes[b->n++] = (uint8_t)(v >> 8 * k);
}

static void put_number(buffer *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) b->bytes[b->n++] = (uint8_t)(v | 0x80);
    b->bytes[b->n++] = (uint8_t)v;
}

static void put_field(buffer *b, int field, int kind) { put_number(b, (uint64_t)(8 * field + kind)); }

static size_t number_size(uint64_t v) {
    size_t n = 1;
    while (v >= 0x80) v >>= 7, n++;
    return n;
}

static void put_bytes(buffer *b, int field, const char *text, size_t n) {
    put_field(b, field, BYTES);
    put_number(b, n);
    memcpy(b->bytes + b->n, text, n);
    b->n += n;
}

/* Date and step, with which every event begins; there is no field for a step 0. */
static void begin(buffer *b, double date, int64_t step) {
    uint64_t bits;
    memcpy(&bits, &date, 8);
    b->n = 0;
    put_field(b, 1, EIGHT);
    put_least_first(b, bits, 8);
    if (step) put_field(b, 2, NUMBER), put_number(b, (uint64_t)step);
}

static bool put_record(append_file *a, const buffer *data) {
    buffer record;
    record.n = 0;
    put_least_first(&record, data->n, 8);
    put_least_first(&record, masked(record.bytes, 8), 4);
    memcpy(record.bytes + record.n, data->bytes, data->n);
    record.n += data->n;
    put_least_first(&record, masked(data->bytes, data->n), 4);
    return append_record(a, record.bytes, record.n);
}

/* Makes a folder and those that it is in. Whether it is there then, the next open says. */
static void make_folders(char *path) {
    for (char *at = path; (at = strchr(at + 1, '/'));) {
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
}

bool events_open(append_file *a, const char *folder, int64_t resumed, double date, failure *f) {
    size_t n    = strlen(folder) + 80;
    char  *path = malloc(n);
    buffer b;
    if (!path) return failure_memory(f);
    /* names sort by date, then by step: readers go through files in that order */
    snprintf(path, n, "%s/events.out.tfevents.%010lld.cotangent.%012lld", folder, (long long)date, (long long)resumed);
    make_folders(path);
    bool fine = append_open(a, path, 0, f);
    free(path);
    if (!fine) return false;
    begin(&b, date, 0);
    put_bytes(&b, 3, "brain.Event:2", 13);
    fine = put_record(a, &b);
    if (fine && resumed > 0) {
        begin(&b, date, resumed + 1);
        put_bytes(&b, 7, "\x08\x01", 2);
        fine = put_record(a, &b);
    }
    return fine || failure_file(f, "write", folder, a->error);
}

bool events_row(append_file *a, double date, int64_t step, int n, const watch_number *numbers) {
    buffer b;
    size_t size = 0;
    if (!a->path) return true;
    if (n > ROW) n = ROW;
    begin(&b, date, step);
    for (int pass = 0; pass < 2; pass++) { /* first the lengths, which stand before the values */
        if (pass) put_field(&b, 5, BYTES), put_number(&b, size);
        for (int k = 0; k < n; k++) {
            float    value = (float)numbers[k].value;
            size_t   name = strnlen(numbers[k].name, NAME), inner = 1 + number_size(name) + name + 5;
            uint32_t bits;
            memcpy(&bits, &value, 4);
            size += 1 + number_size(inner) + inner;
            if (!pass) continue;
            put_field(&b, 1, BYTES), put_number(&b, inner);
            put_bytes(&b, 1, numbers[k].name, name);
            put_field(&b, 2, FOUR), put_least_first(&b, bits, 4);
        }
    }
    return put_record(a, &b);
}
