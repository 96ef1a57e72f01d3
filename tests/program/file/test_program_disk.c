/* Programs on a disk: a file is replaced as a whole or stays as it was, and what cannot be written
 * or read is told with its path. */
#include "program/file/file_test.h"

#include "base/file/replace.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own, in which the test stands. */
static char folder[] = "/tmp/cotangent-files-XXXXXX";
static int  enter_folder(void **state) { return (void)state, !mkdtemp(folder) || chdir(folder) != 0; }
static int  leave_folder(void **state) { return (void)state, chdir("/") != 0 || rmdir(folder) != 0; }

static int files_here(void) {
    int  n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static bool save_at(const char *path, build_program *build, heard *h) {
    cot__program *p = build_one(build);
    cot__caller   caller = listen(h, "save");
    bool          fine = cot__program_save_to_file(p, path, &caller);
    assert_int_equal(h->errors, fine ? 0 : 1);
    cot__program_release(p);
    return fine;
}

/* How many operations the program at `path` has; -1: it cannot be loaded. */
static int load_at(const char *path, heard *h) {
    cot__caller   caller = listen(h, "load");
    cot__program *p = cot__program_load_from_file(path, NULL, &caller);
    int           n = p ? (int)p->operations : -1;
    assert_int_equal(h->errors, p ? 0 : 1);
    cot__program_release(p);
    return n;
}

static void save_fails(const char *path, const char *sentence) {
    heard h;
    assert_false(save_at(path, build_products, &h));
    assert_string_equal(h.text, sentence);
}
static void load_fails(const char *path, const char *sentence) {
    heard h;
    assert_int_equal(load_at(path, &h), -1);
    assert_string_equal(h.text, sentence);
}

static void a_file_is_replaced_and_keeps_its_permissions(void **state) {
    heard       h;
    struct stat about;
    (void)state;
    assert_true(save_at("p.cot", build_twice, &h));
    assert_int_equal(load_at("p.cot", &h), 1);
    assert_int_equal(chmod("p.cot", 0640), 0);
    assert_int_equal(symlink("p.cot", "link"), 0);
    assert_true(save_at("link", build_products, &h));
    assert_int_equal(load_at("p.cot", &h), 6);
    assert_int_equal(lstat("link", &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(stat("p.cot", &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    assert_int_equal(files_here(), 2); /* nothing is left beside it */
    unlink("p.cot"), unlink("link");
}

static void what_cannot_be_written_stays_as_it_was(void **state) {
    heard h;
    (void)state;
    assert_true(save_at("p.cot", build_twice, &h));
    assert_int_equal(mkdir("folder", 0777), 0);
    save_fails("folder", "[save] cannot write folder: it is a directory");
    save_fails("", "[save] cannot write a file with an empty name: No such file or directory");
    save_fails("none/p.cot", "[save] cannot write none/p.cot: No such file or directory");
    save_fails("p.cot/q", "[save] cannot write p.cot/q: Not a directory");
    if (access("/dev/full", W_OK) == 0)
        save_fails("/dev/full", "[save] cannot write /dev/full: No space left on device");
    if (geteuid() != 0) { /* root may write everywhere */
        assert_int_equal(chmod("folder", 0555), 0);
        save_fails("folder/p.cot", "[save] cannot write folder/p.cot: Permission denied");
        assert_int_equal(chmod("p.cot", 0444), 0);
        save_fails("p.cot", "[save] cannot write p.cot: Permission denied");
    }
    assert_int_equal(load_at("p.cot", &h), 1);
    assert_int_equal(files_here(), 2);
    unlink("p.cot"), rmdir("folder");
}

/* As on a disk that is full: a part is written, then no more. */
static bool fill_half(FILE *file, void *content) {
    (void)content;
    fputs("half", file);
    errno = ENOSPC;
    return false;
}
static char *guarded;
static int   guards;
static void  guard(char *name) {
    guarded = name;
    guards++;
}

static void a_file_that_fails_half_way_is_taken_away(void **state) {
    heard h;
    (void)state;
    assert_true(save_at("p.cot", build_twice, &h));
    assert_false(cot__file_replace(NULL, "p.cot", 8, fill_half, NULL, guard));
    assert_int_equal(errno, ENOSPC);
    assert_true(guards == 2 && !guarded);
    assert_int_equal(files_here(), 1);
    assert_int_equal(load_at("p.cot", &h), 1);
    unlink("p.cot");
}

/* More bytes than the process may write would end it by a signal. */
static void a_file_that_is_too_long_for_the_process_is_refused(void **state) {
    heard         h;
    struct rlimit before, few;
    (void)state;
    assert_true(save_at("p.cot", build_twice, &h));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = (struct rlimit){100, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    save_fails("p.cot", "[save] cannot write p.cot: File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(load_at("p.cot", &h), 1);
    assert_int_equal(files_here(), 1);
    unlink("p.cot");
}

static void what_cannot_be_read_is_told(void **state) {
    FILE *file = fopen("other", "w");
    (void)state;
    assert_non_null(file);
    fclose(file);
    load_fails("none", "[load] cannot read none: No such file or directory");
    load_fails("", "[load] cannot read a file with an empty name: No such file or directory");
    load_fails(".", "[load] cannot read .: it is a directory");
    load_fails("other", "[load] this is no program file: it is empty");
    if (access("/dev/zero", R_OK) == 0)
        load_fails("/dev/zero", "[load] this is no program file: it does not begin with COTPROG");
    unlink("other");
}

static void any_allocation_of_a_file_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {0};
        heard         h;
        cot_allocator al = {counting_alloc, &c};
        cot__program *p = build_with(build_twice, &h, &al);
        cot__caller   caller = listen(&h, "save");
        c.fail_at = c.requests + at;
        bool fine = cot__program_save_to_file(p, "p.cot", &caller);
        assert_true(fine == (c.failed == 0));
        if (!fine) assert_true(h.code == COT_MEMORY && strstr(h.text, "[save] out of memory: ") && h.errors == 1);
        assert_int_equal(files_here(), fine);
        cot__program_release(p);
        assert_true(c.live == 0 && !c.wrong_size);
        if (fine) break;
    }
    unlink("p.cot");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_and_keeps_its_permissions),
        cmocka_unit_test(what_cannot_be_written_stays_as_it_was),
        cmocka_unit_test(a_file_that_fails_half_way_is_taken_away),
        cmocka_unit_test(a_file_that_is_too_long_for_the_process_is_refused),
        cmocka_unit_test(what_cannot_be_read_is_told),
        cmocka_unit_test(any_allocation_of_a_file_may_fail),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
