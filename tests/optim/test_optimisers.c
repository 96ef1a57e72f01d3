/* Optimisers against PyTorch's numbers; the same bits in programs, after a checkpoint and at any
 * number of threads; gradients between backward and step; and what is refused.
 *
 * The reference numbers are those of torch 2.15 on the model below after 20 steps: loss = sum((2
 * tanh(x a + b) - y)²). */
#include "support/tape_test.h"
#include "base/poison.h"

enum { ROWS = 4, IN = 3, OUT = 2, NA = IN * OUT, ALL = NA + OUT, STEPS = 20 };

static const double given_x[ROWS * IN] = {0.5, -1, 2, 1.5, 0.25, -0.75, -2, 1, 0.5, 0.125, -0.5, 1.25};
static const double given_y[ROWS * OUT] = {1, -1, 0.5, 2, -1.5, 0.25, 0.75, -0.5};
static const double start_a[NA] = {0.5, -0.25, 1, 0.75, -0.5, 0.125}, start_b[OUT] = {0.1, -0.2};

static const cot_optim_group two[2] = {{1, 0.2}, {0.5, 0}}, others[2] = {{1, 0.1}, {0.5, 0}};
static const cot_schedule    warm = {.kind = COT_RATE_COSINE, .rate = 0.01, .warmup = 5, .start = 0.2, .steps = 15};

typedef struct sample {
    cot_optim_options o;
    double            clip;
    double            wide[ALL]; /* in f64, then in f32: weights, or their averages */
    float             narrow[ALL];
} sample;

