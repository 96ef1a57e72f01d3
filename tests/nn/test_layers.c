/* Layers: values beside those that PyTorch 2.15 computes from the same numbers, derivatives of both
 * modes and orders with respect to input and parameters, and what layers refuse. */
#include "support/tape_test.h"

/* Number i of a sequence, in steps of 1/500. */
static double number(int64_t i, int seed) { return (double)((7919 * (i + 1) + seed * 104729) % 1000) / 500 - 1; }

static cot_var numbers(cot_tape *t, cot_shape shape, int seed) {
    double  data[512];
    int64_t n = 1;
    for (int k = 0; k < shape.ndim; k++) n *= shape.dim[k];
    assert_true(n <= 512);
    for (int64_t i = 0; i < n; i++) data[i] = number(i, seed);
    return cot_data(t, COT_F64, shape, data);
}

/* Gives parameter k the numbers of seed 2 + k; variances are positive. */
static void fill(cot_params *p) {
    for (int k = 0; k < cot_params_count(p); k++) {
        cot_param a = cot_params_at(p, k);
        double    data[512];
        for (int64_t i = 0; i < cot_size(a.var); i++)
            data[i] = strstr(a.name, "running_var") ? 1 + 0.5 * number(i, 2 + k) : number(i, 2 + k);
        assert_int_equal(cot_assign_data(a.var, data), COT_OK);
    }
}

static cot_var dense(cot_params *p, cot_var x) { return cot_nn_dense(p, "a", x, 4); }
static cot_var conv2d(cot_params *p, cot_var x) {
    return cot_sum(
        cot_nn_conv(p, "a", x, 4, COT_SHAPE(3, 2), true, COT_CONV(.groups = 2, .stride = {2, 1}, .padding = {1, 0})),
        COT_AXES(0));
}
static cot_var conv_transpose2d(cot_params *p, cot_var x) {
    return cot_sum(cot_nn_conv_transpose(p, "a", x, 3, COT_SHAPE(2, 2), true, COT_CONV(.stride = {2, 2})),
                   COT_AXES(0, 2));
}
static cot_var conv1d(cot_params *p, cot_var x) {
    return cot_nn_conv(p, "a", x, 3, COT_SHAPE(3), true, COT_CONV(.dilation = {2}));
}
static cot_var conv_transpose1d(cot_params *p, cot_var x) {
    return cot_nn_conv_transpose(p, "a", x, 1, COT_SHAPE(3), true, COT_CONV_DEFAULT);
}
static cot_var layer_norm(cot_params *p, cot_var x) { return cot_nn_layer_norm(p, "a", x, 0); }
static cot_var rms_norm(cot_params *p, cot_var x) { return cot_nn_rms_norm(p, "a", x, 0); }
static cot_var group_norm(cot_params *p, cot_var x) { return cot_nn_group_norm(p, "a", x, 2, 0); }
static cot_var batch_norm(cot_params *p, cot_var x) { return cot_nn_batch_norm(p, "a", x, 0, 0); }
static cot_var attention(cot_params *p, cot_var x) {
    return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 2});
}
static cot_var causal_attention(cot_params *p, cot_var x) {
    return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 2, .causal = true});
}
static cot_var grouped_attention(cot_params *p, cot_var x) {
    return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 4, .kv_heads = 2, .causal = true});
}
static cot_var cross_attention(cot_params *p, cot_var x) {
    return cot_nn_attention(
        p, "a", x, &(cot_nn_attention_options){.heads = 2, .context = numbers(cot_tape_of(x), COT_SHAPE(2, 5, 3), 6)});
}
static cot_var lstm(cot_params *p, cot_var x) { return cot_nn_lstm(p, "a", x, 2, NULL); }
static cot_var gru(cot_params *p, cot_var x) { return cot_nn_gru(p, "a", x, 2, NULL); }

static const double want_dense[]            = {-0.993436, -0.95256,  0.8203159999999998, 0.5931919999999999,
                                               -0.661984, -1.356912, 0.6521599999999999, 0.6612319999999999};
static const double want_conv2d[]           = {-1.849712,
                                               0.4439359999999999,
                                               -0.9384160000000001,
                                               -1.566,
                                               -2.904456,
                                               -2.778912,
                                               0.0426079999999997,
                                               -0.7876480000000001,
                                               -1.293904,
                                               -2.027888,
                                               -2.362528,
                                               -2.373168,
                                               -3.593856,
                                               -2.170744,
                                               -1.339632,
                                               -2.691024,
                                               -2.797568,
                                               -2.580112,
                                               0.7873759999999999,
                                               0.740448,
                                               1.72152,
                                               1.863888,
                                               -0.007432000000000105,
                                               0.1212479999999997,
                                               1.010704,
                                               1.191872,
                                               1.75304,
                                               1.78744,
                                               2.464224,
                                               2.113008,
                                               0.787392,
                                               1.02964,
                                               1.215888,
                                               2.471312,
                                               3.376192,
                                               2.605072};
