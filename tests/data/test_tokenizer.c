/* test_tokenizer.c: byte-pair encoding by GPT-2's rules: words as its pattern cuts them, tokens of
 * a small vocabulary as worked out by hand, any bytes there and back; and tokens of characters. */
#include "support/data_test.h"

/* Bytes 0 … 255 in GPT-2's own order of letters, then merges. */
static const char *const merges[] = {"h e",
                                     "l l",
                                     "he ll",
                                     "hell o",
                                     "\xc4\xa0 w",
                                     "\xc4\xa0w o",
                                     "r l",
                                     "1 2",
                                     "\xc4\x8a \xc4\x8a",
                                     "' s",
                                     "\xc4\xa0 \xc4\xa0",
                                     "\xc3\x83 \xc2\xa9"};

static void put_letter(FILE *f, unsigned c) {
    if (c == '"' || c == '\\') fputc('\\', f);
    if (c < 0x80)
        fputc((int)c, f);
    else
        fputc((int)(0xc0 | c >> 6), f), fputc((int)(0x80 | (c & 0x3f)), f);
}

static void put_merged(FILE *f, const char *merge) {
    for (; *merge; merge++)
        if (*merge != ' ') fputc(*merge, f);
}

/* Byte b has number b; merge k has number 256 + k, and <|end|> the last. */
static void write_files(void) {
    FILE    *f     = fopen(in_folder("vocab.json"), "wb");
    unsigned extra = 0;
    assert_non_null(f);
    for (unsigned b = 0; b < 256; b++) {
        bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174);
        fputs(b ? ", \"" : "{\"", f);
        put_letter(f, itself ? b : 256 + extra++);
        fprintf(f, "\": %u", b);
    }
    int n = (int)(sizeof merges / sizeof *merges);
    for (int k = 0; k < n; k++) {
        fputs(", \"", f);
        put_merged(f, merges[k]);
        fprintf(f, "\": %d", 256 + k);
    }
    fprintf(f, ", \"<|end|>\": %d}", 256 + n);
    fclose(f);
    f = fopen(in_folder("merges.txt"), "wb");
    assert_non_null(f);
    fputs("#version: 0.2\n", f);
    for (int k = 0; k < n; k++) fprintf(f, "%s\n", merges[k]);
    fclose(f);
}

static cot_tokenizer *load(void) {
    write_files();
    cot_tokenizer *k = cot_tokenizer_load(in_folder("vocab.json"), in_folder("merges.txt"), NULL);
    assert_string_equal(cot_tokenizer_message(k), "");
    return k;
}

static void gives(const cot_tokenizer *k, const char *text, size_t bytes, int n, const int *expected) {
    int64_t ids[64];
    char    back[100], why[200];
    int64_t got = cot_tokenizer_encode(k, text, bytes, ids, 64, why, sizeof why);
    assert_string_equal(why, "");
    assert_int_equal(got, n);
    for (int i = 0; i < n; i++) assert_int_equal(ids[i], expected[i]);
    assert_int_equal(cot_tokenizer_decode(k, ids, n, back, sizeof back), bytes);
    assert_memory_equal(back, text, bytes);
}