static const sample samples[] = {
    {{.kind = COT_SGD, .rate = 0.02},
     0,
     {0.52367443242018241, 0.48269942882324768, 0.24626079634544482, 0.8327405822686329, 0.4264133063671392,
      -0.15411093236033169, -0.19738855277484521, 0.32168917246739948},
     {0.523674428f, 0.482699454f, 0.246260852f, 0.832740605f, 0.426413327f, -0.154110938f, -0.19738856f, 0.321689188f}},
    {{.kind = COT_SGD, .rate = 0.005, .momentum = 0.9, .decay = 0.1},
     0,
     {0.85176301490525708, 1.0985639999459269, -0.61219541266183941, 1.2574890657270432, 1.9443895298281493,
      -0.70420989082081797, 0.50550027818650101, 1.187852952125479},
     {0.851762772f, 1.09856391f, -0.612195313f, 1.25748897f, 1.94438922f, -0.704209685f, 0.505500019f, 1.18785274f}},
    {{.kind = COT_SGD, .rate = 0.005, .momentum = 0.9, .decay = 0.1, .nesterov = true},
     0,
     {0.64526927360296049, 0.87721718305033392, -0.288704238179115, 1.1268975301652657, 1.3059006703726392,
      -0.49537565962462093, 0.070140072948046736, 0.96293555023268984},
     {0.645269156f, 0.877217054f, -0.288704097f, 1.12689734f, 1.30590022f, -0.495375544f, 0.0701398924f,
      0.962935388f}},
    {{.kind = COT_RMSPROP, .rate = 0.01},
     0,
     {0.891294800910156, 0.20123595051747989, 0.49028352772827449, 0.38320011834707451, 0.058620184372907655,
      -0.30614541448233934, 0.43338938863250581, 0.29359535117561447},
     {0.891294777f, 0.201235935f, 0.490283489f, 0.383200079f, 0.0586201698f, -0.3061454f, 0.433389395f, 0.293595344f}},
    {{.kind = COT_RMSPROP, .rate = 0.01, .decay = 0.02, .momentum = 0.5, .centered = true, .alpha = 0.9, .eps = 1e-6},
     0,
     {0.92201938541402662, 0.20540173153603838, 0.49286963667364719, 0.38036663682550614, 0.039726263813039328,
      -0.31493152422941129, 0.48485681708101008, 0.31237689300425225},
     {0.922019362f, 0.205401704f, 0.492869556f, 0.380366594f, 0.0397262387f, -0.314931571f, 0.484856814f,
      0.312376916f}},
    {{.kind = COT_ADAM, .rate = 0.05, .decay = 0.1},
     0,
     {1.1107440631089576, 0.36704882483024276, 0.26465924814257535, 0.46281656982734537, 0.24210130103103897,
      -0.48229802633610053, 0.6468000220026271, 0.60745502091612869},
     {1.11074412f, 0.36704883f, 0.264659196f, 0.462816626f, 0.242101267f, -0.482297987f, 0.646799922f, 0.607455015f}},
    {{.kind = COT_ADAMW, .rate = 0.05, .decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
     0,
     {0.91358574899176825, 0.29520875875370611, 0.32605615259638188, 0.47640180622821537, 0.13087640395109204,
      -0.3917205120951911, 0.47908695920478539, 0.49978361409233613},
     {0.913585842f, 0.295208693f, 0.326056153f, 0.476401776f, 0.130876407f, -0.391720504f, 0.479087085f, 0.499783635f}},
    {{.kind = COT_ADAMW, .rate = 0.05, .groups = two, .group_count = 2},
     0,
     {0.90262675274595516, 0.33272222038636723, 0.14180571640610012, 0.56978367297607024, 0.28889602555067667,
      -0.21161919778530275, 0.38951157602580239, 0.26948318095014401},
     {0.902626753f, 0.332722217f, 0.141805768f, 0.569783688f, 0.288895965f, -0.211619213f, 0.389511555f,
      0.269483179f}},
    {{.kind = COT_SGD, .momentum = 0.9, .schedule = &warm, .groups = others, .group_count = 2},
     0,
     {1.4509597763752276, 2.4261128967761474, -1.2224266061724736, 1.0350192683437183, 2.6223403850861438,
      -0.79477897667922148, 0.43389353452967427, 0.92352486197395511},
     {1.45095921f, 2.42611194f, -1.22242618f, 1.03501928f, 2.62233973f, -0.794778645f, 0.433893532f, 0.923524678f}},
    {{.kind = COT_ADAM, .rate = 0.05, .average = 0.9},
     0,
     {0.95177693472379898, 0.20357033875275476, 0.48798303629643802, 0.42784198098881054, 0.017896267719359166,
      -0.32130965795534361, 0.47511750436236477, 0.31981182130159586},
     {0.951776743f, 0.203570366f, 0.48798278f, 0.427841902f, 0.0178962592f, -0.321309626f, 0.475117356f, 0.319811821f}},
    /* TensorFlow's place of eps; the numbers are NumPy's, from the formula of its documentation */
    {{.kind = COT_ADAM, .rate = 0.05, .decay = 0.1, .eps = 0.01, .eps_hat = true},
     0,
     {1.1174222689617685, 0.37475362255462447, 0.27436339899803375, 0.44614481080891311, 0.23192820022865465,
      -0.47160350842105503, 0.66072025164058057, 0.58852606348160064},
     {1.1174221f, 0.374753505f, 0.274363369f, 0.4461447f, 0.231928036f, -0.471603423f, 0.660720348f, 0.588525951f}},
    {{.kind = COT_ADAMW, .rate = 0.05, .decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .eps_hat = true},
     0,
     {0.91430248949106063, 0.29518106841252489, 0.3264096523038561, 0.4765282046027563, 0.13031542109661767,
      -0.39167557436596556, 0.47976257260583294, 0.49960252765460311},
     {0.914302528f, 0.295181096f, 0.326409638f, 0.476528257f, 0.130315349f, -0.391675651f, 0.479762733f, 0.499602616f}},
    {{.kind = COT_SGD, .rate = 0.1},
     0.5,
     {0.76447766371784021, 0.28560577647997226, 0.62205780614032791, 0.70577686891036251, 0.044417534106967235,
      -0.022186475731199567, 0.30951027327572256, 0.030123046093949966},
     {0.76447767f, 0.285605788f, 0.622057676f, 0.70577693f, 0.0444175899f, -0.0221864618f, 0.30951032f, 0.0301230494f}},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

/* ---- the model ------------------------------------------------------------------------------- */

typedef struct model {
    cot_tape   *t;
    cot_params *p;
    cot_var     x, y;
    cot_optim  *o;
    cot_mark    start;
    double      norm; /* that clipping saw last */
} model;

static cot_var line(cot_var x, cot_var a, cot_var b) { return cot_add(cot_matmul(x, a), b); }
static cot_var loss_of(cot_var z, cot_var y) {
    return cot_sum(cot_square(cot_sub(cot_mul(2.0, cot_tanh(z)), y)), COT_ALL);
}

static cot_var net(cot_params *p, cot_var x) {
    cot_var a = cot_nn_parameter(p, "a", COT_SHAPE(IN, OUT), x, (cot_init){0});
    return line(x, a, cot_nn_parameter(p, "b", COT_SHAPE(OUT), x, (cot_init){0}));
}

static model made_on(cot_tape *t, cot_dtype d, const cot_optim_options *o) {
    model m = {.t = t, .p = cot_params_create(t)};
    m.x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(ROWS, IN), given_x), d);
    m.y = cot_cast(cot_data(t, COT_F64, COT_SHAPE(ROWS, OUT), given_y), d);
    cot_params_init(m.p, net, m.x, cot_key_of(1));
    cot_assign(cot_params_get(m.p, "a"), cot_data(t, COT_F64, COT_SHAPE(IN, OUT), start_a));
    cot_assign(cot_params_get(m.p, "b"), cot_data(t, COT_F64, COT_SHAPE(OUT), start_b));
    cot_params_group(m.p, "b", 1);
    m.o = cot_optim_create(m.p, o);
    m.start = cot_tape_mark(t);
    return m;
}
static model made(cot_dtype d, const cot_optim_options *o) { return made_on(cot_tape_create(NULL), d, o); }

static void unmake(model *m) {
    cot_optim_destroy(m->o);
    cot_params_destroy(m->p);
    cot_tape_destroy(m->t);
}

static void learn(model *m, int steps, double clip) {
    for (int k = 0; k < steps; k++) {
        cot_backward(loss_of(net(m->p, m->x), m->y));
        if (clip > 0) m->norm = cot_clip_grad_norm(m->p, clip);
        assert_int_equal(cot_optim_step(m->o), COT_OK);
        cot_tape_zero_grads(m->t);
        cot_tape_rewind(m->t, m->start);
    }
}