static const double want_conv_transpose2d[] = {-13.2384,  -12.2016,  -15.224,   -15.08144, -17.4336,  -18.18528,
                                               -14.9712,  -14.67312, -18.7312,  -22.4944,  -18.77376, -22.6712,
                                               -19.04032, -19.072,   -18.85888, -21.0808,  15.776,    16.8128,
                                               17.67648,  17.81904,  19.35296,  18.60128,  17.25344,  17.55152};
static const double want_conv1d[] = {1.378224, -0.1010040000000001, -1.250128, -1.348572, 1.64152, 0.5438599999999998,
                                     1.271488, -0.2077399999999998, -1.123456, -1.2219,   1.4416,  0.34394};
static const double want_conv_transpose1d[] = {
    -0.3659840000000001, 0.2760279999999999,  -0.1614760000000002, -1.316704,
    -2.795932000000001,  -0.5991600000000001, -0.1990200000000001, -0.009804000000000035,
    -0.4207520000000001, 0.1483479999999999,  -0.2682119999999999, -1.42344,
    -2.902668,           -0.7058960000000002, -0.250988,           0.01113999999999993};
static const double want_layer_norm[] = {
    -1.089201173505443, -0.9499999999999997, 1.585905158122367, -1.089201173505443, -0.95, 1.585905158122367};
static const double want_rms_norm[]   = {-0.3866742086796068, -0.2903242740185048, 0.08475225734078402,
                                         0.1242935656434534,  0.3819115259617076,  0.779108448057745};
static const double want_group_norm[] = {
    -1.148083606645823,   -1.004050163987494,  -0.8600167213291645,  -0.8305576329174832, -0.5916728987524494,
    -0.3527881645874156,  1.329328166542509,   1.449488104323831,    1.569648042105153,   -0.1493795909139863,
    0.004931066026237776, 0.1592417229664616,  -1.148083606645823,   -1.004050163987494,  -0.8600167213291646,
    -0.8305576329174832,  -0.5916728987524494, -0.3527881645874158,  1.329328166542509,   1.449488104323831,
    1.569648042105153,    -0.1493795909139861, 0.004931066026237699, 0.1592417229664615};
static const double want_batch_norm[] = {
    -1.031743505444033, -0.7370685212505004, -0.4423935370569679, -1.35425752122425,   -0.8655282791471717,
    -0.376799037070093, 0.3232284629955328,  1.006011962956157,   1.688795462916782,   0.0007144472153161148,
    0.8775522050594874, 1.754389962903657,   -1.133606462943032,  -0.8389314787494994, -0.5442564945559669,
    -1.523200962929907, -1.034471720852828,  -0.54574247877575,   0.08720453708321843, 0.7699880370438431,
    1.452771537004467,  -0.3023899629036555, 0.5744477949405146,  1.451285552784685};
static const double want_attention[] = {
    0.2869196411263442,     0.1102938733555821,  -0.06633189441518006, -0.6638546960867395, -0.004608434677561807,
    -0.1026675889866149,    -0.2007267432956679, -0.4789958320560669,  0.3193285807223893,  0.1594324951795467,
    -0.0004635903632959071, -0.7483044789188747, 0.3640216106899905,   0.1485585057541264,  -0.06690459918173763,
    -0.666489186958646,     0.1020544606522452,  -0.05647330690520483, -0.2150010744626548, -0.4643079527066288,
    0.4040160155527335,     0.2107360502086332,  0.01745608486453293,  -0.7729649902975382};
static const double want_causal_attention[] = {
    -0.06958326400000009,   -0.03136940800000004, 0.006844448000000114,  -0.769229696,         -0.3555549823165029,
    -0.2018545384142818,    -0.04815409451206057, -0.7114225054408634,   0.3193285807223893,   0.1594324951795467,
    -0.0004635903632959071, -0.7483044789188747,  -0.007829152000000006, -0.013015744,         -0.01820233599999985,
    -0.740012928,           -0.2706323319273968,  -0.1694271810872129,   -0.06822203024702886, -0.6874797949209602,
    0.4040160155527335,     0.2107360502086332,   0.01745608486453293,   -0.7729649902975382};
static const double want_grouped_attention[] = {
    0.288479072,         0.04272895999999998,  -0.2030211520000001,  -0.3866272639999998,  -0.004280201185497601,
    -0.0432587297119712, -0.08223725823844481, -0.5152637867649181,  0.003308206797274699, -0.05272335928149777,
    -0.1087549253602702, -0.5728922462136053,  0.3448141759999999,   0.06175999999999993,  -0.2212941760000001,
    -0.3633563519999998, 0.05777779242262202,  -0.02225637720619947, -0.1022905468350209,  -0.4975247164638423,
    0.06379883775862299, -0.03247028371782192, -0.1287394051942668,  -0.5543486178685063};