#define GIVES(text, ...)                                                                                               \
    gives(k, text, sizeof text - 1, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static void words_become_these_tokens(void **state) {
    (void)state;
    cot_tokenizer *k = load();
    assert_int_equal(cot_tokenizer_count(k), 269);
    assert_int_equal(cot_tokenizer_find(k, "hello", 5), 259);
    assert_int_equal(cot_tokenizer_find(k, "<|end|>", 7), 268);
    assert_int_equal(cot_tokenizer_find(k, "hallo", 5), -1);
    GIVES("hello", 259);
    GIVES("hello world", 259, 261, 262, 'd'); /* " wo", "rl" */
    GIVES("helloo", 259, 'o');
    GIVES("hehe", 256, 256);
    /* letters and numbers are words apart: 2 and h do not meet */
    GIVES("12he", 263, 256);
    GIVES("hello's", 259, 265);
    /* two line ends before a word: the last one stands alone, so no pair */
    GIVES("h\n\nh", 'h', '\n', '\n', 'h');
    GIVES("h\n\n", 'h', 264);
    GIVES("\n\n\nh", 264, '\n', 'h');
    /* of spaces the last goes with the word */
    GIVES("  w", ' ', 260);
    GIVES("   w", 266, 260);
    GIVES("h  ", 'h', 266);
    GIVES("caf\xc3\xa9", 'c', 'a', 'f', 267);
    /* no UTF-8 */
    GIVES("\xff\xc3h", 255, 195, 'h');
    gives(k, "", 0, 0, NULL);
    cot_tokenizer_destroy(k);
}

static void any_bytes_come_back(void **state) {
    (void)state;
    cot_tokenizer *k      = load();
    uint32_t       random = 7;
    static char    text[5000], back[5000];
    static int64_t ids[5000];
    for (int trial = 0; trial < 50; trial++) {
        size_t n = trial < 40 ? (size_t)trial * 20 : 5000;
        for (size_t i = 0; i < n; i++) {
            random  = random * 1664525 + 1013904223;
            text[i] = trial % 3 == 0 ? (char)(random >> 24) : "hello world's 12\n\n"[(random >> 24) % 18];
        }
        int64_t count = cot_tokenizer_encode(k, text, n, NULL, 0, NULL, 0);
        assert_int_equal(cot_tokenizer_encode(k, text, n, ids, 5000, NULL, 0), count);
        assert_true(count <= (int64_t)n);
        assert_int_equal(cot_tokenizer_decode(k, ids, count, NULL, 0), n);
        assert_int_equal(cot_tokenizer_decode(k, ids, count, back, 5000), n);
        if (n) assert_memory_equal(text, back, n);
    }
    /* a long word takes no square of its length */
    size_t n         = 2000000;
    char  *long_word = malloc(n);
    assert_non_null(long_word);
    memset(long_word, 'l', n);
    assert_int_equal(cot_tokenizer_encode(k, long_word, n, NULL, 0, NULL, 0), n / 2);
    free(long_word);
    cot_tokenizer_destroy(k);
}

static void characters_are_tokens(void **state) {
    (void)state;
    static const char text[] = "b\xc3\xa9"
                               "a\nab";
    int64_t           ids[10];
    char              why[200];
    cot_tokenizer    *k = cot_tokenizer_of_text(text, sizeof text - 1, NULL);
    assert_string_equal(cot_tokenizer_message(k), "");
    assert_int_equal(cot_tokenizer_count(k), 4);
    GIVES("\na", 0, 1);
    GIVES("b\xc3\xa9", 2, 3);
    assert_int_equal(cot_tokenizer_encode(k, "abc", 3, ids, 10, why, sizeof why), -1);
    assert_string_equal(why, "[tokenizer_encode] no token stands for the text at byte 2");
    assert_int_equal(cot_tokenizer_decode(k, (int64_t[]){4}, 1, NULL, 0), -1);
    assert_int_equal(cot_tokenizer_decode(k, (int64_t[]){-1}, 1, NULL, 0), -1);
    cot_tokenizer_destroy(k);
    k = cot_tokenizer_of_text("a\xff", 2, NULL);
    assert_string_equal(cot_tokenizer_message(k), "the text is not UTF-8 at byte 1");
    cot_tokenizer_destroy(k);
    k = cot_tokenizer_of_text("", 0, NULL);
    assert_int_equal(cot_tokenizer_count(k), 0);
    cot_tokenizer_destroy(k);
    size_t bytes;
    put_file(in_folder("a.txt"), text, sizeof text - 1);
    char *read = cot_text_read(in_folder("a.txt"), &bytes, why, sizeof why);
    assert_string_equal(why, "");
    assert_int_equal(bytes, sizeof text - 1);
    assert_string_equal(read, text);
    free(read);
    assert_null(cot_text_read(NULL, &bytes, why, sizeof why));
    assert_string_equal(why, "[text_read] the path is NULL");
    assert_null(cot_text_read("/none", &bytes, why, sizeof why));
    assert_string_equal(why, "[text_read] cannot read /none: No such file or directory");
}

static void refused(const char *vocab, const char *list, const char *message) {
    char expected[400];
    put_file(in_folder("v.json"), vocab, strlen(vocab));
    put_file(in_folder("m.txt"), list, strlen(list));
    cot_tokenizer *k = cot_tokenizer_load(in_folder("v.json"), in_folder("m.txt"), NULL);
    snprintf(expected, sizeof expected, message, in_folder(strncmp(message, "line", 4) ? "v.json" : "m.txt"));
    assert_string_equal(cot_tokenizer_message(k), expected);
    assert_int_equal(cot_tokenizer_count(k), 0);
    assert_int_equal(cot_tokenizer_encode(k, "a", 1, NULL, 0, NULL, 0), -1);
    cot_tokenizer_destroy(k);
}

static void files_that_are_wrong_are_errors(void **state) {
    (void)state;
    refused("[1]", "", "%s cannot be read: something else than an object at byte 0");
    refused("{\"a\": 1, \"b\": 1}", "", "%s cannot be read: the number of another token at byte 15");
    refused("{\"a\": -1}", "", "%s cannot be read: something else than a natural number at byte 6");
    refused("{\"a\": 99999999}", "",
            "%s cannot be read: a number of a token that is too large for this file at byte 14");
    /* a table up to there would take a thousand times the memory of the file */
    refused("{\"a\": 65536}", "", "%s cannot be read: a number of a token that is too large for this file at byte 11");
    refused("{\"a\": 0", "", "%s cannot be read: neither , nor } at byte 7");
    refused("{\"a\": 0, \"b\": 1}", "#version\na b\n",
            "line 2 of %s, at byte 9, has a token that the vocabulary has not");
    refused("{\"a\": 0, \"b\": 1, \"ab\": 2}", "a b\nab\n",
            "line 2 of %s, at byte 4, is not two tokens with a space between them");
    cot_tokenizer *k = cot_tokenizer_load(NULL, "x", NULL);
    assert_string_equal(cot_tokenizer_message(k), "the path of the vocabulary is NULL");
    cot_tokenizer_destroy(k);
    cot_tokenizer_destroy(NULL);
    assert_int_equal(cot_tokenizer_status(NULL), COT_MEMORY);
    assert_int_equal(cot_tokenizer_find(NULL, "a", 1), -1);
    assert_int_equal(cot_tokenizer_decode(NULL, NULL, 0, NULL, 0), -1);
    assert_int_equal(cot_tokenizer_encode(NULL, "a", 1, NULL, 0, NULL, 0), -1);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    write_files();
    bool fine = false;
    for (int64_t at = 1; !fine; at++) {
        counted        c     = {.fail_at = at};
        int64_t        count = -1;
        cot_tokenizer *k =
            cot_tokenizer_load(in_folder("vocab.json"), in_folder("merges.txt"), &(cot_allocator){counted_alloc, &c});
        if (cot_tokenizer_status(k) == COT_OK) {
            static const char longer[] = "hello hellohellohellohellohellohellohellohellohellohellohellohellohellohello";
            count                      = cot_tokenizer_encode(k, longer, sizeof longer - 1, NULL, 0, NULL, 0);
        } else
            assert_int_equal(cot_tokenizer_status(k), COT_MEMORY);
        fine = count > 0;
        assert_int_equal(fine, c.calls < at);
        cot_tokenizer_destroy(k);
        assert_int_equal(c.used, 0);
    }
    fine = false;
    for (int64_t at = 1; !fine; at++) {
        counted        c = {.fail_at = at};
        cot_tokenizer *k = cot_tokenizer_of_text("abcdefghijklmnopqrstuvwxyz", 26, &(cot_allocator){counted_alloc, &c});
        fine             = cot_tokenizer_count(k) == 26;
        assert_int_equal(fine, c.calls < at);
        cot_tokenizer_destroy(k);
        assert_int_equal(c.used, 0);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_setup, data_teardown)
    const struct CMUnitTest tests[] = {
        TEST(words_become_these_tokens),       TEST(any_bytes_come_back),     TEST(characters_are_tokens),
        TEST(files_that_are_wrong_are_errors), TEST(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
