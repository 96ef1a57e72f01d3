/* Automatic differentiation from scratch: the program of docs/autodiff-from-scratch.md. */
#include <math.h>
#include <stdio.h>

typedef int var; /* a place on the tape */
enum { NONE = -1, CAPACITY = 10000 };

static struct node {
    int op;       /* which operation */
    var x, y;     /* its operands, or NONE */
    double value; /* what came out */
} tape[CAPACITY];
static int length;

static var push(int op, var x, var y, double value) {
    tape[length] = (struct node){op, x, y, value};
    return length++;
}

/* small letters are numbers, capitals are places on the tape: operands X and Y, result Z; G is what
 * comes in */
#define OPERATIONS                                                                                                     \
    /*     name  value   G times d/dX           G times d/dY */                                                        \
    UNARY (Neg,  -x,     Neg(G))                                                                                       \
    UNARY (Sin,  sin(x), Mul(G, Cos(X)))                                                                               \
    UNARY (Cos,  cos(x), Neg(Mul(G, Sin(X))))                                                                          \
    UNARY (Exp,  exp(x), Mul(G, Z))                                                                                    \
    UNARY (Log,  log(x), Div(G, X))                                                                                    \
    BINARY(Add,  x + y,  G,                     G)                                                                     \
    BINARY(Mul,  x * y,  Mul(G, Y),             Mul(G, X))                                                             \
    BINARY(Div,  x / y,  Div(G, Y),             Neg(Div(Mul(G, Z), Y)))

#define UNARY(name, value, dx)      OP_##name,
#define BINARY(name, value, dx, dy) OP_##name,
enum { OP_LEAF, OPERATIONS };
#undef UNARY
#undef BINARY

#define UNARY(name, value, dx)      #name,
#define BINARY(name, value, dx, dy) #name,
static const char *const op_name[] = {"leaf", OPERATIONS};
#undef UNARY
#undef BINARY

static var leaf(double value) { return push(OP_LEAF, NONE, NONE, value); }

#define UNARY(name, formula, dx)                                                                                       \
    static var name(var X) {                                                                                           \
        double x = tape[X].value;                                                                                      \
        return push(OP_##name, X, NONE, formula);                                                                      \
    }
#define BINARY(name, formula, dx, dy)                                                                                  \
    static var name(var X, var Y) {                                                                                    \
        double x = tape[X].value, y = tape[Y].value;                                                                   \
        return push(OP_##name, X, Y, formula);                                                                         \
    }
OPERATIONS
#undef UNARY
#undef BINARY

static var partial(var Z, int operand, var G) {
    var X = tape[Z].x, Y = tape[Z].y;
    switch (tape[Z].op) {
#define UNARY(name, value, dx)      case OP_##name: return dx;
#define BINARY(name, value, dx, dy) case OP_##name: return operand == 0 ? dx : dy;
        OPERATIONS
#undef UNARY
#undef BINARY
    }
    return NONE;
}

/* NONE is a zero not written */
static var plus(var a, var b) { return a == NONE ? b : b == NONE ? a : Add(a, b); }

/* bar[v] becomes df/dv for every v up to f, as a place on the tape; NONE where f does not depend on
 * v */
static void reverse_sweep(var f, var bar[]) {
    for (var v = 0; v <= f; v++) bar[v] = NONE;
    bar[f] = leaf(1);
    for (var z = f; z >= 0; z--) {
        var x = tape[z].x, y = tape[z].y;
        if (bar[z] == NONE) continue;
        if (x != NONE) bar[x] = plus(bar[x], partial(z, 0, bar[z]));
        if (y != NONE) bar[y] = plus(bar[y], partial(z, 1, bar[z]));
    }
}

/* dot[v] becomes the tangent of every v up to f when x moves with speed 1 and the other leaves
 * rest */
static void forward_sweep(var x, var f, var dot[]) {
    for (var z = 0; z <= f; z++) {
        var a = tape[z].x, b = tape[z].y;
        dot[z] = z == x ? leaf(1) : NONE;
        if (a != NONE && dot[a] != NONE) dot[z] = plus(dot[z], partial(z, 0, dot[a]));
        if (b != NONE && dot[b] != NONE) dot[z] = plus(dot[z], partial(z, 1, dot[b]));
    }
}

static var d_reverse(var f, var x) {
    static var bar[CAPACITY];
    reverse_sweep(f, bar);
    return x <= f && bar[x] != NONE ? bar[x] : leaf(0);
}

static var d_forward(var f, var x) {
    static var dot[CAPACITY];
    forward_sweep(x, f, dot);
    return dot[f] != NONE ? dot[f] : leaf(0);
}

static void show(const char *what, var v) { printf("%-36s % .6f\n", what, tape[v].value); }

int main(void) {
    var x1 = leaf(2), x2 = leaf(3);
    /* a name of its own: C may evaluate the arguments of Add in either order */
    var product = Mul(x1, x2);
    var f = Add(product, Sin(x1));
    for (var v = 0; v < length; v++) {
        printf("%%%d  %-4s", v, op_name[tape[v].op]);
        printf(tape[v].x != NONE ? " %%%d" : "   ", tape[v].x);
        printf(tape[v].y != NONE ? " %%%d" : "   ", tape[v].y);
        printf("  %g\n", tape[v].value);
    }

    var f1 = d_reverse(f, x1);
    show("df/dx1, reverse", f1);
    show("df/dx1, forward", d_forward(f, x1));
    show("  x2 + cos(x1)", Add(x2, Cos(x1)));
    show("df/dx2, reverse", d_reverse(f, x2));

    show("d2f/dx1 dx1, reverse over reverse", d_reverse(f1, x1));
    show("d2f/dx1 dx1, forward over reverse", d_forward(f1, x1));
    show("  -sin(x1)", Neg(Sin(x1)));
    show("d2f/dx1 dx2, forward over reverse", d_forward(f1, x2));

    var g = Exp(Div(Log(x1), x2)); /* the cube root of x1, here at 2 */
    for (int order = 1; order <= 4; order++) {
        g = order % 2 ? d_reverse(g, x1) : d_forward(g, x1);
        printf("order %d of x1^(1/x2) by x1 %*s % .6f\n", order, 8, "", tape[g].value);
    }
    printf("%d lines on the tape\n", length);
    return 0;
}
