/* ctest: timeout=300 */
/* Program files as they should be: what is saved is loaded, to the same program and the same bytes;
 * through callbacks, through memory that runs out, and at any size. */
#include "program/file/file_test.h"

static void print_program(const cot__program *p, char *to, size_t size) {
    cot__text text = cot__text_buffer(to, size);
    cot__program_print(p, &text);
}

static void assert_same_constants(const cot__program *p, const cot__program *q) {
    assert_int_equal(p->constants, q->constants);
    for (uint32_t k = 0; k < p->constants; k++) {
        cot__view x = cot__value_view(p, p->constant[k].value);
        assert_memory_equal(cot__constant_elements(p, k), cot__constant_elements(q, k),
                            (size_t)(cot__view_size(&x) * cot__dtype_size(x.dtype)));
    }
}

static void assert_same_bytes(saved a, saved b) {
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.at, b.at, a.size);
}

/* ---- there and back -------------------------------------------------------------------------- */

static void assert_round_trip(const cot__program *p) {
    static char   before[8192], after[8192];
    heard         h;
    cot__caller   caller = listen(&h, "load");
    saved         first = save_program(p);
    cot__program *q = cot__program_load(first.at, first.size, NULL, &caller);
    assert_string_equal(h.text, "");
    assert_non_null(q);
    check_program(q);
    print_program(p, before, sizeof before);
    print_program(q, after, sizeof after);
    assert_string_equal(after, before);
    assert_same_constants(p, q);
    assert_int_equal(cot__program_bytes(q) - q->data_room, cot__program_bytes(p) - p->data_room);
    saved again = save_program(q);
    assert_same_bytes(again, first);
    cot__program_release(q);
    free(first.at);
    free(again.at);
}

static void a_loaded_program_is_the_saved_one_and_saves_to_the_same_bytes(void **state) {
    (void)state;
    for (int k = 0; k < PROGRAM_COUNT; k++) {
        cot__program *p = build_one(PROGRAMS[k].build);
        assert_round_trip(p);
        cot__program_release(p);
    }
}

/* Another format, or another order of bytes, would be read by nobody. */
static void the_bytes_of_a_file_are_these(void **state) {
    static const char bytes[] = "COTPROG\n"
                                "\1\0\0\0"
                                "\0\0\0\0"
                                "\x96\0\0\0\0\0\0\0"
                                "PROG"
                                "\x6a\0\0\0\0\0\0\0"
                                "\1\0\0\0mul\0"
                                "\2\0\0\0mul\0a.c\0"
                                "\1\0\0\0f32\0\1\3\0\0\0\0\0\0\0"
                                "\1\0\0\0\1\0\0\0\2\0\0\0\7\0\0\0"
                                "\2\0\0\0"
                                "\0\0\0\0\0"
                                "\2\0\0\0\0\0\0\1\0\0\0\0\0"
                                "\2\0\0\0\0\0\0\0\xff\xff\xff\xff"
                                "\0\0\1\0\0\0\0\0\0\0\x40"
                                "\1\0\0\0\1\0\0\0";
    cot__program *p = build_one(build_twice);
    saved         s = save_program(p);
    (void)state;
    assert_int_equal(s.size, sizeof bytes - 1 + 8);
    assert_memory_equal(s.at, bytes, sizeof bytes - 1);
    assert_int_equal(cot__from_bytes(s.at + s.size - 8, 8), cot__checksum(0, bytes, sizeof bytes - 1));
    free(s.at);
    cot__program_release(p);
}

/* Files name operations: a name must belong to one only. */
static void every_operation_has_its_own_name(void **state) {
    (void)state;
    for (int a = 0; a < OP_count; a++)
        for (int b = a + 1; b < OP_count && cot__operation_exists(a); b++)
            if (cot__operation_exists(b)) assert_string_not_equal(cot__op_of(a)->name, cot__op_of(b)->name);
}

/* One bit of a byte that changes always changes the sum; see base/file/bytes.h. */
static void the_checksum_sees_every_change_of_one_byte(void **state) {
    unsigned char bytes[40];
    (void)state;
    for (int k = 0; k < 40; k++) bytes[k] = (unsigned char)(k * k);
    uint64_t sum = cot__checksum(0, bytes, sizeof bytes);
    for (int k = 0; k < 40; k++)
        for (int v = 1; v < 256; v++) {
            bytes[k] ^= (unsigned char)v;
            assert_true(cot__checksum(0, bytes, sizeof bytes) != sum);
            bytes[k] ^= (unsigned char)v;
        }
}