static void read_weights(const model *m, cot_dtype d, void *out) {
    cot_read_as(cot_params_get(m->p, "a"), d, out, NA);
    cot_read_as(cot_params_get(m->p, "b"), d, (char *)out + NA * (d == COT_F64 ? 8 : 4), OUT);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void twenty_steps_are_those_of_torch(void **state) {
    (void)state;
    for (int k = 0; k < SAMPLES; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            model  m = made(narrow ? COT_F32 : COT_F64, &samples[k].o);
            double got[ALL];
            learn(&m, STEPS, samples[k].clip);
            if (samples[k].o.average != 0) assert_int_equal(cot_optim_swap(m.o), COT_OK);
            read_weights(&m, COT_F64, got);
            /* 20 steps of a few roundings each, in a problem that is well conditioned */
            for (int i = 0; i < ALL; i++)
                assert_near(got[i], narrow ? (double)samples[k].narrow[i] : samples[k].wide[i], narrow ? 4e-6 : 1e-14);
            if (samples[k].clip > 0) assert_near(m.norm, 14.259850415649483, narrow ? 1e-5 : 1e-14);
            assert_ok(m.t);
            unmake(&m);
        }
}

static void rates_are_those_of_torch(void **state) {
    (void)state;
    static const struct { cot_schedule s; int n; double want[13]; } rates[] = {
        {{.kind = COT_RATE_STAIRS, .rate = 0.1, .steps = 3, .factor = 0.5},
         12,
         {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125, 0.0125}},
        {{.kind = COT_RATE_COSINE, .rate = 0.1, .steps = 8, .end = 0.01},
         9,
         {0.10000000000000001, 0.096574578963007904, 0.08681980515339463, 0.072220754456429045, 0.055,
          0.037779245543570962, 0.023180194846605363, 0.013425421036992097, 0.01}},
        {{.rate = 0.1, .warmup = 4, .start = 0.25}, 7, {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1}},
        {{.kind = COT_RATE_LINEAR, .rate = 0.1, .steps = 5, .end = 0.02},
         7,
         {0.1, 0.084, 0.068, 0.052, 0.036, 0.02, 0.02}},
        {{.kind = COT_RATE_ONE_CYCLE, .rate = 0.1, .steps = 12},
         13,
         {0.0040000000000000036, 0.034978965421958302, 0.087928515912212873, 0.099441543545091188,
          0.093301296984141177, 0.081174565394976306, 0.064737899769510332, 0.046263710266697504, 0.028306099820869922,
          0.01334775301888306, 0.0034566987425395223, 4e-07, 4e-07}},
        {{.kind = COT_RATE_ONE_CYCLE, .rate = 0.1, .steps = 10, .rise = 0.4, .divide = 10, .divide_end = 100},
         10,
         {0.009999999999999995, 0.0325, 0.0775, 0.1, 0.09330796891903273, 0.075025, 0.05005, 0.025075,
          0.0067920310809672872, 0.0001}},
        /* a rise of a single step is at its top at once */
        {{.kind = COT_RATE_ONE_CYCLE, .rate = 0.1, .steps = 4, .rise = 0.25, .divide = 10, .divide_end = 100},
         4,
         {0.1, 0.075025, 0.025075, 0.0001}},
        {{.kind = COT_RATE_COSINE, .rate = 0.1, .steps = 6, .end = 0.02, .warmup = 3, .start = 0.2},
         10,
         {0.02, 0.046666666666666669, 0.073333333333333334, 0.1, 0.094641016151377558, 0.08, 0.06, 0.04,
          0.025358983848622452, 0.02}},
    };
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++)
        for (int i = 0; i < rates[k].n; i++)
            /* two units in the last place of 0.1 */
            assert_near(cot_schedule_rate(&rates[k].s, i), rates[k].want[i], 3e-17);
    const cot_schedule wrong[] = {{.rate = -1},
                                  {.rate = (double)NAN},
                                  {.kind = COT_RATE_COSINE, .rate = 1},
                                  {.rate = 1, .warmup = -1},
                                  {.kind = COT_RATE_ONE_CYCLE, .rate = 1, .steps = 9, .rise = 2},
                                  {.kind = (cot_schedule_kind)9, .rate = 1}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) assert_true(isnan(cot_schedule_rate(&wrong[k], 0)));
    assert_true(isnan(cot_schedule_rate(NULL, 0)) && isnan(cot_schedule_rate(&rates[0].s, -1)));
}

/* ---- bits ------------------------------------------------------------------------------------ */

typedef struct compiled_step { cot_optim_options o; int kept; } compiled_step;

/* xs: a, b, x, y */
static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = loss_of(line(xs[2], xs[0], xs[1]), xs[3]);
    return 0;
}
/* xs: the weights and what is kept beside them, rate, step, x, y */
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const compiled_step *c = user;
    const cot_var       *rest = xs + 2 * (1 + c->kept);
    cot_var              g[4];
    (void)n, (void)m;
    if (cot_value_and_grad(loss, NULL, 4, (cot_var[]){xs[0], xs[1], rest[2], rest[3]}, NULL, g) != COT_OK) return 1;
    return cot_optim_record(&c->o, rest[0], rest[1], 2, g, xs, (int[]){0, 1}, ys) != COT_OK;
}

