/* expressions.c: what docs/expressions.md tells at length. Functions are those of the library's
 * listing, by its families. */
#include "texts/expressions.h"

#include <string.h>

#include "expr/expr.h"
#include "trace/lines/grid.h"
#include "trace/lines/lines.h"
#include "trace/listing/listing.h"

static void head(FILE *out, bool colour, const char *text) {
    fprintf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

void values_help(FILE *out) {
    fputs("  x=2  x=pi/4  x=[1,2,3]       a constant expression\n"
          "  i=cast([0,2], i64)           integers and bools, which have no derivatives\n"
          "  W=@file.npy                  an array of NumPy's\n"
          "  W=@file.npz:key              one of several\n"
          "  A=@graph.npz                 a sparse matrix, as scipy.sparse.save_npz writes it\n"
          "  W=@file.safetensors:key      a tensor of a .safetensors file\n"
          "  W=uniform(7, [128, 784], 1)  numbers in -1 … 1, seed 7\n",
          out);
}

typedef struct topic {
    const char *what, *text;
} topic;

static const topic syntax[] = {
    {"numbers", "1  .5  1e-3  1_000  True  False  pi  e  inf  nan"},
    {"arithmetic", "+ - * /   // and % (rounding down)   ** (power; ^ is none)   @ (matrix product)"},
    {"comparison", "< <= > >= == !=, in chains: 0 < x < 1"},
    {"choice", "a if c else b (one of them is computed); where(c, a, b) (element by element; can be compiled)"},
    {"logic", "and or not on single numbers; logical_and(x, y) … on arrays"},
    {"calls", "sum(x, axis=0, keepdims=True): by position, then by name; `cotangent ops NAME` tells how"},
    {"arrays", "[1, 2, 3]  [[1, 2], [x, y]]: integers make i64, one float makes f64"},
    {"indexing", "x[0]  x[-1]  x[1:, ::2]  x[..., 0]  x[None]  x[[0, 2]]  x[i, j]  x[x > 0]"},
    {"attributes", "x.T  x.shape  x.ndim  x.size  x.dtype"},
    {"names", "h = tanh(x); h*h   a += 1: the last statement is the result"},
    {"several", "q, r = qr(A): also lu eigh svd slogdet split topk"},
    {"layout", "statements end with ; or a line; # begins a comment; in brackets a line goes on"},
    {"dtypes", "f64 f32 bf16 f16 i64 i32 u8 bool, or float64 …; numbers of the text take that of the array"},
};

static const topic sparse[] = {
    {"products", "A @ x  x @ A  A.T @ x  x @ A.T"},
    {"scaling, sums", "2*A  A/s  -A  sum(A)  sum(A, axis=1)  mean(A)  softmax(A)"},
    {"systems", "solve(A, b)"},
    {"parts", "A.T  A.shape  A.nnz  A.data (its entries, as an array)  to_dense(A)"},
};

static bool put_topics(FILE *out, int width, int n, const topic *topics) {
    cot__grid g = {.columns = 2, .column = {COT__LEFT, COT__WRAP}, .width = width};
    for (int k = 0; k < n; k++) {
        char what[32];
        snprintf(what, sizeof what, "  %s", topics[k].what);
        cot__grid_put(&g, NULL, what);
        cot__grid_put(&g, NULL, topics[k].text);
    }
    return cot__grid_print(out, &g);
}

/* The names of a family that expressions can call, after the entry i, which begins it. */
static void put_family(cot__grid *g, int i, const char *family) {
    char   names[2048] = "", title[64], call[512];
    size_t used = 0;
    for (int n = cot__listing_count(); i < n; i++) {
        cot__listing l;
        cot__listing_get(i, &l);
        if (strcmp(l.family, family) != 0) break;
        if (cot__expr_signature(l.name, call, sizeof call) && used + strlen(l.name) + 2 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "", l.name);
    }
    if (!used) return;
    snprintf(title, sizeof title, "  %s", family);
    cot__grid_put(g, NULL, title);
    cot__grid_put(g, NULL, names);
}

static bool put_functions(FILE *out, int width) {
    cot__grid   g = {.columns = 2, .column = {COT__LEFT, COT__WRAP}, .width = width};
    const char *family = "";
    for (int i = 0, n = cot__listing_count(); i < n; i++) {
        cot__listing l;
        cot__listing_get(i, &l);
        if (strcmp(l.family, family) == 0 || strcmp(l.family, "On the tape") == 0) continue;
        family = l.family;
        put_family(&g, i, family);
    }
    return cot__grid_print(out, &g);
}

bool expressions_help(FILE *out, int width, bool colour) {
    cot__paragraph(out, width, 0,
                   "Expressions are a part of Python's syntax with NumPy's names. Every operation is one of the "
                   "library, and is differentiated.");
    head(out, colour, "syntax");
    bool fine = put_topics(out, width, sizeof syntax / sizeof *syntax, syntax);
    head(out, colour, "functions");
    fine = fine && put_functions(out, width);
    cot__paragraph(out, width, 0,
                   "\nNumPy's other names are known too: var, power, clip, concatenate, arcsin, stop_gradient, …");
    head(out, colour, "values");
    values_help(out);
    head(out, colour, "sparse matrices, of A=@graph.npz");
    fine = fine && put_topics(out, width, sizeof sparse / sizeof *sparse, sparse);
    head(out, colour, "examples");
    fputs("  cotangent eval 'W @ x + b' W=[[1,2],[3,4]] x=[5,6] b=[1,1]\n"
          "  cotangent grad 'h = tanh(W @ x); sum(h**2)' W=[[1,2],[3,4]] x=[0.5,0.6]\n"
          "  cotangent eval 'sum(x[x > 0])' x=[-1,2,3]\n"
          "  cotangent eval -f model.txt W=@weights.npy      # the text from a file\n",
          out);
    return fine;
}
