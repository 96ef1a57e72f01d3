/* fuzz_command.c: any bytes as a command line, one argument on each line. The whole command runs in
 * this process, on streams in memory. It returns a documented exit status, a failure says why, the
 * output is UTF-8, and with --json it is one JSON object.
 *
 * Arguments that name files are left out (a slash, or an option that writes), and so is --step.
 * Memory is limited, since an expression may ask for any shape. */
#include "base/utf8.h"
#include "cotangent_command.h"

#include <cotangent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int         LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* For the sanitizer, where there is one. */
const char *__asan_default_options(void) {
    return "max_allocation_size_mb=64:allocator_may_return_null=1:detect_stack_use_after_return=0";
}

enum { MOST_ARGUMENTS = 24, MOST_BYTES = 2000 };

static void broken(const char *what, const char *out, const char *err) {
    fprintf(stdout, "fuzz_command: %s\n--- printed:\n%s\n--- errors:\n%s\n", what, out, err);
    fflush(stdout);
    abort();
}

static bool is_utf8(const char *s, size_t left) {
    for (size_t n; left > 0; s += n, left -= n)
        if ((n = cot__utf8(s, left)) == 0) return false;
    return true;
}

static bool is_left_out(const char *argument) {
    static const char *const starts[] = {"--step", "--html", "--dot", "--plot", "--svg", "--file", "-f", "/", "."};
    for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
        if (strncmp(argument, starts[k], strlen(starts[k])) == 0) return true;
    return strstr(argument, "=@") != NULL;
}

/* One gigabyte of memory, and nothing to read. Sanitizers reserve more address space than a
 * limit would let them. */
static void prepare(void) {
#ifndef COT_SANITIZED
    struct rlimit most = {UINT64_C(1) << 30, UINT64_C(1) << 30};
    setrlimit(RLIMIT_AS, &most);
#endif
    if (!freopen("/dev/null", "r", stdin)) abort();
    cot_set_threads(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool prepared;
    char        text[MOST_BYTES + 1], *argv[MOST_ARGUMENTS + 2] = {text + MOST_BYTES}, *printed = NULL, *errors = NULL;
    size_t      printed_size = 0, errors_size = 0;
    int         argc = 1;
    bool        json = false;
    if (size > MOST_BYTES) return 0;
    if (!prepared) prepare(), prepared = true;
    memcpy(text, data, size);
    text[size] = text[MOST_BYTES] = 0;
    for (char *next = text; next && argc <= MOST_ARGUMENTS;) {
        char *line = next;
        next       = strchr(line, '\n');
        if (next) *next++ = 0;
        if (is_left_out(line)) return 0;
        json         = json || strcmp(line, "--json") == 0;
        argv[argc++] = line;
    }
    FILE *usual[2] = {stdout, stderr}, *out = open_memstream(&printed, &printed_size),
         *err = open_memstream(&errors, &errors_size);
    if (!out || !err) abort();
    stdout = out, stderr = err;
    int status = cotangent_command(argc, argv);
    stdout = usual[0], stderr = usual[1];
    fclose(out);
    fclose(err);
    if (status < 0 || status > 3) broken("an exit status that is not documented", printed, errors);
    if (status > 1 && printed_size + errors_size == 0) broken("a failure without a word", printed, errors);
    if (!is_utf8(printed, printed_size) || !is_utf8(errors, errors_size))
        broken("text that is not UTF-8", printed, errors);
    if (json && status > 0 && printed_size > 0 && (printed[0] != '{' || printed[printed_size - 1] != '\n'))
        broken("no JSON object", printed, errors);
    free(printed);
    free(errors);
    return 0;
}