static void programs_have_the_bits_of_steps(void **state) {
    (void)state;
    if (getenv("COT_TEST_BACKEND")) skip(); /* a program runs on arrays of the host */
    for (int k = 0; k < SAMPLES - 1; k++)   /* the last clips */
        for (int narrow = 0; narrow < 2; narrow++) {
            cot_dtype     d = narrow ? COT_F32 : COT_F64;
            model         m = made(d, &samples[k].o);
            compiled_step c = {samples[k].o, cot_optim_kept(&samples[k].o)};
            int           own = 2 * (1 + c.kept), donate[10];
            cot_type      types[14];
            char          memory[14][NA * 8] = {{0}}, want[ALL * 8];
            const void   *in[14];
            void         *out[10];
            double        rate;
            int64_t       count;
            assert_int_equal(cot_optim_states(m.o), 2 * c.kept);
            for (int i = 0; i < own; i++) {
                types[i] = (cot_type){d, i % 2 ? COT_SHAPE(OUT) : COT_SHAPE(IN, OUT)};
                in[i] = out[i] = memory[i], donate[i] = i;
            }
            types[own] = (cot_type){COT_F64, COT_SCALAR}, types[own + 1] = (cot_type){COT_I64, COT_SCALAR};
            types[own + 2] = (cot_type){d, COT_SHAPE(ROWS, IN)}, types[own + 3] = (cot_type){d, COT_SHAPE(ROWS, OUT)};
            in[own] = &rate, in[own + 1] = &count;
            char x[ROWS * IN * 8], y[ROWS * OUT * 8];
            cot_read_as(m.x, d, x, ROWS * IN), cot_read_as(m.y, d, y, ROWS * OUT);
            in[own + 2] = x, in[own + 3] = y;
            for (int i = 0; i < 2; i++) { /* averages begin as the weights */
                cot_var w = cot_params_at(m.p, i).var;
                cot_read_as(w, d, memory[i], cot_size(w));
                if (c.o.average != 0) cot_read_as(w, d, memory[own - 2 + i], cot_size(w));
            }
            cot_program *p = cot_compile(step, &c, own + 4, types, own,
                                         &(cot_compile_options){.donate = donate, .donations = own});
            cot_run     *r = cot_run_create(p);
            for (count = 1; count <= STEPS; count++) {
                rate = cot_optim_rate(m.o);
                if (cot_program_run(r, in, out) != COT_OK) fail_msg("%s", cot_run_message(r));
                learn(&m, 1, 0);
                assert_int_equal(cot_optim_steps(m.o), count);
            }
            read_weights(&m, d, want);
            size_t wide = narrow ? 4 : 8;
            assert_memory_equal(want, memory[0], NA * wide);
            assert_memory_equal(want + NA * wide, memory[1], OUT * wide);
            for (int i = 0; i < 2 * c.kept; i++) { /* those of a, then those of b */
                cot_array a = cot_optim_state(m.o, i, NULL);
                assert_memory_equal(a.data, memory[2 + i % c.kept * 2 + i / c.kept], (size_t)a.size * wide);
            }
            cot_run_destroy(r);
            cot_program_destroy(p);
            unmake(&m);
        }
}

static void what_is_read_back_goes_on_to_the_bit(void **state) {
    (void)state;
    for (int k = 0; k < SAMPLES; k++) {
        model  first = made(COT_F64, &samples[k].o), second = made(COT_F64, &samples[k].o);
        double want[ALL], got[ALL], half[ALL];
        learn(&first, STEPS / 2, samples[k].clip);
        read_weights(&first, COT_F64, half);
        cot_assign_data(cot_params_get(second.p, "a"), half), cot_assign_data(cot_params_get(second.p, "b"), half + NA);
        for (int i = 0; i < cot_optim_states(first.o); i++) {
            const char *a, *b;
            cot_array   from = cot_optim_state(first.o, i, &a), to = cot_optim_state(second.o, i, &b);
            assert_string_equal(a, b);
            memcpy(to.data, from.data, (size_t)from.size * 8);
        }
        cot_optim_set_steps(second.o, cot_optim_steps(first.o));
        learn(&first, STEPS / 2, samples[k].clip), learn(&second, STEPS / 2, samples[k].clip);
        read_weights(&first, COT_F64, want), read_weights(&second, COT_F64, got);
        assert_memory_equal(want, got, sizeof got);
        if (samples[k].o.average != 0) {
            cot_optim_swap(first.o), cot_optim_swap(second.o);
            read_weights(&first, COT_F64, want), read_weights(&second, COT_F64, got);
            assert_memory_equal(want, got, sizeof got);
        }
        unmake(&first), unmake(&second);
    }
}