/* ---- size ------------------------------------------------------------------------------------ */

/* A line of 10^6 operations with many labels, types and constants. Were anything of it quadratic,
 * the test would not end. */
static uint32_t big_count;
static void     build_big(cot__builder *b) {
    char     file[32];
    uint32_t x = cot__build_input(b, &SCALAR);
    for (uint32_t k = 0; k < big_count; k++) {
        cot__type row = {COT_U8, {1, {k % 5000}}};
        snprintf(file, sizeof file, "file%u.c", k % 3000);
        if (k % 100 == 0) cot__build_input(b, &row);
        x = cot__build_operation(b, &(cot__append){.op = OP_mul, .n = 2, .x = X(x, COT__NO_VALUE), .number = k,
                                                   .name = "mul", .file = file, .line = (int)k});
    }
    cot__build_output(b, x);
}

typedef struct counted_reads { const saved *of; size_t at, calls, most; } counted_reads;
static int64_t read_counted(void *from, void *to, size_t room) {
    counted_reads *r = from;
    size_t         left = r->of->size - r->at, n = left < room ? left : room;
    if (r->most && n > r->most) n = r->most;
    memcpy(to, r->of->at + r->at, n);
    r->at += n;
    r->calls++;
    return (int64_t)n;
}

/* Memory is in proportion to the file: at most so many times its bytes, all at once. */
typedef struct peak { counting c; size_t most; } peak;
static void *peak_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    peak *k = user;
    void *p = counting_alloc(&k->c, ptr, old_size, new_size);
    if (k->c.live > k->most) k->most = k->c.live;
    return p;
}

static void a_million_operations_are_saved_and_loaded(void **state) {
    heard       h;
    cot__caller caller = listen(&h, "load");
    peak        k = {0};
    (void)state;
    big_count = test_small() ? 20000 : 1000000;
    cot__program *p = build_one(build_big);
    saved         s = save_program(p);
    assert_true(s.size < 64 * (uint64_t)big_count + 100000);
    counted_reads r = {.of = &s};
    cot__program *q = cot__program_read(read_counted, &r, &(cot_allocator){peak_alloc, &k}, &caller);
    assert_string_equal(h.text, "");
    assert_int_equal(q->operations, big_count);
    assert_true(r.calls <= 64); /* memory doubles */
    assert_true(k.most <= 8 * s.size);
    saved again = save_program(q);
    assert_same_bytes(again, s);
    free(again.at);
    free(s.at);
    cot__program_release(p);
    cot__program_release(q);
    assert_int_equal(k.c.live, 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void any_allocation_of_saving_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {0};
        heard         h;
        cot_allocator al = {counting_alloc, &c};
        cot__program *p = build_with(build_products, &h, &al);
        cot__caller   caller = listen(&h, "save");
        saved         s = {0};
        c.fail_at = c.requests + at;
        bool fine = cot__program_save(p, append_bytes, &s, &caller);
        assert_true(fine == (c.failed == 0));
        assert_true(fine ? s.size > 0 : s.size == 0);
        if (!fine) assert_true(h.code == COT_MEMORY && strstr(h.text, "[save] out of memory: ") && h.errors == 1);
        free(s.at);
        cot__program_release(p);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (fine) break;
    }
}

