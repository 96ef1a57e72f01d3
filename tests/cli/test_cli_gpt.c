/* ctest: timeout=240 */
/* test_cli_gpt.c: `train gpt`, `sample`, `predict` and `compile --model`: what is learnt is seen by
 * what uses it, a run that was interrupted ends with the bytes of one that was not, drawing through
 * the cache is drawing without it, and what is wrong is said. */
#include "support/cli_test.h"

#include "train/saved.h"

/* Small enough for a second; the model is in r/, characters of t.txt. */
#define SMALL "--layers 2 --heads 2 --width 32 --context 24 --batch 8 --rate 0.003 --quiet "
#define TRAIN "cotangent train gpt --data t.txt " SMALL

static double number_of(const char *key) {
    char        quoted[64];
    const char *at;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(last.out, quoted);
    if (!at) print_error("no %s in %s%s\n", key, last.out, last.err);
    assert_non_null(at);
    return strtod(at + strlen(quoted), NULL);
}

static int begin(void **state) {
    if (folder_make(state)) return -1;
    runs("for k in $(seq 100 399); do echo \"the cat $k sat on the mat\"; done > t.txt");
    runs(TRAIN "--steps 150 --checkpoint r --every 75 --json");
    return 0;
}

/* All that a line leaves open are two digits of its number: 1.9 bits or so of 26 characters. */
static void training_learns(void **state) {
    (void)state;
    runs("rm -rf q; " TRAIN "--steps 2 --checkpoint q --json");
    double before = number_of("test_loss");
    runs("cotangent predict r t.txt --json");
    double after = number_of("loss");
    assert_true(before > 2.5 && before < 3.3); /* log 22 = 3.09: it knows nothing */
    assert_true(after < 1);
    assert_true(fabs(number_of("perplexity") - exp(after)) < 1e-9 * exp(after));
}

static void perplexity_is_the_mean_over_seeds(void **state) {
    (void)state;
    runs(TRAIN "--steps 2 --seeds 2 --json");
    double      mean = number_of("perplexity");
    const char *run = strstr(last.out, "\"runs\":[");
    assert_non_null(run);
    double each[2];
    for (int k = 0; k < 2; k++) {
        run = strstr(run, "\"test_loss\":") + strlen("\"test_loss\":");
        each[k] = exp(strtod(run, NULL));
    }
    assert_true(each[0] != each[1]);
    assert_true(fabs(mean - (each[0] + each[1]) / 2) < 1e-12 * mean);
    double losses = (log(each[0]) + log(each[1])) / 2;
    assert_true(fabs(number_of("test_loss_mean") - losses) < 1e-12 * losses);
    assert_true(number_of("test_loss_mean") == number_of("test_loss"));
}

/* Another seed ends 0.06 away; 16 bits do not matter beside that. A run with a scaled loss goes on
 * from its checkpoint with the scale that it had. */
static void sixteen_bits_reach_the_loss_of_f32(void **state) {
    (void)state;
    if (getenv("COT_TEST_SMALL")) skip(); /* it compares losses */
    static const char *const types[] = {"f32", "bf16", "f16"};
    double                   loss[3];
    char                     line[300];
    for (int k = 0; k < 3; k++) {
        snprintf(line, sizeof line, TRAIN "--steps 100 --json --precision %s --checkpoint p%d --every 50", types[k], k);
        runs(line);
        loss[k] = number_of("test_loss");
        assert_true(fabs(loss[k] - loss[0]) < 0.03);
    }
    assert_true(loss[1] != loss[0] && loss[2] != loss[0]);
    runs(TRAIN "--steps 100 --precision f16 --checkpoint q16 --every 50 && rm q16/model.safetensors "
               "q16/step-000000000100.safetensors && " TRAIN "--steps 100 --precision f16 --resume q16");
    runs("cmp q16/model.safetensors p2/model.safetensors");
    fails(TRAIN "--steps 2 --precision f8", 2, "--precision is \"f8\"; it is bf16, f16 or f32", "");
    fails("cotangent train gcn --quiet --precision bf16", 2,
          "--precision is for mnist and gpt; gcn has nothing that it would set", "");
}

