/* native_folder.h: a cache folder of the test's own, and compilers made of a few lines of shell. */
#ifndef NATIVE_FOLDER_H
#define NATIVE_FOLDER_H

#include "support/tape_test.h"

#include "native/native.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[300], scratch[256];

/* ---- folders --------------------------------------------------------------------------------- */

static inline void empty_folder(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

/* The name of an object in the cache; "" if there is none. Returns how many there are. */
static inline int find_object(char path[1100]) {
    DIR *d = opendir(folder);
    int  n = 0;
    path[0] = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, 1100, "%s/%s", folder, e->d_name);
        n++;
    }
    if (d) closedir(d);
    return n;
}

static inline int clean(void **state) {
    (void)state;
    empty_folder(folder);
    if (rmdir(folder)) unlink(folder);
    empty_folder(scratch);
    return rmdir(scratch);
}

/* ---- compilers ------------------------------------------------------------------------------- */

/* A shell script in place of the compiler. */
static inline void use_compiler(const char *script) {
    char  path[600];
    FILE *f;
    snprintf(path, sizeof path, "%s/compiler", scratch);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    setenv("COTANGENT_CC", path, 1);
}

/* Compiles, but not for long. */
#define COMPILER "exec cc \"$@\" -O1"
#define SLOW_COMPILER "sleep 0.2\n" COMPILER

static inline int fresh(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/cot_native_XXXXXX");
    if (!mkdtemp(scratch)) return -1;
    snprintf(folder, sizeof folder, "%s/cache", scratch);
    setenv("COTANGENT_CACHE", folder, 1);
    unsetenv("COTANGENT_NATIVE");
    unsetenv("COTANGENT_CACHE_BYTES");
    setenv("COTANGENT_NATIVE_SECONDS", "600", 1); /* the machine may be busy */
    cot__native_secure = -1;
    use_compiler(COMPILER);
    return 0;
}

#endif