static void any_allocation_of_loading_may_fail(void **state) {
    cot__program *p = build_one(build_products);
    saved         s = save_program(p);
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {.fail_at = at};
        heard         h;
        cot_allocator al = {counting_alloc, &c};
        cot__caller   caller = listen(&h, "load");
        counted_reads r = {.of = &s};
        cot__program *q = cot__program_read(read_counted, &r, &al, &caller);
        assert_true((q == NULL) == (c.failed > 0));
        if (!q) assert_true(h.code == COT_MEMORY && strstr(h.text, "[load] out of memory: ") && h.errors == 1);
        cot__program_release(q);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
    free(s.at);
    cot__program_release(p);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

typedef struct limited { size_t left; } limited;
static bool write_limited(void *to, const void *bytes, size_t n) {
    limited *l = to;
    (void)bytes;
    if (n > l->left) return false;
    l->left -= n;
    return true;
}

static void a_writer_that_takes_less_is_told_of(void **state) {
    cot__program *p = build_one(build_constants);
    saved         s = save_program(p);
    char          sentence[128];
    (void)state;
    snprintf(sentence, sizeof sentence, "[save] the %zu bytes of the program were not all taken", s.size);
    for (size_t room = 0; room <= s.size; room += room + 61 < s.size ? 61 : 1) {
        heard       h;
        cot__caller caller = listen(&h, "save");
        bool        fine = cot__program_save(p, write_limited, &(limited){room}, &caller);
        assert_true(fine == (room == s.size));
        assert_string_equal(h.text, fine ? "" : sentence);
    }
    free(s.at);
    cot__program_release(p);
}

typedef struct failing { const saved *of; size_t at, fails_at; } failing;
static int64_t read_failing(void *from, void *to, size_t room) {
    failing *f = from;
    size_t   left = f->fails_at - f->at, n = left < room ? left : room;
    if (!left) return -1;
    memcpy(to, f->of->at + f->at, n);
    f->at += n;
    return (int64_t)n;
}

static void a_reader_that_fails_is_told_of(void **state) {
    cot__program *p = build_one(build_products);
    saved         s = save_program(p);
    char          sentence[128];
    (void)state;
    for (size_t at = 0; at < s.size; at++) {
        heard       h;
        cot__caller caller = listen(&h, "load");
        snprintf(sentence, sizeof sentence, "[load] the file could not be read on after %zu bytes", at);
        assert_null(cot__program_read(read_failing, &(failing){&s, 0, at}, NULL, &caller));
        assert_string_equal(h.text, sentence);
    }
    free(s.at);
    cot__program_release(p);
}

static void a_reader_may_give_one_byte_at_a_time(void **state) {
    heard         h;
    cot__caller   caller = listen(&h, "load");
    cot__program *p = build_one(build_products);
    saved         s = save_program(p);
    counted_reads r = {.of = &s, .most = 1};
    cot__program *q = cot__program_read(read_counted, &r, NULL, &caller);
    (void)state;
    assert_string_equal(h.text, "");
    assert_int_equal(q->operations, p->operations);
    cot__program_release(q);
    cot__program_release(p);
    free(s.at);
}

/* What has no end is not read to its end. */
static int64_t read_zeros(void *from, void *to, size_t room) {
    (*(int *)from)++;
    memset(to, 0, room);
    return (int64_t)room;
}
static int64_t read_on(void *from, void *to, size_t room) {
    counted_reads *r = from;
    if (r->at < r->of->size) return read_counted(from, to, room);
    r->calls++;
    memset(to, 0, room);
    return (int64_t)room;
}

static void no_more_is_read_than_the_head_says(void **state) {
    heard         h;
    cot__caller   caller = listen(&h, "load");
    int           calls = 0;
    char          sentence[128];
    cot__program *p = build_one(build_products);
    saved         s = save_program(p);
    counted_reads r = {.of = &s};
    (void)state;
    assert_null(cot__program_read(read_zeros, &calls, NULL, &caller));
    assert_string_equal(h.text, "[load] this is no program file: it does not begin with COTPROG");
    assert_int_equal(calls, 1);
    caller = listen(&h, "load");
    assert_null(cot__program_read(read_on, &r, NULL, &caller));
    snprintf(sentence, sizeof sentence, "[load] this program file goes on after its end at byte %zu", s.size);
    assert_string_equal(h.text, sentence);
    cot__program_release(p);
    free(s.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_program_is_the_saved_one_and_saves_to_the_same_bytes),
        cmocka_unit_test(the_bytes_of_a_file_are_these),
        cmocka_unit_test(every_operation_has_its_own_name),
        cmocka_unit_test(the_checksum_sees_every_change_of_one_byte),
        cmocka_unit_test(a_million_operations_are_saved_and_loaded),
        cmocka_unit_test(any_allocation_of_saving_may_fail),
        cmocka_unit_test(any_allocation_of_loading_may_fail),
        cmocka_unit_test(a_writer_that_takes_less_is_told_of),
        cmocka_unit_test(a_reader_that_fails_is_told_of),
        cmocka_unit_test(a_reader_may_give_one_byte_at_a_time),
        cmocka_unit_test(no_more_is_read_than_the_head_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