static void a_limit_leaves_the_same_model(void **state) {
    (void)state;
    runs(TRAIN "--steps 10 --checkpoint whole && " TRAIN "--steps 10 --checkpoint less --memory 40% --json");
    assert_true(number_of("memory_peak") <= number_of("memory_limit"));
    runs("cmp whole/model.safetensors less/model.safetensors");
}

static void resumed_runs_end_the_same(void **state) {
    (void)state;
    runs("rm -rf q; mkdir q; cp r/step-000000000075.safetensors q");
    runs(TRAIN "--steps 150 --resume q");
    assert_non_null(strstr(last.err, "the run goes on after step 75"));
    runs("cmp r/model.safetensors q/model.safetensors");
    runs(TRAIN "--steps 150 --checkpoint other --seed 1");
    assert_int_not_equal(sh("cmp r/model.safetensors other/model.safetensors"), 0);
}

/* A run that began with a file's parameters, and its number of tokens, goes on without that file,
 * and not with it. */
static void a_run_begins_with_a_file_once(void **state) {
    (void)state;
    runs("for k in $(seq 400); do printf '\\001\\000\\003\\000'; done > few.bin");
    runs("cotangent train gpt --data few.bin " SMALL "--steps 4 --initial r/model.safetensors --checkpoint tuned "
         "--json");
    assert_non_null(strstr(last.out, "800 tokens of 21"));
    fails("cotangent train gpt --data few.bin " SMALL "--steps 6 --initial r/model.safetensors --resume tuned", 2,
          "--initial gives a run the parameters that it begins with, and the one in tuned has done 4 steps; leave it "
          "out", "");
    runs("cotangent train gpt --data few.bin " SMALL "--steps 6 --resume tuned --json");
    assert_non_null(strstr(last.out, "800 tokens of 21"));
    /* where there is nothing to go on with, it begins with the file */
    runs("cotangent train gpt --data few.bin " SMALL "--steps 4 --initial r/model.safetensors --resume anew");
    runs("cotangent train gpt --data few.bin " SMALL "--steps 6 --resume anew");
    runs("cmp anew/model.safetensors tuned/model.safetensors");
}

static void the_cache_changes_nothing(void **state) {
    enum { DRAWN = 90 }; /* beyond the context of 24, three times; or once */
    bool                     small = getenv("COT_TEST_SMALL");
    int64_t                  drawn = small ? 30 : DRAWN;
    static const gpt_drawing ways[] = {{1, 1, 0, false}, {0.7, 0.9, 5, false}, {0, 1, 0, false}};
    char                     path[200];
    failure                  f = {0};
    saved                    s;
    (void)state;
    snprintf(path, sizeof path, "%s/r", folder);
    assert_true(saved_open(&s, path, &f) && saved_gpt(&s, &f));
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        /* prompts may exceed the context */
        for (int64_t known = 1; known <= 50; known += small ? 28 : 7) {
            int64_t     ids[2][50 + DRAWN] = {{0}};
            gpt_drawing how                = ways[k];
            for (int64_t i = 0; i < known; i++) ids[0][i] = ids[1][i] = (3 * i + 1) % s.net.vocabulary;
            assert_true(gpt_draw(&s, &how, ids[0], known, drawn, &f));
            how.no_cache = true;
            assert_true(gpt_draw(&s, &how, ids[1], known, drawn, &f));
            assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
        }
    saved_close(&s);
}

