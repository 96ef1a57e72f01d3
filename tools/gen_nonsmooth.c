/* gen_nonsmooth: prints docs/nonsmooth.md from kinks.def. The derivatives in it are not copied from
 * the table: the library takes them. A test compares the output with the checked-in page. */
#include "base/text.h"
#include "ops/elementwise/elementwise.h"
#include "rules/kinks.h"

static void number(double v) {
    char      buf[64];
    cot__text x = cot__text_buffer(buf, sizeof buf);
    cot__put_number(&x, v + 0.0); /* no -0 */
    fputs(buf, stdout);
}

static void numbers(int n, const double *v) {
    for (int i = 0; i < n; i++) {
        if (i) fputs(", ", stdout);
        number(v[i]);
    }
}

/* A pipe would end the cell. */
static void cell(const char *s) {
    for (; *s; s++) printf(*s == '|' ? "\\%c" : "%c", *s);
}

static int print_elementwise(const cot__kink *k) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3];
    char      text[COT__FORMULA_TEXT];
    int       arity = cot__elementwise_arity(k->op);
    double    partial[3];
    for (int i = 0; i < arity; i++) xs[i] = cot_scalar(t, k->point[i]);
    cot_var y = cot__elementwise(k->op, arity, xs);
    if (cot_requires_grad(y)) cot_backward(y);
    for (int i = 0; i < arity; i++) partial[i] = cot_grad_value(xs[i]);
    printf("| `%s` | ", cot__elementwise_table[k->op].name);
    cell(cot__formula(k->op, k->condition, text, sizeof text));
    printf(" | %s | ", k->convention);
    numbers(arity, k->point);
    fputs(" | ", stdout);
    numbers(arity, partial);
    puts(" |");
    int failed = cot_tape_status(t) != COT_OK;
    cot_tape_destroy(t);
    return failed;
}

static int print_array(const char *call, const char *condition, const char *convention, int n, const double *at,
                       cot_var (*f)(cot_var)) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(n), at);
    double    gradient[8] = {0};
    cot_backward(f(x));
    cot_read_grad(x, gradient, n);
    printf("| `%s` | %s | %s | ", call, condition, convention);
    numbers(n, at);
    fputs(" | ", stdout);
    numbers(n, gradient);
    puts(" |");
    int failed = cot_tape_status(t) != COT_OK;
    cot_tape_destroy(t);
    return failed;
}

#define LIST(...) {__VA_ARGS__}
#define KINK(...)
#define KINK_OF(id, op, condition, convention, call, n, at, gradient)                                                  \
    static cot_var      f_##id(cot_var x) { return call; }                                                             \
    static const double at_##id[] = LIST at;
#include "rules/kinks.def"

int main(void) {
    int failed = 0;
    puts("# Where there is no derivative\n\n"
         "Some operations have points without a derivative: corners, jumps, poles. A program still needs an answer "
         "there, and it should\n"
         "be the same every time. This is what Cotangent takes. `cot_report(y, …)` lists the operations behind a value "
         "that sit\n"
         "exactly on such a point; a tape made with `.smooth = true` refuses to differentiate there.\n\n"
         "These are first derivatives. A second derivative at such a point is what differentiating the rule gives, and "
         "may be infinite or NaN.\n\n"
         "The last column is not written by hand: it is the gradient the library gives at the point beside it, for the "
         "operands in\n"
         "order. The page is printed by `tools/gen_nonsmooth.c` from `src/rules/kinks.def`; a test fails when it is "
         "stale.\n\n"
         "| operation | where | taken as the derivative | for example at | gives |\n"
         "| --- | --- | --- | --- | --- |");
    for (int i = 0; i < KINK_count; i++) failed |= print_elementwise(&cot__kinks[i]);
#define KINK(...)
#define KINK_OF(id, op, condition, convention, call, n, at, gradient)                                                  \
    failed |= print_array(#call, condition, convention, n, at_##id, f_##id);
#include "rules/kinks.def"
    puts("\nIn the rules of elementwise operations a zero wins over anything, also over an infinite or NaN partial: "
         "where an adjoint is 0,\n"
         "its contribution is 0. So `where(x > 0, log(x), 0)` has a clean gradient at 0, and `cot_report` says where a "
         "zero won.\n"
         "Operations without any derivative (`sign`, `floor`, comparisons, `argmax`, …) let nothing through anywhere.");
    return failed;
}
