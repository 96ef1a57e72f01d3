/* ctest: timeout=240 */
/* Program files as they should not be: cut short, altered, newer, made to deceive. Each is refused
 * with one sentence, and with little memory; or it is another legal program. */
#include "program/file/file_test.h"

#include "program/file/parts.h"

/* Memory of a file of so many bytes: in proportion to it, and what any program takes. */
static size_t fair_memory(size_t size) { return 64 * size + 65536; }

typedef struct bounded { counting c; size_t most; } bounded;
static void *bounded_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    bounded *b = user;
    if (b->c.live + new_size > b->most) fail_msg("%zu bytes are asked for", new_size);
    return counting_alloc(&b->c, ptr, old_size, new_size);
}

/* Loads bytes, which must be refused with one sentence, or hold a legal program that is saved to
 * just these bytes. */
static bool load_any(const unsigned char *bytes, size_t size, heard *h) {
    bounded       b = {.most = fair_memory(size)};
    cot__caller   caller = listen(h, "load");
    cot__program *p = cot__program_load(bytes, size, &(cot_allocator){bounded_alloc, &b}, &caller);
    bool          loaded = p;
    assert_true(loaded ? h->errors == 0 : h->errors == 1 && h->code != COT_OK && strlen(h->text) > 20);
    if (p) {
        check_program(p);
        saved again = save_program(p);
        assert_int_equal(again.size, size);
        assert_memory_equal(again.at, bytes, size);
        free(again.at);
    }
    cot__program_release(p);
    assert_true(b.c.live == 0 && b.c.blocks == 0 && !b.c.wrong_size);
    return loaded;
}