static const double want_cross_attention[] = {
    -1.800665271659257,  0.1615736686790528,  0.1238126090173625,   0.08605154935567255,  -1.814336154024785,
    0.1488155480436887,  0.1119672501121625,  0.07511895218063636,  -1.704385818488329,   0.2737771911340936,
    0.2519402007565168,  0.2301032103789401,  -2.098772786803799,   -0.1018457117832241,  -0.1049186367626487,
    -0.1079915617420732, -2.076939754239636,  -0.07554362317818364, -0.07414749211673188, -0.07275136105528013,
    -2.017558764488874,  0.02854511105110991, 0.07464898659109387,  0.1207528621310778};
static const double want_lstm[] = {
    -0.1167439551308182,  -0.2037747875024788, -0.07978795914161924, -0.3359255131310896,
    -0.04901067059188117, -0.4361613867040143, -0.1476973401922548,  -0.0869195718151433,
    -0.09474305076356294, -0.2643845375977218, -0.1269449694152822,  -0.3503795030847658,
    -0.0491757004395204,  -0.4429532059098856, -0.1767824358729627,  -0.08409268507696029};
static const double want_gru[] = {-0.2481455385165811, -0.1437905568615502, 0.09351025651564093, -0.09800110312205361,
                                  0.1358022489181304,  -0.1757115952409503, -0.4392821092235962, -0.1782951656004849,
                                  -0.1537430005011348, -0.1569459182684292, -0.2249115536292639, -0.2576370160547523,
                                  0.1754472900975265,  -0.170404465939049,  -0.6548754726631026, -0.2719412030728896};

typedef struct layer {
    const char   *name;
    cot_net       net;
    cot_shape     shape;
    int           n;
    const double *want;
} layer;
static const layer layers[] = {
    {"dense", dense, {2, {2, 3}}, 8, want_dense},
    {"conv2d", conv2d, {4, {2, 2, 5, 4}}, 36, want_conv2d},
    {"conv_transpose2d", conv_transpose2d, {4, {2, 2, 5, 4}}, 24, want_conv_transpose2d},
    {"conv1d", conv1d, {3, {2, 2, 6}}, 12, want_conv1d},
    {"conv_transpose1d", conv_transpose1d, {3, {2, 2, 6}}, 16, want_conv_transpose1d},
    {"layer_norm", layer_norm, {2, {2, 3}}, 6, want_layer_norm},
    {"rms_norm", rms_norm, {2, {2, 3}}, 6, want_rms_norm},
    {"group_norm", group_norm, {3, {2, 4, 3}}, 24, want_group_norm},
    {"batch_norm", batch_norm, {3, {2, 4, 3}}, 24, want_batch_norm},
    {"attention", attention, {3, {2, 3, 4}}, 24, want_attention},
    {"causal_attention", causal_attention, {3, {2, 3, 4}}, 24, want_causal_attention},
    {"grouped_attention", grouped_attention, {3, {2, 3, 4}}, 24, want_grouped_attention},
    {"cross_attention", cross_attention, {3, {2, 3, 4}}, 24, want_cross_attention},
    {"lstm", lstm, {3, {4, 2, 3}}, 16, want_lstm},
    {"gru", gru, {3, {4, 2, 3}}, 16, want_gru},
};
enum { LAYERS = sizeof layers / sizeof *layers };

static void compare(const char *name, cot_var y, int n, const double *want) {
    double got[256];
    if (cot_read(y, got, n) != COT_OK) fail_msg("%s: %s", name, cot_tape_message(cot_tape_of(y)));
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-13 * (1 + fabs(want[i]))))
            fail_msg("%s: element %d is %.17g, not %.17g", name, i, got[i], want[i]);
}

static cot_params *params_of(cot_tape *t, cot_net net, cot_var x) {
    cot_params *p = cot_params_create(t);
    if (cot_params_init(p, net, x, cot_key_of(1)) != COT_OK) fail_msg("%s", cot_tape_message(t));
    fill(p);
    return p;
}