static void states_have_names(void **state) {
    (void)state;
    model m = made(COT_F32, &(cot_optim_options){.kind = COT_RMSPROP, .rate = 1, .momentum = 0.5, .centered = true,
                                                 .average = 0.5});
    static const char *const names[] = {"a.m", "a.v", "a.momentum", "a.average",
                                        "b.m", "b.v", "b.momentum", "b.average"};
    const char              *name = "";
    assert_int_equal(cot_optim_states(m.o), 8);
    for (int k = 0; k < 8; k++) {
        cot_array a = cot_optim_state(m.o, k, &name);
        assert_string_equal(name, names[k]);
        assert_true(a.dtype == COT_F32 && a.size == (k < 4 ? NA : OUT) && a.shape.ndim == (k < 4 ? 2 : 1));
    }
    assert_null(cot_optim_state(m.o, 8, &name).data);
    assert_null(name);
    assert_null(cot_optim_state(m.o, -1, &name).data);
    assert_true(cot_optim_states(NULL) == 0 && !cot_optim_state(NULL, 0, NULL).data && cot_optim_steps(NULL) == 0);
    unmake(&m);
}

enum { LONG = 100003 };
static cot_var long_net(cot_params *p, cot_var x) {
    return cot_mul(x, cot_nn_parameter(p, "w", COT_SHAPE(LONG), x, (cot_init){COT_INIT_NORMAL, 1}));
}

static void threads_give_the_same_bits(void **state) {
    (void)state;
    static float want[LONG], got[LONG], x[LONG];
    for (int i = 0; i < LONG; i++) x[i] = sinf((float)i);
    for (int k = 0; k < SAMPLES; k++) {
        double norm = 0;
        for (int threads = 1; threads <= 7; threads += threads == 1 ? 1 : 5) {
            cot_set_threads(threads);
            cot_tape   *t = cot_tape_create(NULL);
            cot_params *p = cot_params_create(t);
            cot_var     in = cot_data(t, COT_F32, COT_SHAPE(LONG), x);
            cot_params_init(p, long_net, in, cot_key_of(3));
            cot_optim *o = cot_optim_create(p, &samples[k].o);
            for (int step_at = 0; step_at < 2; step_at++) {
                cot_backward(cot_sum(cot_square(long_net(p, in)), COT_ALL));
                double n = cot_clip_grad_norm(p, 1);
                if (step_at == 0 && threads == 1) norm = n;
                if (step_at == 0) assert_true(n == norm && n > 100);
                cot_optim_step(o);
                cot_tape_zero_grads(t);
            }
            if (samples[k].o.average != 0) cot_optim_swap(o);
            cot_read_as(cot_params_get(p, "w"), COT_F32, threads == 1 ? want : got, LONG);
            if (threads > 1) assert_memory_equal(want, got, sizeof got);
            assert_ok(t);
            cot_optim_destroy(o);
            cot_params_destroy(p);
            cot_tape_destroy(t);
        }
    }
    cot_set_threads(0);
}

/* ---- what a step leaves alone ---------------------------------------------------------------- */

static void frozen_weights_and_those_without_gradient_stay(void **state) {
    (void)state;
    model  m = made(COT_F64, &(cot_optim_options){.kind = COT_ADAM, .rate = 0.1, .average = 0.5});
    double got[ALL];
    cot_backward(cot_sum(cot_square(cot_params_get(m.p, "a")), COT_ALL));
    assert_int_equal(cot_optim_step(m.o), COT_OK);
    read_weights(&m, COT_F64, got);
    for (int i = 0; i < ALL; i++) assert_true((got[i] == (i < NA ? start_a[i] : start_b[i - NA])) == (i >= NA));
    cot_tape_rewind(m.t, m.start);
    cot_params_freeze(m.p, "a", true);
    double before[NA];
    memcpy(before, got, sizeof before);
    learn(&m, 3, 0);
    read_weights(&m, COT_F64, got);
    assert_memory_equal(before, got, sizeof before);
    assert_true(got[NA] != start_b[0]);
    assert_ok(m.t);
    unmake(&m);
}

static void a_weight_that_is_thawed_gets_its_states(void **state) {
    (void)state;
    cot_optim_options adam = {.kind = COT_ADAM, .rate = 0.1};
    model             m = made(COT_F64, &adam);
    cot_params_freeze(m.p, "b", true);
    cot_optim_destroy(m.o);
    m.o = cot_optim_create(m.p, &adam);
    assert_int_equal(cot_optim_states(m.o), 2);
    learn(&m, 1, 0);
    cot_params_freeze(m.p, "b", false);
    learn(&m, 1, 0);
    assert_int_equal(cot_optim_states(m.o), 4);
    unmake(&m);
}

static void a_step_allocates_nothing(void **state) {
    (void)state;
#if COT__ADDRESS_SANITIZER
    skip(); /* there freed memory is not kept for the next step */
#endif
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    model     m = made_on(t, COT_F32, &samples[9].o);
    cot_backward(loss_of(net(m.p, m.x), m.y));
    cot_optim_step(m.o), cot_clip_grad_norm(m.p, 1), cot_optim_step(m.o);
    long before = c.requests;
    for (int k = 0; k < 3; k++) cot_clip_grad_norm(m.p, 0.5 / (k + 1)), cot_optim_step(m.o);
    assert_int_equal(c.requests, before);
    assert_ok(t);
    unmake(&m);
}