static void sampling_follows_its_options(void **state) {
    (void)state;
    runs("cotangent sample r --prompt 'the c' --temperature 0 --length 40 > a");
    runs("cotangent sample r --prompt 'the c' --top-p 0.0001 --length 40 --seed 9 > b; cmp a b; cat a");
    assert_memory_equal(last.out, "the cat ", 8);
    assert_int_equal(strlen(last.out), 5 + 40 + 1);
    runs("cotangent sample r --prompt 'the ' --seed 3 > a; cotangent sample r --prompt 'the ' --seed 3 > b; cmp a b");
    assert_int_not_equal(sh("cotangent sample r --prompt 'the ' --seed 4 > b; cmp a b"), 0);
    prints_json("cotangent sample r --prompt 'the cat' --length 3 --json");
    assert_non_null(strstr(last.out, "\"text\":\"the cat"));
}

/* Tokens of two bytes, the lowest first: "ab" again and again is known after few steps. */
static void tokens_come_from_files(void **state) {
    (void)state;
    runs("for k in $(seq 400); do printf '\\001\\000\\003\\000'; done > t.bin");
    runs("cotangent train gpt --data t.bin " SMALL "--steps 100 --checkpoint bin --json");
    assert_true(number_of("test_loss") < 0.2);
    assert_non_null(strstr(last.out, "800 tokens of 4"));
    fails("cotangent sample bin", 3,
          "bin/model.safetensors has no characters, nor are vocab.json and merges.txt beside it; sample needs the text "
          "of "
          "each token",
          "");
    runs("mkdir -p pairs; printf '{\"a\":0,\"b\":1,\"ab\":2}' > pairs/vocab.json; printf '#version: 0.2\\na b\\n' > "
         "pairs/merges.txt; for k in $(seq 400); do printf abb; done > ab.txt");
    runs("cotangent train gpt --data ab.txt --tokenizer pairs " SMALL "--steps 100 --checkpoint withpairs --json");
    assert_non_null(strstr(last.out, "800 tokens of 3"));
    prints("cotangent sample withpairs --prompt ab --temperature 0 --length 3", "abbabb\n");
    fails("cotangent train gpt --data t.bin --tokenizer pairs " SMALL, 3,
          "[gpt] t.bin has the token 3, the tokenizer has 3; tokens are below that", "");
}

static void others_predict_too(void **state) {
    (void)state;
    runs("cotangent train gcn --quiet --checkpoint g --json");
    runs("cotangent predict g karate --json");
    assert_non_null(strstr(last.out, "\"model\":\"gcn\",\"classes\":[0,"));
    runs("cotangent predict g karate");
    assert_memory_equal(last.out, "   node   class   probability\n", 30);
    if (strlen(COT_SHARED_DATA) == 0 || sh("test -f %s/mnist/t10k-images-idx3-ubyte.gz", COT_SHARED_DATA) != 0) return;
    sh("cotangent train mnist --data %s/mnist --steps 30 --quiet --checkpoint m", COT_SHARED_DATA);
    assert_int_equal(last.status, 0);
    if (getenv("COT_TEST_SMALL")) /* the first 100 of 10000 */
        sh("{ printf '\\0\\0\\10\\3\\0\\0\\0\\144\\0\\0\\0\\34\\0\\0\\0\\34'; gzip -dc "
           "%s/mnist/t10k-images-idx3-ubyte.gz | tail -c +17 | head -c 78400; } > few; cotangent predict m few | "
           "head -3",
           COT_SHARED_DATA);
    else sh("cotangent predict m %s/mnist/t10k-images-idx3-ubyte.gz | head -3", COT_SHARED_DATA);
    assert_memory_equal(last.out, "picture   class   probability\n      0       7 ", 46);
    fails("cotangent predict m t.csv", 3, "[predict] cannot read t.csv: No such file or directory", "");
}

