/* A graph convolutional network on Zachary's karate club.
 *
 * In 1977 W. Zachary described a karate club of 34 members whose instructor (member 1) and
 * administrator (member 34) fell out; the club split in two. From who met whom outside the club, a
 * two-layer network can tell who went with whom, knowing only the two:
 *
 *     P = softmax(Â relu(Â X W1) W2)        Â = D^-½ (A + I) D^-½
 *
 * where A has the friendships, D the degrees, and X, the unit matrix, tells the members apart.
 *
 * Â is sparse, a cot_csr: of its 34 × 34 places 190 have an entry. First the network as a tape, its
 * gradients checked against formulas derived by hand; then training. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

#include "../models/karate.h"

enum { N = KARATE_NODES, EDGES = KARATE_EDGES, HIDDEN = 8, SIDES = 2, STEPS = 100 };

static double A[N * N], X[N * N], W1[N * HIDDEN], W2[HIDDEN * SIDES]; /* A holds Â */

static void prepare(void) {
    double degree[N];
    for (int i = 0; i < N; i++) X[i * N + i] = A[i * N + i] = degree[i] = 1;
    for (int e = 0; e < EDGES; e++) {
        int i = karate_friends[e][0] - 1, j = karate_friends[e][1] - 1;
        A[i * N + j] = A[j * N + i] = 1;
        degree[i]++;
        degree[j]++;
    }
    for (int i = 0; i < N * N; i++) A[i] /= sqrt(degree[i / N] * degree[i % N]);
    /* numbers without a pattern */
    for (int i = 0; i < N * HIDDEN; i++) W1[i] = 0.5 * sin(1.0 + i * i);
    for (int i = 0; i < HIDDEN * SIDES; i++) W2[i] = 0.5 * cos(2.0 + i * i);
}

/* ==== The network on a tape
 * ====================================================================================== */

typedef struct model {
    cot_var X, W1, W2, labels;
    cot_csr A;
} model;

static model create_model(cot_tape *t) {
    model   m;
    int64_t from[EDGES], to[EDGES];
    int     side[N];
    for (int i = 0; i < N; i++) side[i] = karate_side[i];
    for (int e = 0; e < EDGES; e++) from[e] = karate_friends[e][0] - 1, to[e] = karate_friends[e][1] - 1;
    m.X      = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(N, N), X), "X");
    m.W1     = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(N, HIDDEN), W1), "W1");
    m.W2     = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(HIDDEN, SIDES), W2), "W2");
    m.A      = cot_csr_gcn(t, COT_F64, N, EDGES, from, to);
    cot_name(m.A.values, "Â");
    cot_name(m.A.pattern, "edges");
    m.labels = cot_name(cot_data(t, COT_I32, COT_SHAPE(N), side), "labels");
    return m;
}

/* (34, 2): before the softmax */
static cot_var logits_of(const model *m) {
    cot_var ax = cot_name(cot_csr_matmul(m->A, m->X), "ÂX");
    cot_var h  = cot_name(cot_relu(cot_name(cot_matmul(ax, m->W1), "ÂXW1")), "h");
    cot_var ah = cot_name(cot_csr_matmul(m->A, h), "Âh");
    return cot_name(cot_matmul(ah, m->W2), "logits");
}

/* ==== The same by hand
 * =========================================================================================== */

/* out (n, m) = a (n, k) · b (k, m); a_t, b_t: the matrix is stored transposed */
static void multiply(int n, int k, int m, const double *a, bool a_t, const double *b, bool b_t, double *out) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (a_t ? a[l * n + i] : a[i * k + l]) * (b_t ? b[j * k + l] : b[l * m + j]);
            out[i * m + j] = sum;
        }
}

static struct { double loss, dX[N * N], dW1[N * HIDDEN], dW2[HIDDEN * SIDES]; } hand;

static void by_hand(void) {
    static double ax[N * N], z[N * HIDDEN], h[N * HIDDEN], ah[N * HIDDEN], delta[N * SIDES], dah[N * HIDDEN],
        dz[N * HIDDEN], dax[N * N];
    multiply(N, N, N, A, false, X, false, ax);
    multiply(N, N, HIDDEN, ax, false, W1, false, z);
    for (int i = 0; i < N * HIDDEN; i++) h[i] = fmax(z[i], 0);
    multiply(N, N, HIDDEN, A, false, h, false, ah);
    multiply(N, HIDDEN, SIDES, ah, false, W2, false, delta);
    for (int i = 0; i < N; i++) { /* δ = (p - onehot) / n, the adjoint of the logits */
        double *d = delta + i * SIDES, e0 = exp(d[0]), e1 = exp(d[1]);
        double  p[SIDES] = {e0 / (e0 + e1), e1 / (e0 + e1)};
        hand.loss -= log(p[karate_side[i]]) / N;
        for (int c = 0; c < SIDES; c++) d[c] = (p[c] - (c == karate_side[i])) / N;
    }
    multiply(HIDDEN, N, SIDES, ah, true, delta, false, hand.dW2); /* dW2 = (Âh)ᵀ δ */
    multiply(N, SIDES, HIDDEN, delta, false, W2, true, dah);
    /* dz = Âᵀ δ W2ᵀ where the ReLU was open, else 0 */
    multiply(N, N, HIDDEN, A, true, dah, false, dz);
    for (int i = 0; i < N * HIDDEN; i++) dz[i] = z[i] > 0 ? dz[i] : 0;
    multiply(N, N, HIDDEN, ax, true, dz, false, hand.dW1); /* dW1 = (ÂX)ᵀ dz */
    multiply(N, HIDDEN, N, dz, false, W1, true, dax);
    multiply(N, N, N, A, true, dax, false, hand.dX); /* dX = Âᵀ dz W1ᵀ */
}