static void values_from_before_a_step_are_stale(void **state) {
    (void)state;
    model   m = made(COT_F64, &(cot_optim_options){.rate = 0.1, .average = 0.5});
    cot_var y = cot_sum(cot_square(cot_params_get(m.p, "a")), COT_ALL);
    cot_backward(y);
    cot_optim_step(m.o);
    assert_int_equal(cot_backward(y), COT_STALE);
    assert_non_null(strstr(cot_tape_message(m.t), "cot_optim_step"));
    cot_tape_clear_error(m.t);
    y = cot_sum(cot_square(cot_params_get(m.p, "a")), COT_ALL);
    cot_optim_swap(m.o);
    assert_int_equal(cot_backward(y), COT_STALE);
    assert_non_null(strstr(cot_tape_message(m.t), "cot_optim_swap"));
    unmake(&m);
}

/* b, the second weight, was overwritten in place: it cannot be read any more. */
static void a_failed_swap_exchanges_nothing(void **state) {
    (void)state;
    model   m = made(COT_F64, &(cot_optim_options){.rate = 0.01, .average = 0.75});
    double  before[NA], after[NA], kept[NA];
    cot_var a = cot_params_get(m.p, "a"), b = cot_params_get(m.p, "b");
    learn(&m, 1, 0);
    cot_read(a, before, NA);
    const cot_array average = cot_optim_state(m.o, 0, NULL);
    memcpy(kept, average.data, sizeof kept);
    cot_no_grad_open(m.t);
    assert_int_equal(cot_add_into(&b, cot_number(1)), COT_OK);
    cot_no_grad_close(m.t);
    assert_int_equal(cot_optim_swap(m.o), COT_STALE);
    cot_tape_clear_error(m.t);
    cot_read(a, after, NA);
    assert_memory_equal(before, after, sizeof before);
    assert_memory_equal(kept, average.data, sizeof kept);
    assert_false(cot_optim_swapped(m.o));
    unmake(&m);
}

static void averages_are_swapped_in_and_out(void **state) {
    (void)state;
    model  m = made(COT_F64, &(cot_optim_options){.rate = 0.01, .average = 0.75});
    double w[2][ALL], mean[ALL];
    read_weights(&m, COT_F64, w[0]);
    learn(&m, 1, 0);
    read_weights(&m, COT_F64, w[1]);
    assert_true(!cot_optim_swapped(m.o) && cot_optim_swap(m.o) == COT_OK && cot_optim_swapped(m.o));
    read_weights(&m, COT_F64, mean);
    for (int i = 0; i < ALL; i++) assert_near(mean[i], 0.75 * w[0][i] + 0.25 * w[1][i], 0);
    assert_int_equal(cot_optim_step(m.o), COT_VALUE);
    assert_error(m.t, COT_VALUE,
                 "[optim_step] the averages of weights are swapped in; cot_optim_swap them back first");
    cot_tape_clear_error(m.t);
    cot_optim_swap(m.o);
    read_weights(&m, COT_F64, mean);
    assert_memory_equal(mean, w[1], sizeof mean);
    unmake(&m);
}

/* A gradient that does not change: its variance is 0, or what rounding leaves of it. */
static void no_variance_is_no_nan(void **state) {
    (void)state;
    model m = made(COT_F32, &(cot_optim_options){.kind = COT_RMSPROP, .rate = 1e-3, .centered = true});
    for (int k = 0; k < 2000; k++) {
        cot_grad_set(cot_params_get(m.p, "a"), 0.1);
        cot_optim_step(m.o);
    }
    float got[ALL];
    read_weights(&m, COT_F32, got);
    for (int i = 0; i < NA; i++) assert_true(isfinite(got[i]));
    unmake(&m);
}

/* ---- gradients between backward and step ----------------------------------------------------- */

static void gradients_are_scaled_set_and_added_to(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    for (int k = 0; k < 4; k++)
        for (int tensor = 0; tensor < 2; tensor++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = tensor ? cot_cast(cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), dtypes[k])
                                 : cot_cast(cot_constant(t, 2), dtypes[k]);
            x = cot_leaf(x);
            int64_t n = tensor ? 3 : 1;
            double  g[3];
            int64_t length = cot_tape_length(t);
            assert_int_equal(cot_grad_scale(x, 5), COT_OK);
            cot_read_grad(x, g, n);
            assert_true(g[0] == 0);
            cot_grad_add(x, 1.5), cot_grad_scale(x, 2);
            cot_read_grad(x, g, n);
            for (int i = 0; i < n; i++) assert_true(g[i] == 3);
            cot_grad_set(x, (double)INFINITY), cot_grad_set(x, -0.5);
            assert_int_equal(cot_tape_length(t), length);
            cot_var v = tensor ? cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 1 + 0x1p-20}) : cot_constant(t, 2);
            length = cot_tape_length(t);
            cot_grad_add(x, v);
            cot_read_grad(x, g, n);
            assert_true(g[0] == (tensor ? 0.5 : 1.5));
            cot_grad_set(x, v);
            cot_read_grad(x, g, n);
            assert_true(g[0] == (tensor ? 1 : 2) && (!tensor || g[2] == (k < 2 ? 1 + 0x1p-20 : 1)));
            assert_int_equal(cot_tape_length(t), length);
            assert_ok(t);
            cot_backward(cot_sum(x, COT_ALL)); /* on top of it */
            cot_read_grad(x, g, n);
            assert_true(g[0] == (tensor ? 2 : 3));
            assert_ok(t);
            cot_tape_destroy(t);
        }
}