/* The next token of as many as the context, by C without the library and by sample. */
static void trained_networks_compile(void **state) {
    char path[200];
    (void)state;
    snprintf(path, sizeof path, "%s/main.c", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#include \"net.h\"\n"
          "#include <stdio.h>\n"
          "int main(void) {\n"
          "    static double w[NET_WORKSPACE / 8 + 1];\n"
          "    static float y[22];\n"
          "    static int64_t x[24];\n"
          "    int best = 0, one;\n"
          "    for (int k = 0; k < 24; x[k++] = one) if (scanf(\"%d\", &one) != 1) return 1;\n"
          "    if (net(x, y, w)) return 2;\n"
          "    for (int k = 1; k < 22; k++) if (y[k] > y[best]) best = k;\n"
          "    return printf(\"%d\", best) < 0;\n"
          "}\n", file);
    assert_int_equal(fclose(file), 0);
    runs("cotangent compile --model r -o net.c && gcc -O1 -std=gnu99 main.c net.c -lm -o net");
    for (int k = 0; k < 4; k++) {
        sh("cotangent sample r --prompt 'the cat 1%d0 sat on the m' --length 1 --temperature 0 --json |"
           " sed 's/.*\\[//; s/\\].*//' > ids; cut -d, -f25 ids; cut -d, -f1-24 ids | tr , ' ' | ./net", k);
        assert_int_equal(last.status, 0);
        char *end;
        long  ours = strtol(last.out, &end, 10);
        assert_true(end != last.out && *end == '\n');
        assert_int_equal(ours, strtol(end, NULL, 10));
    }
    fails("cotangent compile --model r x*y x=1", 2,
          "compile --model DIR writes the trained network or, with --training-step, the step that trains it; it takes "
          "-o, --libm and --json, no expression and no derivative", "");
    runs("rm -rf g3; cotangent train gcn --quiet --steps 2 --checkpoint g3");
    fails("cotangent compile --model g3", 3,
          "g3/model.safetensors is a model of gcn; compile --model takes mnist or gpt", "");
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    fails("cotangent train gpt", 2, "gpt needs --data FILE, a text or a .bin of tokens of two bytes", "");
    fails("cotangent train gpt --data t.txt --width 30 --heads 4", 2,
          "a width of 30 is not divided by 4 heads; each has as many numbers as the others", "");
    fails(
        "cotangent train gpt --data t.txt --context 1000", 3,
        "[gpt] t.txt has 8100 tokens, a window has 1001; the last tenth must hold one: give a longer text or a smaller "
        "--context",
        "");
    fails("cotangent sample nowhere", 3,
          "cannot read nowhere/model.safetensors: No such file or directory; `cotangent train MODEL --checkpoint DIR` "
          "writes one into DIR",
          "");
    fails("cotangent sample r --prompt ''", 2, "--prompt is empty; the model needs a token to go on from", "");
    fails("cotangent sample r --prompt '?'", 3, "[sample] no token stands for the text at byte 0", "");
    fails("cotangent sample", 2,
          "sample takes the folder of one model, which `cotangent train gpt --checkpoint DIR` writes", "");
    fails("cotangent predict r", 2,
          "predict takes the folder of a model and its input: pictures for mnist, a graph for gcn, a text for gpt", "");
    fails("printf t > one.txt; cotangent predict r one.txt", 3, "[predict] one.txt has 1 tokens; a loss needs two", "");
    runs("cotangent train gcn --quiet --steps 2 --checkpoint g2");
    fails("cotangent sample g2", 3, "g2/model.safetensors is a model of gcn; sample takes one of gpt", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_learns), cmocka_unit_test(perplexity_is_the_mean_over_seeds),
        cmocka_unit_test(sixteen_bits_reach_the_loss_of_f32),
        cmocka_unit_test(a_limit_leaves_the_same_model),
        cmocka_unit_test(resumed_runs_end_the_same), cmocka_unit_test(a_run_begins_with_a_file_once),
        cmocka_unit_test(the_cache_changes_nothing), cmocka_unit_test(sampling_follows_its_options),
        cmocka_unit_test(tokens_come_from_files),    cmocka_unit_test(others_predict_too),
        cmocka_unit_test(trained_networks_compile),  cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, begin, folder_remove);
}
