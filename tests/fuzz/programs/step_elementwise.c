/* step_elementwise.c: every operation of rules.def, on values that broadcast, on numbers, and
 * casts. */
#include "program.h"

typedef cot_var (*one)(cot_var);
typedef cot_var (*two)(cot_var, cot_var);
typedef cot_var (*three)(cot_var, cot_var, cot_var);

static const struct unary {
    const char *name;
    one         f;
    double      lo, hi;
} unary[] = {
#define UNARY(name, class, value, dx, lo, hi) {"cot_" #name, cot_##name, lo, hi},
#define BINARY(name, class, value, dx, dy, lo, hi)
#define TERNARY(name, class, value, dx, dy, dw, lo, hi)
#include "rules/rules.def"
};
static const struct binary {
    const char *name;
    two         f;
} binary[] = {
#define UNARY(name, class, value, dx, lo, hi)
#define BINARY(name, class, value, dx, dy, lo, hi) {"cot_" #name, cot_##name},
#define TERNARY(name, class, value, dx, dy, dw, lo, hi)
#include "rules/rules.def"
};
static const struct ternary {
    const char *name;
    three       f;
} ternary[] = {
#define UNARY(name, class, value, dx, lo, hi)
#define BINARY(name, class, value, dx, dy, lo, hi)
#define TERNARY(name, class, value, dx, dy, dw, lo, hi) {"cot_" #name, cot_##name},
#include "rules/rules.def"
};
#define COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

/* Half of the time x is brought into the domain first, or most programs would end in NaN. */
STEP_FUNCTION(unary) {
    const struct unary *op = &unary[choose(c, COUNT(unary))];
    value               x  = any_of(f, c);
    if (x.name < 0) return;
    if (chance(c, 2) && is_float(x, no_value)) {
        say(f, "cot_add(cot_mul(cot_sigmoid(%s), %g), %g)", name_of(x), op->hi - op->lo, op->lo);
        x = put(f, cot_add(cot_mul(cot_sigmoid(x.var), cot_number(op->hi - op->lo)), cot_number(op->lo)));
        if (x.name < 0) return;
    }
    say(f, "%s(%s)", op->name, name_of(x));
    put(f, op->f(x.var));
}

STEP_FUNCTION(binary) {
    const struct binary *op = &binary[chance(c, 2) ? choose(c, 4) : choose(c, COUNT(binary))];
    value                x = any_of(f, c), y = pick(f, c, broadcasts, x);
    if (x.name < 0 || y.name < 0) return;
    if (chance(c, 2)) {
        value swap = x;
        x = y, y = swap;
    }
    say(f, "%s(%s, %s)", op->name, name_of(x), name_of(y));
    put(f, op->f(x.var, y.var));
}

STEP_FUNCTION(binary_number) {
    const struct binary *op    = &binary[chance(c, 2) ? choose(c, 4) : choose(c, COUNT(binary))];
    value                x     = any_of(f, c);
    bool                 whole = chance(c, 4), first = chance(c, 2);
    double               n = choose_number(f, c);
    cot_var              y = whole ? cot_integer((int64_t)choose(c, 5) - 2) : cot_number(n);
    if (x.name < 0) return;
    const char *text = whole ? number_text((double)(int64_t)y.id) : number_text(n);
    if (first)
        say(f, "%s(%s, %s)", op->name, text, name_of(x));
    else
        say(f, "%s(%s, %s)", op->name, name_of(x), text);
    put(f, first ? op->f(y, x.var) : op->f(x.var, y));
}

STEP_FUNCTION(ternary) {
    const struct ternary *op = &ternary[choose(c, COUNT(ternary))];
    value x = any_of(f, c), y = pick(f, c, broadcasts, x), w = pick(f, c, is_alike, chance(c, 2) ? x : y);
    if (x.name < 0 || y.name < 0 || w.name < 0) return;
    say(f, "%s(%s, %s, %s)", op->name, name_of(x), name_of(y), name_of(w));
    put(f, op->f(x.var, y.var, w.var));
}

STEP_FUNCTION(cast) {
    value     x = any_of(f, c);
    cot_dtype d = f->run->flags & MIXED ? choose_dtype(c) : chance(c, 3) ? COT_BOOL : chance(c, 2) ? COT_I64 : COT_F64;
    if (x.name < 0) return;
    say(f, "cot_cast(%s, %s)", name_of(x), cot_dtype_name(d));
    put(f, cot_cast(x.var, d));
}