static void layers_compute_what_pytorch_does(void **state) {
    (void)state;
    for (int k = 0; k < LAYERS; k++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_var     x = numbers(t, layers[k].shape, 1);
        cot_params *p = params_of(t, layers[k].net, x);
        compare(layers[k].name, layers[k].net(p, x), layers[k].n, layers[k].want);
        assert_ok(t);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

/* xs: the input, then all parameters. */
typedef struct bound {
    cot_params *p;
    cot_net     net;
} bound;
static cot_var of_bound(int n, const cot_var *xs, void *user) {
    const bound *b = user;
    cot_params_bind(b->p, n - 1, xs + 1);
    cot_var y = b->net(b->p, xs[0]);
    cot_params_bind(b->p, 0, NULL);
    return y;
}

static void layers_have_derivatives_of_second_order(void **state) {
    (void)state;
    for (int k = 0; k < LAYERS; k++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_var     x = numbers(t, layers[k].shape, 1);
        cot_params *p = params_of(t, layers[k].net, x);
        bound       b = {p, layers[k].net};
        int         n = 1 + cot_params_count(p);
        double      data[12][512];
        cot_array   at[12];
        for (int i = 0; i < n; i++) {
            cot_var v = i ? cot_params_at(p, i - 1).var : x;
            cot_read(v, data[i], cot_size(v));
            at[i] = (cot_array){COT_F64, cot_shape_of(v), cot_size(v), data[i]};
        }
        cot_check_report report;
        if (cot_check_grads(of_bound, &b, n, at, 2, &report) != COT_OK)
            fail_msg("%s: %s", layers[k].name, report.message);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

static void batch_norms_follow_the_batches_and_are_used_in_evaluation(void **state) {
    (void)state;
    cot_tape   *t     = cot_tape_create(NULL);
    cot_var     x     = numbers(t, COT_SHAPE(2, 4, 3), 1);
    cot_params *p     = params_of(t, batch_norm, x);
    cot_mark    start = cot_tape_mark(t);
    batch_norm(p, x);
    cot_tape_rewind(t, start);
    compare("running_mean", cot_params_get(p, "a.running_mean"), 4,
            (double[]){0.6192, 0.4248, 0.2304, 0.2359999999999999});
    compare("running_var", cot_params_get(p, "a.running_var"), 4,
            (double[]){0.9597936000000001, 0.8868936000000001, 0.8139936000000001, 0.7410936});
    static const double want[] = {-0.706845001896435,  -0.6661670634905639, -0.6254891250846928, -0.6836480914658746,
                                  -0.6134642769204479, -0.5432804623750213, 1.460639879593872,   1.562987254366829,
                                  1.665334629139785,   0.2141200594216424,  0.3518684819693068,  0.489616904516971,
                                  -0.7209065114688349, -0.6802285730629638, -0.6395506346570927, -0.7079091631605899,
                                  -0.6377253486151633, -0.5675415340697367, 1.425260540166184,   1.52760791493914,
                                  1.629955289712096,   0.1665033207631907,  0.3042517433108549,  0.4420001658585191};
    cot_params_train(p, false);
    for (int k = 0; k < 2; k++) compare("evaluation", batch_norm(p, x), 24, want);
    int n;
    cot_params_vars(p, &n);
    assert_true(n == 2 && cot_params_at(p, 2).statistic && !cot_requires_grad(cot_params_at(p, 3).var));
    assert_ok(t);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static cot_var table(cot_params *p, cot_var x) { return cot_nn_embedding(p, "e", x, 4, 2, 3); }

static void embeddings_are_rows_and_padding_begins_as_zeros(void **state) {
    (void)state;
    cot_tape   *t   = cot_tape_create(NULL);
    cot_params *p   = cot_params_create(t);
    cot_var     ids = cot_data(t, COT_I64, COT_SHAPE(2, 2), (int64_t[]){2, 0, 3, 2});
    assert_int_equal(cot_params_init(p, table, ids, cot_key_of(3)), COT_OK);
    cot_var w = cot_params_get(p, "e.weight");
    double  v[8];
    cot_read(w, v, 8);
    assert_true(cot_dtype_of(w) == COT_F32 && v[6] == 0 && v[7] == 0 && v[0] != 0);
    compare("rows", table(p, ids), 8, (double[]){v[4], v[5], v[0], v[1], 0, 0, v[4], v[5]});
    cot_backward(cot_sum(table(p, ids), COT_ALL));
    cot_read_grad(w, v, 8);
    assert_true(v[4] == 2 && v[0] == 1 && v[6] == 0 && v[2] == 0);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static void recurrent_layers_take_and_leave_their_state(void **state) {
    (void)state;
    static const double want_lstm_from[] = {
        -0.1138605844146272,  0.094913516791991,   0.003372579933673724, -0.09708941194320156,
        -0.1103364294507873,  -0.406550508478971,  -0.1304485995627502,  -0.0529122087657448,
        -0.1217208024389711,  -0.2403393463249555, -0.1186386755711605,  -0.3438553278746642,
        -0.06309160986596656, -0.4403833405393272, -0.1716463349017531,  -0.08021499256478649};
    static const double want_gru_from[] = {
        -0.4764859449569657, -0.3378939118474065, -0.2431697145610597, -0.5039182474618182,
        0.04046756430380483, -0.3037854638137858, -0.6369347974454682, -0.2774623089349299,
        -0.2166489074303027, -0.2057006791060791, -0.3349468513001588, -0.3272150489255472,
        0.1448631525903278,  -0.2041292174958102, -0.7122293407284136, -0.3007836350971744};
    static const double last[] = {-0.3240683936260046, -0.9288241995522459, -0.8581546385625304, -0.1460950070249649};
    cot_tape           *t      = cot_tape_create(NULL);
    cot_var             x      = numbers(t, COT_SHAPE(4, 2, 3), 1);
    cot_params         *p = params_of(t, lstm, x), *q = params_of(t, gru, x);
    cot_var             s[2] = {COT_NONE, COT_NONE};
    cot_nn_lstm(p, "a", x, 2, s);
    compare("c", s[1], 4, last);
    compare("h", s[0], 4, want_lstm + 12);
    s[0] = numbers(t, COT_SHAPE(2, 2), 6), s[1] = numbers(t, COT_SHAPE(2, 2), 7);
    compare("lstm", cot_nn_lstm(p, "a", x, 2, s), 16, want_lstm_from);
    s[0] = numbers(t, COT_SHAPE(2, 2), 6);
    compare("gru", cot_nn_gru(q, "a", x, 2, s), 16, want_gru_from);
    compare("h", s[0], 4, want_gru_from + 12);
    assert_ok(t);
    cot_params_destroy(p), cot_params_destroy(q);
    cot_tape_destroy(t);
}

static void rotary_positions_are_those_of_llama(void **state) {
    (void)state;
    static const double want[] = {-0.09771913566683504, 0.1377729475650546,  0.2808041497637218, -0.1872821799297431,
                                  0.443874484251827,    -0.4886324881772882, 0.6195606848648278, -0.8530406153857343,
                                  1.165242107691771,    0.8167751716099696,  0.3149394076041266, 0.547099916872142,
                                  -0.1719440144157133,  0.1926418226035564,  0.3084205828193201, -0.1301734542215882,
                                  0.3805321839908496,   -0.4343374342986847, 0.5720238255065555, -0.7953860654844513,
                                  1.171019004660653,    0.8704909748685327,  0.2359544250985203, 0.6052945255596084};
    cot_tape           *t      = cot_tape_create(NULL);
    cot_var             x      = numbers(t, COT_SHAPE(2, 3, 4), 1);
    compare("rotary", cot_nn_rotary(x, 10000, 2), 24, want);
    assert_false(cot_is_valid(cot_nn_rotary(cot_zeros(t, COT_F64, COT_SHAPE(2, 3)), 10000, -1)));
    assert_error(
        t, COT_VALUE,
        "[nn_rotary] x has 2 axes, the last of extent 3, the base is 10000, the first position -1; there are two "
        "axes or more, the last even, a positive base and no negative positions");
    cot_tape_destroy(t);
}

static cot_var decoder(cot_params *p, cot_var ids) {
    cot_nn_cache *cache = cot_params_user(p);
    cot_var       x     = cot_nn_embedding(p, "e", ids, 11, 8, COT_NO_PADDING);
    for (int l = 0; l < 2; l++) {
        cot_params_push_number(p, l);
        cot_nn_attention_options o = {.heads = 4, .kv_heads = 2, .causal = true, .rotary = 10000, .cache = cache};
        x                          = cot_add(x, cot_nn_attention(p, "attn", cot_nn_layer_norm(p, "norm", x, 0), &o));
        cot_params_pop(p);
    }
    return cot_nn_linear(p, "head", x, 11);
}

/* A prompt of three, then one by one, forgetting each; for every row of the whole. */
static void decoding_with_a_cache_is_the_whole_forward_to_the_bit(void **state) {
    (void)state;
    enum { N = 70, V = 11 };
    cot_tape    *t = cot_tape_create(NULL);
    cot_params  *p = cot_params_create(t);
    int64_t      ids[2 * N];
    static float all[2 * N * V], some[2 * 3 * V];
    for (int i = 0; i < 2 * N; i++) ids[i] = (7 * i + i * i / 5) % V;
    cot_var x = cot_data(t, COT_I64, COT_SHAPE(2, N), ids);
    assert_int_equal(cot_params_init(p, decoder, x, cot_key_of(3)), COT_OK);
    cot_mark start = cot_tape_mark(t);
    cot_read_as(decoder(p, x), COT_F32, all, 2 * N * V);
    cot_nn_cache *cache = cot_nn_cache_create(p, N);
    cot_params_set_user(p, cache);
    cot_no_grad_open(t);
    for (int again = 0; again < 2; again++) {
        for (int at = 0, n = 3; at < N; at += n, n = 1) {
            cot_tape_rewind(t, start);
            cot_no_grad_open(t);
            cot_var y = decoder(p, cot_slice(x, 1, at, at + n, 1));
            if (cot_read_as(y, COT_F32, some, 2 * n * V) != COT_OK) fail_msg("%s", cot_tape_message(t));
            cot_no_grad_close(t);
            for (int b = 0; b < 2; b++)
                assert_memory_equal(some + b * n * V, all + (b * N + at) * V, (size_t)(n * V) * sizeof *all);
        }
        if (!again) cot_nn_cache_clear(cache);
    }
    assert_false(cot_is_valid(decoder(p, cot_slice(x, 1, 0, 1, 1))));
    assert_error(t, COT_LIMIT, "[nn_attention] the cache has room for 70 positions, and 71 would be in it");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(decoder(p, cot_slice(cot_index(x, 0, 0), 0, 0, 1, 1))));
    assert_error(t, COT_SHAPE,
                 "[nn_attention] the cache holds keys of shape (2,2,70,2), this call's would be (2,70,2); "
                 "cot_nn_cache_clear empties it");
    cot_nn_cache_destroy(cache);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

/* Cleared, it begins again, with the memory that recorded calls read; also with other shapes. */
static void a_cleared_cache_leaves_what_was_recorded(void **state) {
    (void)state;
    enum { N = 6, V = 11 };
    cot_tape     *t = cot_tape_create(NULL);
    cot_params   *p = cot_params_create(t);
    const int64_t ids[2 * N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    cot_var       x = cot_data(t, COT_I64, COT_SHAPE(2, N), ids), one = cot_index(x, 0, 0);
    double        want[V * 8], got[V * 8];
    assert_int_equal(cot_params_init(p, decoder, x, cot_key_of(3)), COT_OK);
    cot_var e = cot_params_get(p, "e.weight");
    assert_int_equal(cot_backward(cot_sum(cot_square(decoder(p, x)), COT_ALL)), COT_OK);
    cot_read_grad(e, want, V * 8);
    cot_tape_zero_grads(t);
    cot_nn_cache *cache = cot_nn_cache_create(p, N);
    cot_params_set_user(p, cache);
    cot_var loss = cot_sum(cot_square(decoder(p, x)), COT_ALL);
    cot_nn_cache_clear(cache);
    assert_int_equal(cot_backward(loss), COT_OK);
    cot_read_grad(e, got, V * 8);
    for (int k = 0; k < V * 8; k++) assert_near(got[k], want[k], 1e-4 * (1 + fabs(want[k])));
    for (int k = 0; k < 2; k++) { /* of one axis less, and as before */
        cot_var y = decoder(p, k ? x : one), z;
        cot_params_set_user(p, NULL);
        z = decoder(p, k ? x : one);
        cot_params_set_user(p, cache);
        assert_near(cot_value(cot_max(cot_abs(cot_sub(y, z)), COT_ALL)), 0, 1e-6);
        cot_nn_cache_clear(cache);
    }
    assert_ok(t);
    cot_tape_destroy(t);
    cot_nn_cache_destroy(cache);
    cot_params_destroy(p);
}

static cot_var dropped(cot_params *p, cot_var x) {
    cot_params_push(p, "a");
    cot_var y = cot_nn_dropout(p, "d", x, 0.5);
    cot_params_pop(p);
    return cot_stack(2, (cot_var[]){y, cot_nn_dropout(p, "d", x, 0.5)}, 0);
}

static void dropouts_differ_by_name_and_step_and_do_nothing_in_evaluation(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_ones(t, COT_F64, COT_SHAPE(64));
    double      a[128], b[128];
    assert_int_equal(cot_params_init(p, dropped, x, cot_key_of(3)), COT_OK);
    assert_int_equal(cot_params_count(p), 0);
    assert_false(cot_is_valid(dropped(p, x)));
    assert_error(t, COT_VALUE, "[nn_dropout] the step has no key; cot_params_set_key sets one, another at each step");
    cot_tape_clear_error(t);
    cot_params_set_key(p, cot_key_of(1));
    cot_read(dropped(p, x), a, 128), cot_read(dropped(p, x), b, 128);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, a + 64, sizeof a / 2);
    cot_params_set_key(p, cot_key_of(2));
    cot_read(dropped(p, x), b, 128);
    assert_memory_not_equal(a, b, sizeof a);
    cot_params_train(p, false);
    assert_true(cot_nn_dropout(p, "d", x, 0.5).id == x.id);
    assert_ok(t);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static void cross_entropies_are_those_of_pytorch(void **state) {
    (void)state;
    static const double want[]    = {1.40377023480444, 1.250125058886392, 1.509257059637908, 1.308085564751355,
                                     1.434651374501913},
                        want_of[] = {1.830046069214375, 1.824749076672825, 1.804772096830285};
    cot_tape *t                   = cot_tape_create(NULL);
    cot_var   x = cot_mul(3, numbers(t, COT_SHAPE(5, 4), 1)), w = cot_add(1.5, numbers(t, COT_SHAPE(4), 2));
    cot_var   y                                = cot_data(t, COT_I64, COT_SHAPE(5), (int64_t[]){2, 0, 3, 1, 2});
    cot_var   q                                = cot_softmax(numbers(t, COT_SHAPE(5, 4), 3), -1);
    const cot_cross_entropy_options by_label[] = {{.weights = w},
                                                  {.ignore = true, .ignored = 2},
                                                  {.smoothing = 0.2},
                                                  {.weights = w, .ignore = true, .ignored = 2, .smoothing = 0.2},
                                                  {.weights = w, .smoothing = 0.1}};
    const cot_cross_entropy_options of[]       = {{.weights = w}, {.smoothing = 0.2}, {.weights = w, .smoothing = 0.2}};
    for (int k = 0; k < 5; k++) assert_near(cot_value(cot_nn_cross_entropy(x, y, &by_label[k])), want[k], 1e-14);
    for (int k = 0; k < 3; k++) assert_near(cot_value(cot_nn_cross_entropy(x, q, &of[k])), want_of[k], 1e-14);
    assert_near(cot_value(cot_nn_cross_entropy(x, y, NULL)), cot_value(cot_softmax_cross_entropy(x, y)), 0);
    /* a label that does not count may be no class */
    cot_var hidden = cot_data(t, COT_I64, COT_SHAPE(5), (int64_t[]){-100, 0, 3, 1, -100});
    assert_near(
        cot_value(cot_nn_cross_entropy(x, hidden, &(cot_cross_entropy_options){.ignore = true, .ignored = -100})),
        want[1], 1e-14);
    assert_ok(t);
    cot_tape_destroy(t);
}

static cot_var loss_of(int n, const cot_var *xs, void *user) {
    (void)n;
    cot_var                   y = cot_data(cot_tape_of(xs[0]), COT_I64, COT_SHAPE(5), (int64_t[]){2, 0, 3, 1, 2});
    cot_cross_entropy_options o = {.weights = xs[1], .smoothing = 0.2, .ignore = true, .ignored = 1};
    return cot_nn_cross_entropy(xs[0], user ? cot_softmax(xs[2], -1) : y, &o);
}

static void cross_entropies_have_derivatives_of_second_order(void **state) {
    (void)state;
    double data[3][20];
    for (int k = 0; k < 60; k++) data[k / 20][k % 20] = 1.5 + number(k % 20, k / 20);
    cot_array        at[3] = {{COT_F64, COT_SHAPE(5, 4), 20, data[0]},
                              {COT_F64, COT_SHAPE(4), 4, data[1]},
                              {COT_F64, COT_SHAPE(5, 4), 20, data[2]}};
    cot_check_report report;
    if (cot_check_grads(loss_of, NULL, 2, at, 2, &report) != COT_OK) fail_msg("%s", report.message);
    if (cot_check_grads(loss_of, &report, 3, at, 2, &report) != COT_OK) fail_msg("%s", report.message);
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* x with axes of extent 1 in front. */
static cot_var deep(cot_var x, int axes) {
    cot_shape from = cot_shape_of(x), s = {axes, {0}};
    for (int k = 0; k < axes; k++) s.dim[k] = k < axes - from.ndim ? 1 : from.dim[k - axes + from.ndim];
    return cot_reshape(x, s);
}

/* Groups of heads that are 3 wide: rotating them fails. */
static cot_var odd_heads(cot_params *p, cot_var x) {
    cot_nn_attention_options o = {.heads = 2, .kv_heads = 1, .rotary = 10000};
    return cot_nn_attention(p, "a", cot_concat(2, (cot_var[]){x, x}, -1), &o);
}

static cot_var refused_net(cot_params *p, cot_var x) {
    switch (*(int *)cot_params_user(p)) {
    case 0: return cot_nn_dense(p, "a", x, 0);
    case 1: return cot_nn_conv(p, "a", x, 4, COT_SHAPE(3, 3), true, COT_CONV_DEFAULT);
    case 2: return cot_nn_conv(p, "a", cot_reshape(x, COT_SHAPE(1, 2, 3)), 4, COT_SHAPE(0), true, COT_CONV_DEFAULT);
    case 3: return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 2});
    case 4: return cot_nn_attention(p, "a", x, NULL);
    case 5: return cot_nn_embedding(p, "a", x, 0, 2, COT_NO_PADDING);
    case 6: return cot_nn_lstm(p, "a", x, 0, NULL);
    case 7: return cot_nn_gru(p, "a", cot_index(x, 0, 0), 2, NULL);
    case 8: return cot_nn_layer_norm(p, "", x, 0);
    case 9: return cot_nn_batch_norm(p, NULL, x, 0, 0);
    case 10: return cot_nn_group_norm(p, "a", cot_index(x, 0, 0), 1, 0);
    case 11: return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 1, .rotary = 10000});
    case 12: return odd_heads(p, x);
    case 13: return cot_nn_attention(p, "a", deep(x, 16), &(cot_nn_attention_options){.heads = 1});
    case 14: return cot_nn_attention(p, "a", x, &(cot_nn_attention_options){.heads = 1, .context = deep(x, 16)});
    case 15: return cot_nn_attention(p, "a", deep(x, 15), &(cot_nn_attention_options){.heads = 3, .kv_heads = 1});
    case 16: return cot_nn_gru(p, "a", x, INT64_MAX / 2, NULL);
    case 17: return cot_nn_lstm(p, "a", x, INT64_MAX / 3, NULL);
    default: return cot_nn_dense(p, "a", COT_NONE, 2);
    }
}

static void layers_say_what_they_refuse(void **state) {
    (void)state;
    static const char rotated[] = "[nn_rotary] x has 3 axes, the last of extent 3, the base is 10000, the first "
                                  "position 0; there are two axes or more, the last even, a positive base and no "
                                  "negative positions",
                      wide[] = "[uniform] shape (3,9223372036854775807) has too many elements to address";
    static const char *const want[] = {"[nn_dense] x has 2 axes, the layer 0 units; it needs 1 or more of each",
                                       "[nn_conv] a kernel of 2 axes, x of 2, 3 channels in, 4 out, 1 groups; kernels "
                                       "have 1 to 3 axes, x two more, and "
                                       "groups divide both",
                                       "[nn_conv] the kernel is empty; its extents are 1 or more",
                                       "[nn_attention] the width is 3, with 2 heads and 2 heads of keys; heads divide "
                                       "the width, and those of keys the "
                                       "heads",
                                       "[nn_attention] the options are NULL; they say how many heads there are",
                                       "[nn_embedding] 0 rows of width 2; both are 1 or more",
                                       "[nn_lstm] the layer has 0 units; it needs 1 or more",
                                       "[nn_gru] x has 1 axes; it needs 2 or more",
                                       "[nn_layer_norm] the name is empty; parameters are found by it",
                                       "[nn_batch_norm] the name is NULL; parameters are found by it",
                                       "[nn_group_norm] x has 1 axes; it needs 2 or more",
                                       rotated,
                                       rotated,
                                       "[nn_attention] x has 16 axes; heads take 1 more, and at most 16 are possible",
                                       "[nn_attention] the context has 16 axes; heads take 1 more, and at most 16 are "
                                       "possible",
                                       "[nn_attention] x has 15 axes; heads take 2 more, and at most 16 are possible",
                                       wide,
                                       wide,
                                       "[nn_dense] the operand is not a value on a tape"};
    for (int k = 0; k < (int)(sizeof want / sizeof *want); k++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_params *p = cot_params_create(t);
        cot_params_set_user(p, &k);
        cot_status status = cot_params_init(p, refused_net, numbers(t, COT_SHAPE(2, 3), 1), cot_key_of(1));
        assert_int_equal(status, cot_tape_status(t));
        assert_string_equal(cot_tape_message(t), want[k]);
        assert_int_equal(cot_params_count(p), 0);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

/* Every layer without parameters, and with an input that is COT_NONE or forgotten: nothing crashes,
 * nothing is valid, and the path is as it was. */
static void what_is_no_value_is_an_error(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = params_of(t, dense, numbers(t, COT_SHAPE(2, 3), 1));
    cot_mark    start = cot_tape_mark(t);
    cot_var     gone = cot_ones(t, COT_F64, COT_SHAPE(2, 3));
    cot_tape_rewind(t, start);
    for (int k = 0; k < 3; k++) {
        cot_params              *q = k ? p : NULL;
        cot_var                  x = k < 2 ? COT_NONE : gone, y[16];
        cot_nn_attention_options o = {.heads = 1};
        int                      n = 0;
        y[n++] = cot_nn_dense(q, "a", x, 2);
        y[n++] = cot_nn_linear(q, "a", x, 2);
        y[n++] = cot_nn_embedding(q, "a", x, 2, 2, 0);
        y[n++] = cot_nn_conv(q, "a", x, 2, COT_SHAPE(1), true, COT_CONV_DEFAULT);
        y[n++] = cot_nn_conv_transpose(q, "a", x, 2, COT_SHAPE(1), true, COT_CONV_DEFAULT);
        y[n++] = cot_nn_layer_norm(q, "a", x, 0);
        y[n++] = cot_nn_rms_norm(q, "a", x, 0);
        y[n++] = cot_nn_group_norm(q, "a", x, 1, 0);
        y[n++] = cot_nn_batch_norm(q, "a", x, 0, 0);
        y[n++] = cot_nn_dropout(q, "a", x, 0.5);
        y[n++] = cot_nn_attention(q, "a", x, &o);
        y[n++] = cot_nn_rotary(x, 10000, 0);
        y[n++] = cot_nn_lstm(q, "a", x, 2, NULL);
        y[n++] = cot_nn_gru(q, "a", x, 2, NULL);
        y[n++] = cot_nn_statistic(q, "a", COT_SHAPE(2), x, (cot_init){0});
        y[n++] = cot_nn_cross_entropy(x, x, &(cot_cross_entropy_options){.smoothing = 0.1});
        for (int i = 0; i < n; i++) assert_false(cot_is_valid(y[i]));
        cot_tape_clear_error(t);
        assert_true(cot_is_valid(cot_nn_dense(p, "a", cot_ones(t, COT_F64, COT_SHAPE(2, 3)), 4)));
        assert_ok(t);
    }
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_compute_what_pytorch_does),
        cmocka_unit_test(layers_have_derivatives_of_second_order),
        cmocka_unit_test(batch_norms_follow_the_batches_and_are_used_in_evaluation),
        cmocka_unit_test(embeddings_are_rows_and_padding_begins_as_zeros),
        cmocka_unit_test(recurrent_layers_take_and_leave_their_state),
        cmocka_unit_test(rotary_positions_are_those_of_llama),
        cmocka_unit_test(decoding_with_a_cache_is_the_whole_forward_to_the_bit),
        cmocka_unit_test(a_cleared_cache_leaves_what_was_recorded),
        cmocka_unit_test(dropouts_differ_by_name_and_step_and_do_nothing_in_evaluation),
        cmocka_unit_test(cross_entropies_are_those_of_pytorch),
        cmocka_unit_test(cross_entropies_have_derivatives_of_second_order),
        cmocka_unit_test(layers_say_what_they_refuse),
        cmocka_unit_test(what_is_no_value_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