static int compare(const char *name, cot_var x, const double *want) {
    static double got[N * N];
    cot_shape     s     = cot_shape_of(x);
    double        worst = 0, norm = 0;
    cot_read_grad(x, got, s.dim[0] * s.dim[1]);
    for (int i = 0; i < s.dim[0] * s.dim[1]; i++) {
        worst = fmax(worst, fabs(got[i] - want[i]));
        norm  = hypot(norm, got[i]);
    }
    bool agree = worst <= 1e-12 && norm > 0;
    printf("  dL/d%-2s (%2d,%2d)  norm %.4f  %s\n", name, (int)s.dim[0], (int)s.dim[1], norm,
           agree ? "agrees with the formula to 1e-12" : "DIFFERS from the formula");
    return !agree;
}

static int compare_all(const model *m, cot_var loss) {
    bool agree = fabs(cot_value(loss) - hand.loss) <= 1e-12;
    printf("  loss %.4f  %s\n", cot_value(loss),
           agree ? "agrees with the formula to 1e-12" : "DIFFERS from the formula");
    int wrong = !agree;
    wrong |= compare("W1", m->W1, hand.dW1);
    wrong |= compare("W2", m->W2, hand.dW2);
    wrong |= compare("X", m->X, hand.dX);
    return wrong;
}

/* ==== Training
 *
 *
 * ============================================================================================== */

/* One character for each member: o with the instructor, # with the administrator. Returns how many
 * are placed right. */
static int place(cot_var logits, char picture[N + 1]) {
    double score[N * SIDES];
    int    right = 0;
    cot_read(logits, score, N * SIDES);
    for (int i = 0; i < N; i++) {
        int choice = score[i * SIDES + 1] > score[i * SIDES];
        picture[i] = choice ? '#' : 'o';
        right += choice == karate_side[i];
    }
    picture[N] = '\0';
    return right;
}

/* Learns from the two whose sides are known, the others get theirs through the graph. */
static int train(cot_tape *t, const model *m) {
    const int64_t two[2]      = {0, N - 1};
    cot_var       known       = cot_data(t, COT_I64, COT_SHAPE(2), two);
    cot_var       known_sides = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){0, 1});
    cot_var       weights[2]  = {m->W1, m->W2};
    char          picture[N + 1];
    int           right = 0;
    cot_mark      mark  = cot_tape_mark(t);
    printf("\nTraining with two labels: member 1 is the instructor (o), member 34 the administrator (#)\n\n");
    printf("  step    loss   right   members 1 to 34\n");
    for (int step = 0; step <= STEPS; step++) {
        cot_var logits = logits_of(m);
        cot_var loss   = cot_softmax_cross_entropy(cot_take(logits, known, 0), known_sides);
        cot_backward(loss);
        if (step % 10 == 0) {
            right = place(logits, picture);
            printf("  %4d  %.4f   %2d/%d   %s\n", step, cot_value(loss), right, N, picture);
        }
        cot_sgd_step(2, weights, 0.5);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    printf("  in fact                ");
    for (int i = 0; i < N; i++) putchar(karate_side[i] ? '#' : 'o');
    printf("\n");
    for (int i = 0; i < N; i++)
        if ((picture[i] == '#') != karate_side[i])
            printf("  member %d is placed wrong, as in Zachary's own prediction\n", i + 1);
    return right != 33 || picture[8] != '#';
}

int main(void) {
    prepare();
    by_hand();
    cot_tape *t    = cot_tape_create(NULL);
    model     m    = create_model(t);
    cot_mark  mark = cot_tape_mark(t);

    printf("Zachary's karate club: %d members, %d friendships. The network as a tape:\n\n", N, EDGES);
    cot_var p    = cot_name(cot_softmax(logits_of(&m), -1), "P");
    cot_var loss = cot_name(cot_cross_entropy(p, m.labels), "loss");
    cot_backward(loss);
    cot_tape_print(t, stdout);
    printf("\nIts gradients\n");
    int wrong = compare_all(&m, loss);
    cot_tape_rewind(t, mark);
    cot_tape_zero_grads(t);

    /* The two last operations as one: shorter, and safe where softmax underflows to 0 and its
     * logarithm is infinite. */
    loss = cot_softmax_cross_entropy(logits_of(&m), m.labels);
    cot_backward(loss);
    printf("\nThe same with softmax and cross-entropy fused into one operation\n");
    wrong |= compare_all(&m, loss);
    cot_tape_rewind(t, mark);
    cot_tape_zero_grads(t);

    wrong |= train(t, &m);
    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
