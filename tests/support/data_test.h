/* data_test.h: what tests of files share: a folder of the test's own, files made by hand, and an
 * allocator that counts bytes and fails at a call. */
#ifndef COT_TEST_DATA_H
#define COT_TEST_DATA_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cotangent.h>

static char test_folder[64];

static inline int data_setup(void **state) {
    (void)state;
    strcpy(test_folder, "/tmp/cot_data_XXXXXX");
    return mkdtemp(test_folder) ? 0 : -1;
}

static inline int data_teardown(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", test_folder);
    return system(command);
}

/* The path of a file in the folder; one of eight rooms. */
static inline const char *in_folder(const char *name) {
    static char paths[8][160];
    static int  next;
    char       *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%.63s/%.90s", test_folder, name);
    return path;
}

static inline void put_file(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* malloced */
static inline unsigned char *get_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *n = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, file), *n);
    fclose(file);
    return bytes;
}

static inline int count_files(const char *folder) {
    DIR *d = opendir(folder);
    int  n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Fails call number fail_at, from 1; 0: none. `used` is 0 when all was freed. */
typedef struct counted {
    int64_t used, calls, fail_at;
} counted;

static inline void *counted_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    counted *c = user;
    if (new_size && ++c->calls == c->fail_at) return NULL;
    c->used += (int64_t)new_size - (ptr ? (int64_t)old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

#endif