static void refuses_bytes(const void *bytes, size_t size, const char *sentence) {
    heard h;
    assert_false(load_any(bytes, size, &h));
    assert_string_equal(h.text, sentence);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void every_file_that_is_cut_short_is_refused(void **state) {
    (void)state;
    for (int k = 0; k < PROGRAM_COUNT; k++) {
        cot__program *p = build_one(PROGRAMS[k].build);
        saved         s = save_program(p);
        for (size_t n = 0; n < s.size; n++) {
            unsigned char *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read beyond */
            char           sentence[128];
            memcpy(exact, s.at, n);
            if (n == 0) snprintf(sentence, sizeof sentence, "[load] this is no program file: it is empty");
            else if (n < 32)
                snprintf(sentence, sizeof sentence,
                         "[load] this program file is cut short: %zu bytes are there, not even its head", n);
            else
                snprintf(sentence, sizeof sentence,
                         "[load] this program file is cut short: %zu of %zu bytes are there", n, s.size);
            refuses_bytes(exact, n, sentence);
            free(exact);
        }
        free(s.at);
        cot__program_release(p);
    }
}

/* By the checksum, unless the beginning or the length is another. */
static void every_bit_that_is_flipped_is_seen(void **state) {
    heard h;
    (void)state;
    for (int k = 0; k < PROGRAM_COUNT; k++) {
        cot__program *p = build_one(PROGRAMS[k].build);
        saved         s = save_program(p);
        assert_true(load_any(s.at, s.size, &h));
        for (size_t bit = 0; bit < 8 * s.size; bit++) {
            s.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (load_any(s.at, s.size, &h)) fail_msg("%s: bit %zu", PROGRAMS[k].name, bit);
            if ((bit >= 64 && bit < 128) || bit >= 192)
                assert_string_equal(h.text, "[load] this program file was altered: its checksum does not fit");
            s.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(s.at);
        cot__program_release(p);
    }
}

/* ---- deceit ---------------------------------------------------------------------------------- */

/* The checksum fits again: what counts is what the bytes mean. */
static void files_of_flipped_bits_are_refused_or_legal(void **state) {
    heard h;
    int   loaded = 0, refused = 0;
    (void)state;
    for (int k = 0; k < PROGRAM_COUNT; k++) {
        cot__program *p = build_one(PROGRAMS[k].build);
        saved         s = save_program(p);
        for (size_t bit = 0; bit < 8 * (s.size - 8); bit++) {
            s.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            put_sum(s.at, s.size);
            *(load_any(s.at, s.size, &h) ? &loaded : &refused) += 1;
            s.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(s.at);
        cot__program_release(p);
    }
    assert_true(loaded > 100 && refused > 1000); /* both happen: bits of constants may be any */
}

static int below(test_random *r, int n) { return (int)test_uniform(r, 0, n); }

/* Some bytes become others, are cut out, or stand twice; lengths and checksum fit again. */
static size_t mutate(test_random *r, unsigned char *bytes, size_t size) {
    static const uint32_t telling[] = {0, 1, 2, 3, 255, 0x7fffffff, 0x80000000, UINT32_MAX};
    size_t                at = 24 + (size_t)below(r, (int)size - 32), n = 1 + (size_t)below(r, 8);
    if (n > size - 8 - at) n = size - 8 - at;
    switch (below(r, 5)) {
    case 0: bytes[at] = (unsigned char)below(r, 256); break;
    case 1:
        if (n >= 4) cot__to_bytes(bytes + at, telling[below(r, 8)], 4);
        break;
    case 2:
        if (n == 8) cot__to_bytes(bytes + at, UINT64_C(1) << below(r, 64), 8);
        break;
    case 3:
        memmove(bytes + at, bytes + at + n, size - at - n);
        size -= n;
        break;
    default:
        memmove(bytes + at + n, bytes + at, size - at);
        size += n;
    }
    return size;
}

static void files_of_random_bytes_are_refused_or_legal(void **state) {
    test_random r = test_random_of("files_of_random_bytes", 0);
    heard       h;
    int         loaded = 0, trials = test_small() ? 2000 : 15000;
    (void)state;
    for (int k = 1; k < PROGRAM_COUNT; k++) {
        cot__program *p = build_one(PROGRAMS[k].build);
        saved         s = save_program(p);
        for (int i = 0; i < trials; i++) {
            unsigned char *bytes = malloc(s.size + 64);
            size_t         size = s.size;
            memcpy(bytes, s.at, s.size);
            for (int rounds = 1 + below(&r, 3); rounds > 0 && size > 64; rounds--) size = mutate(&r, bytes, size);
            cot__to_bytes(bytes + 16, size, 8);
            if (below(&r, 8)) cot__to_bytes(bytes + 28, size - 44, 8);
            put_sum(bytes, size);
            unsigned char *exact = realloc(bytes, size);
            loaded += load_any(exact, size, &h);
            free(exact);
        }
        free(s.at);
        cot__program_release(p);
    }
    assert_true(loaded > 50 && loaded < PROGRAM_COUNT * trials / 2);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* Writes a number over bytes of x · 2 (the_bytes_of_a_file_are_these tells which they are), and
 * corrects the checksum. */
static void edited(saved s, size_t at, int n, uint64_t value, const char *sentence) {
    unsigned char before[8];
    memcpy(before, s.at + at, 8);
    cot__to_bytes(s.at + at, value, n);
    put_sum(s.at, s.size);
    refuses_bytes(s.at, s.size, sentence);
    memcpy(s.at + at, before, 8);
    put_sum(s.at, s.size);
}

#define ILLEGAL "[load] this program file is not legal: "

static void what_is_wrong_is_said(void **state) {
    cot__program *p = build_one(build_twice);
    saved         s = save_program(p);
    (void)state;
    edited(s, 0, 1, 'c', "[load] this is no program file: it does not begin with COTPROG");
    edited(s, 12, 4, 3, ILLEGAL "its format is 1.3");
    edited(s, 16, 8, 151, "[load] this program file is cut short: 150 of 151 bytes are there");
    edited(s, 16, 8, 149, "[load] this program file goes on after its end at byte 149");
    edited(s, 24, 4, 0, ILLEGAL "part 0 is no program");
    edited(s, 28, 8, UINT64_MAX, ILLEGAL "part 0 is longer than the file");
    edited(s, 28, 8, 105, ILLEGAL "part 0 ends in the middle");
    edited(s, 36, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 44, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 56, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 64, 1, 99, ILLEGAL "part 0, type 0 has 99 axes");
    edited(s, 65, 8, UINT64_MAX,
           ILLEGAL "part 0, type 0: axis 0 of shape (-1,) has extent -1; extents are not negative");
    edited(s, 73, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 77, 4, 3, ILLEGAL "part 0, label 0 has a text that is not there");
    edited(s, 81, 4, 3, ILLEGAL "part 0, label 0 has a text that is not there");
    edited(s, 89, 4, UINT32_MAX, ILLEGAL "part 0, entry 2 has type 16777216 of 1");
    edited(s, 93, 1, 3, ILLEGAL "part 0, entry 0 is of no known kind");
    edited(s, 94, 4, 1, ILLEGAL "part 0, entry 0 has type 1 of 1");
    edited(s, 99, 2, 1, ILLEGAL "part 0, entry 1 has name 1 of 1 and label 0 of 1");
    edited(s, 101, 4, 9, ILLEGAL "part 0, entry 1 has name 0 of 1 and label 9 of 1");
    edited(s, 105, 2, 9999, ILLEGAL "part 0 ends in the middle");
    edited(s, 107, 4, 1, ILLEGAL "part 0, entry 1 has type 1 of 1");
    edited(s, 111, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 115, 4, 1, ILLEGAL "part 0, entry 1: operand 0 is value 1, which is not there");
    edited(s, 115, 4, UINT32_MAX,
           ILLEGAL "part 0, entry 1: 2 of 2 operands are numbers; one of two may be, in an elementwise operation");
    edited(s, 123, 2, 9999, ILLEGAL "part 0 ends in the middle");
    edited(s, 125, 1, 7, ILLEGAL "part 0, entry 1 goes on in no known way");
    edited(s, 134, 4, UINT32_MAX, ILLEGAL "part 0 ends in the middle");
    edited(s, 134, 4, 0, ILLEGAL "part 0 goes on after its end");
    edited(s, 138, 4, 2, ILLEGAL "part 0, output 0: output 0 is value 2, which is not there");
    edited(s, 119, 4, 0, ILLEGAL "something in it stands twice, is not used or is out of order");
    free(s.at);
    cot__program_release(p);
}

static void a_newer_format_is_refused_by_its_number(void **state) {
    cot__program *p = build_one(build_twice);
    saved         s = save_program(p);
    char          sentence[256];
    (void)state;
    snprintf(sentence, sizeof sentence,
             "[load] this program file has format 2, and version %s of the library reads formats up to 1; a newer "
             "version can load it",
             cot_version());
    edited(s, 8, 4, 2, sentence);
    edited(s, 8, 4, 0, ILLEGAL "its format is 0.0");
    /* what a newer format holds behind its head is its own */
    s.at[8] = 2;
    memset(s.at + 24, 0xee, s.size - 32);
    put_sum(s.at, s.size);
    refuses_bytes(s.at, s.size, sentence);
    free(s.at);
    cot__program_release(p);
}

static void names_that_do_not_exist_are_told(void **state) {
    cot__program *p = build_one(build_twice);
    saved         s = save_program(p);
    char          sentence[256];
    (void)state;
    snprintf(sentence, sizeof sentence,
             "[load] the operation 'foo' does not exist in version %s of the library; a newer one may know it",
             cot_version());
    edited(s, 40, 3, 'f' | 'o' << 8 | 'o' << 16, sentence);
    sentence[22] = '?', sentence[23] = '?'; /* what a terminal would obey is not shown */
    edited(s, 40, 3, 0x1b | 0x9b << 8 | 'o' << 16, sentence);
    snprintf(sentence, sizeof sentence,
             "[load] the dtype 'f99' does not exist in version %s of the library; a newer one may know it",
             cot_version());
    edited(s, 60, 3, 'f' | '9' << 8 | '9' << 16, sentence);
    free(s.at);
    cot__program_release(p);
}

/* A file of one part with n zeros put in at `at`; lengths and checksum fit. */
static saved with_zeros(saved s, size_t at, size_t n) {
    static const unsigned char zeros[16];
    saved                      longer = {0};
    append_bytes(&longer, s.at, at);
    append_bytes(&longer, zeros, n);
    append_bytes(&longer, s.at + at, s.size - at);
    cot__to_bytes(longer.at + 16, longer.size, 8);
    cot__to_bytes(longer.at + 28, longer.size - 44, 8);
    put_sum(longer.at, longer.size);
    return longer;
}

static void build_two_types(cot__builder *b) {
    cot__build_input(b, &SCALAR);
    cot__build_input(b, &MATRIX);
    cot__build_output(b, cot__build_operation(b, &(cot__append){.op = OP_exp, .n = 1, .x = X(1), .name = "exp"}));
}

static void results_are_those_that_the_operation_gives(void **state) {
    cot__program *p = build_one(build_twice), *two = build_one(build_two_types);
    saved         s = save_program(p), more = with_zeros(s, 111, 4), types = save_program(two);
    (void)state;
    edited(more, 105, 2, 2, ILLEGAL "part 0, entry 1, mul, has 2 results, not 1");
    /* behind the type: its operands, no body, no more, the outputs, the checksum */
    size_t at = types.size - 8 - 8 - 1 - 2 - 8 - 4;
    assert_int_equal(cot__from_bytes(types.at + at, 4), 1);
    edited(types, at, 4, 0, ILLEGAL "part 0, entry 2, exp, gives another type than the file says");
    free(s.at), free(more.at), free(types.at);
    cot__program_release(p), cot__program_release(two);
}

/* Names that exist, and are not of this operation, or of none that a program may have. */
static void other_operations_are_held_to_their_types(void **state) {
    cot__program *p = build_one(build_twice);
    saved         s = save_program(p);
    (void)state;
    assert_memory_equal(s.at + 40, "mul", 4);
    edited(s, 40, 3, 's' | 'u' << 8 | 'm' << 16,
           ILLEGAL "part 0, entry 1: it lacks its attributes (axes:m keepdims:f)");
    edited(s, 40, 3, 'e' | 'x' << 8 | 'p' << 16,
           ILLEGAL "part 0, entry 1: 2 operands, where 1 to 1 belong; this is no legal operation");
    free(s.at);
    cot__program_release(p);
}

/* ---- what cannot be saved -------------------------------------------------------------------- */

static void save_is_refused(const cot__program *p, const char *sentence) {
    heard       h;
    cot__caller caller = listen(&h, "save");
    saved       s = {0};
    assert_false(cot__program_save(p, append_bytes, &s, &caller));
    assert_string_equal(h.text, sentence);
    assert_int_equal(h.errors, 1);
    assert_int_equal(s.size, 0);
}

static void a_bound_program_is_not_saved(void **state) {
    cot__program *p = build_one(build_products);
    uint32_t      sum = 4;
    (void)state;
    assert_int_equal(p->operation[sum].op, OP_sum);
    cot__attr *a = (cot__attr *)(void *)(p->attr + p->operation[sum].extra);
    a->pointer = p;
    save_is_refused(p, "[save] the operation 'sum' is bound to this process (it holds an address); a program with it "
                       "cannot be saved");
    a->pointer = NULL;
    p->input[0] = 1, p->input[1] = 0, p->value[0].from++, p->value[1].from--;
    check_program(p);
    save_is_refused(p, "[save] input or constant 1 was built in place 0; they are saved in order");
    cot__program_release(p);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Gives the only operation of p bodies, which no record takes yet. */
static void give_bodies(cot__program *p, uint32_t n, cot__program *body) {
    p->body = cot__alloc(&p->al, n * sizeof *p->body);
    for (uint32_t k = 0; k < n; k++) p->body[k] = cot__program_share(body);
    p->bodies = p->operation[1].body = n;
    p->depth = body->depth + 1;
}

static void a_body_is_saved_once_and_before_its_users(void **state) {
    cot__program *p = build_one(build_twice), *body = build_one(build_twice), *alone = build_one(build_twice);
    saved         small = save_program(alone);
    (void)state;
    give_bodies(p, 2, body);
    saved s = save_program(p);
    assert_int_equal(s.size, 2 * small.size - 32 + 8);
    assert_memory_equal(s.at + 24, small.at + 24, small.size - 32);
    refuses_bytes(s.at, s.size, ILLEGAL "part 1, entry 1: 2 bodies, where at most 0 belong");
    edited(s, 24 + small.size - 32 + 101, 4, 1, ILLEGAL "part 1, entry 1 has part 1 for a body; bodies stand before");
    /* a part that nobody uses */
    saved unused = {0};
    append_bytes(&unused, small.at, small.size - 8);
    append_bytes(&unused, small.at + 24, small.size - 24);
    cot__to_bytes(unused.at + 16, unused.size, 8);
    put_sum(unused.at, unused.size);
    refuses_bytes(unused.at, unused.size, ILLEGAL "something in it stands twice, is not used or is out of order");
    free(unused.at), free(s.at), free(small.at);
    cot__program_release(p), cot__program_release(body), cot__program_release(alone);
}

/* 31 programs, each of which uses the one before twice: going through all takes 2^31 steps, and
 * 2^16 are as many as a short file may ask for. */
static void bodies_that_never_end_are_refused(void **state) {
    cot__program *p = build_one(build_twice);
    (void)state;
    for (int k = 0; k < 30; k++) {
        cot__program *next = build_one(build_twice);
        give_bodies(next, 2, p);
        cot__program_release(p);
        p = next;
    }
    save_is_refused(p, "[save] a program and its bodies, each counted wherever it is used, have more than 65536 "
                       "operations: bodies may be used 64 times on average");
    cot__program_release(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_that_is_cut_short_is_refused),
        cmocka_unit_test(every_bit_that_is_flipped_is_seen),
        cmocka_unit_test(files_of_flipped_bits_are_refused_or_legal),
        cmocka_unit_test(files_of_random_bytes_are_refused_or_legal),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_newer_format_is_refused_by_its_number),
        cmocka_unit_test(names_that_do_not_exist_are_told),
        cmocka_unit_test(results_are_those_that_the_operation_gives),
        cmocka_unit_test(other_operations_are_held_to_their_types),
        cmocka_unit_test(a_bound_program_is_not_saved),
        cmocka_unit_test(a_body_is_saved_once_and_before_its_users),
        cmocka_unit_test(bodies_that_never_end_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