static void only_gradients_of_leaves_are_written(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), y = cot_square(x);
    assert_int_equal(cot_grad_scale(y, 2), COT_VALUE);
    assert_error(t, COT_VALUE, "[grad_scale] square (v₁) is not a leaf; only gradients of leaves are written");
    cot_tape_clear_error(t);
    assert_int_equal(cot_grad_set(y, 2.0), COT_VALUE);
    assert_error(t, COT_VALUE, "[grad_set] square (v₁) is not a leaf; only gradients of leaves are written");
    cot_tape_clear_error(t);
    assert_int_equal(cot_grad_add(x, cot_constant(t, 1)), COT_SHAPE);
    assert_error(t, COT_SHAPE, "[grad_add] the value has shape (), the leaf (2,); they must be equal");
    cot_tape_destroy(t);
}

static void norms_are_clipped_like_torchs(void **state) {
    (void)state;
    model  m = made(COT_F64, &(cot_optim_options){.rate = 0.1});
    double g[ALL];
    assert_true(cot_clip_grad_norm(m.p, 1) == 0);
    cot_grad_set(cot_params_get(m.p, "a"), 3.0), cot_grad_set(cot_params_get(m.p, "b"), 4e200);
    /* squares would overflow */
    assert_near(cot_clip_grad_norm(m.p, (double)INFINITY) / 1e200, 4 * sqrt(2), 1e-15);
    cot_grad_set(cot_params_get(m.p, "b"), 4.0);
    double norm = sqrt(9 * NA + 16 * OUT);
    assert_near(cot_clip_grad_norm(m.p, 2), norm, 1e-15);
    cot_read_grad(cot_params_get(m.p, "a"), g, NA);
    assert_near(g[0], 3 * (2 / (norm + 1e-6)), 1e-15);
    assert_near(cot_clip_grad_norm(m.p, 3), 2, 1e-6); /* which is no more than 3 */
    double again;
    cot_read_grad(cot_params_get(m.p, "a"), g + 1, NA), again = g[1];
    assert_true(again == g[0]);
    cot_grad_set(cot_params_get(m.p, "b"), (double)INFINITY);
    assert_true(isinf(cot_clip_grad_norm(m.p, 1)));
    cot_read_grad(cot_params_get(m.p, "a"), g, NA), cot_read_grad(cot_params_get(m.p, "b"), g + NA, OUT);
    assert_true(g[0] == 0 && isnan(g[NA]));
    assert_true(isnan(cot_clip_grad_norm(m.p, 1)));
    cot_read_grad(cot_params_get(m.p, "a"), g, NA);
    assert_true(isnan(g[0]));
    assert_ok(m.t);
    assert_true(isnan(cot_clip_grad_norm(m.p, -1)));
    assert_error(m.t, COT_VALUE, "[clip_grad_norm] the norm is to be at most -1; it must be positive");
    unmake(&m);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void wrong_options_are_sentences(void **state) {
    (void)state;
    const struct { cot_optim_options o; const char *says; } wrong[] = {
        {{.rate = -1}, "[optim_create] the rate is -1; it must be finite and not negative"},
        {{.rate = (double)NAN}, "[optim_create] the rate is nan; it must be finite and not negative"},
        {{.kind = (cot_optim_kind)7},
         "[optim_create] there is no optimiser 7; kinds are COT_SGD, COT_RMSPROP, COT_ADAM, COT_ADAMW"},
        {{.beta1 = 1}, "[optim_create] alpha 0.99, betas 1 and 0.999, average 0; they must be in [0, 1)"},
        {{.decay = -1}, "[optim_create] momentum 0, eps 1e-08, decay -1; they must be finite and not negative"},
        {{.nesterov = true}, "[optim_create] nesterov is set; it is for COT_SGD with a momentum"},
        {{.kind = COT_ADAM, .momentum = 0.9},
         "[optim_create] the momentum is 0.9; it is for COT_SGD and COT_RMSPROP, of Adam it is beta1"},
        {{.centered = true}, "[optim_create] centered is set; it is for COT_RMSPROP"},
        {{.eps_hat = true}, "[optim_create] eps_hat is set; it is for COT_ADAM and COT_ADAMW"},
        {{.group_count = 2},
         "[optim_create] there are 2 groups, but the list is NULL; list as many, or leave both out"},
        {{.groups = (cot_optim_group[]){{.scale = -1}}, .group_count = 1},
         "[optim_create] group 0 has scale -1, decay 0; they must be finite and not negative"},
        {{.groups = two, .group_count = 1}, "[optim_create] a parameter is in group 1; the optimiser has 1"},
        {{.schedule = &(cot_schedule){.rate = -1}},
         "[optim_create] the schedule has a number out of its range; rates are finite and not negative, and there is "
         "at least one step"},
    };
    model m = made(COT_F64, &(cot_optim_options){.rate = 0.1});
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_null(cot_optim_create(m.p, &wrong[k].o));
        assert_error(m.t, COT_VALUE, wrong[k].says);
        cot_tape_clear_error(m.t);
    }
    assert_null(cot_optim_create(m.p, NULL));
    assert_error(m.t, COT_VALUE, "[optim_create] the options are NULL; they say which rate it has");
    cot_tape_clear_error(m.t);
    assert_int_equal(cot_optim_set_rate(m.o, -2), COT_VALUE);
    assert_error(m.t, COT_VALUE, "[optim_set_rate] the rate is -2; it must be finite and not negative");
    cot_tape_clear_error(m.t);
    assert_true(cot_optim_set_rate(m.o, 0.5) == COT_OK && cot_optim_rate(m.o) == 0.5);
    assert_int_equal(cot_optim_swap(m.o), COT_VALUE);
    assert_error(m.t, COT_VALUE, "[optim_swap] no averages of weights are kept; .average of the options asks for them");
    unmake(&m);
    m = made(COT_BF16, &(cot_optim_options){.rate = 0.1});
    assert_null(m.o);
    assert_error(m.t, COT_DTYPE, "[optim_create] a has dtype bf16; weights are f32 or f64: keep those, and cast them "
                                 "for the computation");
    unmake(&m);
    assert_true(!cot_optim_create(NULL, &wrong[0].o) && cot_optim_step(NULL) == COT_VALUE);
    assert_true(isnan(cot_optim_rate(NULL)));
    cot_optim_destroy(NULL);
}

