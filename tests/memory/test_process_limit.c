/* ctest: plain-only */
/* In a process that may have little memory (setrlimit), a net trains under a memory limit, with the
 * same gradients, and without one it finds no memory. (Sanitizers need addresses themselves.) */
#include "memory/memory.h"
#include "support/tape_test.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Activations of 256 to 448 KiB, two for each layer. The process may have little more than the
 * limit: what is given back must go to the system, whatever its size. */
enum { BATCH = 1024, WIDTH = 64, LAYERS = 64, LIMIT = 6 << 20, PROCESS = LIMIT + (3 << 20) };

typedef struct outcome {
    cot_status status;
    float      grad[WIDTH * WIDTH];
} outcome;

static void train(int64_t limit, const char *spill, outcome *o) {
    static float start[WIDTH * WIDTH], x[BATCH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++) start[i] = (float)((i * 7919) % 1009 - 504) / 504 / 8;
    for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)(i % 997) / 997;
    cot_set_threads(1);
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit, .spill = spill});
    cot_var   w = cot_tensor(t, COT_F32, COT_SHAPE(WIDTH, WIDTH), start);
    for (int step = 0; step < 2; step++) {
        cot_mark mark = cot_tape_mark(t);
        cot_var  h = cot_data(t, COT_F32, COT_SHAPE(BATCH, WIDTH), x);
        for (int i = 0; i < LAYERS; i++) {
            cot_var more = cot_slice(w, 1, 0, 16 * (i % 4), 1);
            h = cot_tanh(cot_matmul(h, i % 4 ? cot_concat(2, (cot_var[]){w, more}, 1) : w));
            if (i % 4) h = cot_slice(h, 1, 16 * (i % 4), COT_END, 1);
        }
        cot_backward(cot_mean(cot_square(h), COT_ALL));
        if ((o->status = cot_tape_status(t)) != COT_OK) break;
        cot_sgd_step(1, &w, 0.1);
        if (step == 0) cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    double *grad = malloc(WIDTH * WIDTH * sizeof *grad);
    if (grad) cot_read_grad(w, grad, WIDTH * WIDTH);
    for (int i = 0; grad && i < WIDTH * WIDTH; i++) o->grad[i] = (float)grad[i];
    free(grad);
    cot_tape_destroy(t);
}

/* Addresses that the process has now, in bytes. */
static size_t addresses(void) {
    unsigned long pages = 0;
    FILE         *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The same in a process of its own, with PROCESS bytes more than it begins with. */
static void train_confined(int64_t limit, const char *spill, outcome *o) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static outcome mine;
        struct rlimit  most = {addresses() + PROCESS, addresses() + PROCESS};
        if (setrlimit(RLIMIT_AS, &most)) _exit(1);
        train(limit, spill, &mine);
        _exit(write(pipes[1], &mine, sizeof mine) == sizeof mine ? 0 : 2);
    }
    int status = -1;
    close(pipes[1]);
    assert_int_equal(read(pipes[0], o, sizeof *o), sizeof *o);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_limit_makes_a_small_process_enough(void **state) {
    (void)state;
    static outcome unlimited, limited, spilled, whole;
    train_confined(0, NULL, &unlimited); /* before this process has threads */
    train_confined(LIMIT, NULL, &limited);
    train_confined(LIMIT, "/tmp", &spilled);
    train(0, NULL, &whole);
    assert_int_equal(whole.status, COT_OK);
    assert_int_equal(unlimited.status, COT_MEMORY);
    assert_int_equal(limited.status, COT_OK);
    assert_memory_equal(limited.grad, whole.grad, sizeof whole.grad);
    assert_int_equal(spilled.status, COT_OK);
    assert_memory_equal(spilled.grad, whole.grad, sizeof whole.grad);
}

/* The flags that the system has for the mapping of an address: "rd wr mr …". */
static void flags_of(const void *p, char *flags, size_t size) {
    char          line[512];
    bool          inside = false;
    unsigned long from, to;
    FILE         *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    *flags = 0;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = from <= (uintptr_t)p && (uintptr_t)p < to;
        else if (inside && !strncmp(line, "VmFlags:", 8)) snprintf(flags, size, "%s", line);
    }
    fclose(f);
}

/* The system may refuse what it does not have, and does not end the process later ("nr": memory is
 * not reserved). */
static void memory_to_compute_in_is_promised(void **state) {
    (void)state;
    char      flags[512];
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 1 << 24});
    cot_var   x = cot_tensor(t, COT_F32, COT_SHAPE(512, 512), NULL);
    flags_of(t->nodes[cot__index(x)].value.tensor->storage->data, flags, sizeof flags);
    assert_non_null(strstr(flags, " wr "));
    assert_null(strstr(flags, " nr "));
    cot_tape_destroy(t);
}

/* Where the process can have no more mappings, none can be cut in two. Ends with 0 if the memory
 * of a block in the middle went, though its addresses did not. */
static void give_back_in_the_middle(void) {
    enum { BLOCK = 1 << 20, PAGE = 1 << 16, MAPPINGS = 1 << 20 };
    char *block[3];
    for (int k = 0; k < 3; k++) {
        block[k] = cot__pages(NULL, NULL, 0, BLOCK);
        memset(block[k], 1, BLOCK);
    }
    for (int k = 0, well = 1; well && k < MAPPINGS; k++)
        well = mmap(NULL, PAGE, k % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    bool joined = block[0] - block[1] == BLOCK && block[1] - block[2] == BLOCK;
    cot__pages(NULL, block[1], BLOCK, 0);
    if (!joined || msync(block[1], PAGE, MS_ASYNC) != 0) _exit(0); /* it could be cut out */
    _exit(block[1][0] == 0 && block[1][BLOCK - 1] == 0 && block[0][0] == 1 && block[2][0] == 1 ? 0 : 1);
}
static void memory_goes_back_where_addresses_cannot(void **state) {
    (void)state;
    int   status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) give_back_in_the_middle();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_limit_makes_a_small_process_enough),
                                       cmocka_unit_test(memory_to_compute_in_is_promised),
                                       cmocka_unit_test(memory_goes_back_where_addresses_cannot)};
    return cmocka_run_group_tests_name("process_limit", tests, NULL, NULL);
}