static void a_recorded_step_checks_what_it_gets(void **state) {
    (void)state;
    cot_tape         *t = cot_tape_create(NULL);
    cot_var           w = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), s = cot_constant(t, 1), ys[3];
    cot_var           half = cot_tensor(t, COT_F16, COT_SHAPE(2), NULL);
    cot_optim_options o = {.kind = COT_ADAM};
    assert_int_equal(cot_optim_kept(&o), 2);
    assert_int_equal(cot_optim_kept(NULL), 0);
#define REFUSED(code, text, ...)                                                                                       \
    do {                                                                                                               \
        assert_int_equal(cot_optim_record(__VA_ARGS__), code);                                                         \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)
    cot_var rate = cot_number(0.1), step_1 = cot_integer(1);
    REFUSED(COT_SHAPE, "[optim_record] gradient of weight 0 is f64 (), the weight f64 (2,); they must be equal", &o,
            rate, step_1, 1, &s, ((cot_var[]){w, w, w}), NULL, ys);
    REFUSED(COT_SHAPE, "[optim_record] v of weight 0 is f64 (), the weight f64 (2,); they must be equal", &o, rate,
            step_1, 1, &w, ((cot_var[]){w, w, s}), NULL, ys);
    REFUSED(COT_SHAPE, "[optim_record] the rate has shape (2,); it is one number", &o, w, step_1, 1, &w,
            ((cot_var[]){w, w, w}), NULL, ys);
    REFUSED(COT_DTYPE, "[optim_record] xs[0] has dtype f16; weights are f32 or f64: cast them for the computation", &o,
            rate, step_1, 1, &half, ((cot_var[]){half, half, half}), NULL, ys);
    REFUSED(COT_VALUE, "[optim_record] the options are NULL; they say which step it is", NULL, rate, step_1, 1, &w,
            ((cot_var[]){w, w, w}), NULL, ys);
#undef REFUSED
    cot_tape_destroy(t);
}

static void train_a_little(cot_tape *t, void *user) {
    cot_optim_options o = {.kind = COT_RMSPROP, .rate = 0.1, .momentum = 0.5, .average = 0.5, .groups = two,
                           .group_count = 2};
    model m = made_on(t, COT_F32, &o);
    (void)user;
    if (m.o) {
        cot_backward(loss_of(net(m.p, m.x), m.y));
        cot_clip_grad_norm(m.p, 1);
        cot_grad_add(cot_params_get(m.p, "b"), cot_data(t, COT_F64, COT_SHAPE(OUT), NULL));
        cot_optim_step(m.o);
        cot_optim_swap(m.o);
    }
    cot_optim_destroy(m.o);
    cot_params_destroy(m.p);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const sentences[] = {"[optim_create] out of memory: ", "[optim_swap] out of memory: ",
                                             " bytes for states of the optimiser"};
    assert_survives_no_memory(train_a_little, NULL, 3, sentences);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_are_those_of_torch),
        cmocka_unit_test(rates_are_those_of_torch),
        cmocka_unit_test(programs_have_the_bits_of_steps),
        cmocka_unit_test(what_is_read_back_goes_on_to_the_bit),
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(frozen_weights_and_those_without_gradient_stay),
        cmocka_unit_test(a_weight_that_is_thawed_gets_its_states),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(values_from_before_a_step_are_stale),
        cmocka_unit_test(a_failed_swap_exchanges_nothing),
        cmocka_unit_test(averages_are_swapped_in_and_out),
        cmocka_unit_test(no_variance_is_no_nan),
        cmocka_unit_test(gradients_are_scaled_set_and_added_to),
        cmocka_unit_test(only_gradients_of_leaves_are_written),
        cmocka_unit_test(norms_are_clipped_like_torchs),
        cmocka_unit_test(wrong_options_are_sentences),
        cmocka_unit_test(a_recorded_step_checks_what_it_gets),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
