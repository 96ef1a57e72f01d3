/* The command: what each subcommand prints, as text and as JSON, against closed forms. */
#include "support/cli_test.h"

static void eval_prints_the_value(void **state) {
    (void)state;
    prints("cotangent eval '1 + 2'", "3\n");
    prints("cotangent eval 'x*y + sin(x)' x=pi/4 y=3", "3.0633012713788923\n");
    prints("cotangent eval '[[1, 2.5], [-3, 4]]'", "[[  1, 2.5],\n [ -3,   4]]\n");
    prints("cotangent eval 'x > 1' x=[0,2]", "[False,  True]\n");
    prints("cotangent eval --json 'x > 1' x=[0,2]", "{\"value\":[false,true]}\n");
    prints("cotangent eval --json 'W @ x' W=[[1,2],[3,4]] x=[5,6]", "{\"value\":[17,39]}\n");
    prints("cotangent eval --json '[nan, inf, -inf]'", "{\"value\":[\"nan\",\"inf\",\"-inf\"]}\n");
    prints("cotangent eval 'a = x**2; a + 1' x=3", "10\n");
    prints("cotangent eval -- -x x=1", "-1\n");
    prints("cotangent eval --dtype f32 'x/3' x=1", "0.33333334\n");
    prints("cotangent eval --dtype=f32 'x/3' x=1 --threads 2", "0.33333334\n");
    prints("cotangent eval 'zeros([0, 3])'", "[] of shape (0, 3)\n");
    prints("cotangent eval --json 'zeros([0, 3])'", "{\"value\":[]}\n");
}

static void values_come_from_literals_files_and_the_generator(void **state) {
    (void)state;
    prints("cotangent eval x 'x=uniform(1, [4], 1)'",
           "[-0.45284307304587834,   0.8124848967956497,  0.20256661423742695,\n   -0.766056256550965]\n");
    prints("cotangent eval --json x 'x=uniform(1,[2,2],1)'",
           "{\"value\":[[-0.45284307304587834,0.8124848967956497],[0.20256661423742695,-0.766056256550965]]}\n");
    prints("cotangent eval --json --dtype f32 x 'x=uniform(1,[1],1)'", "{\"value\":[-0.45284307]}\n");
    prints("cotangent eval --json x 'x=uniform(1,[],1/2)'", "{\"value\":-0.22642153652293917}\n");
    prints("cotangent eval 'x' 'x=sqrt(2)**2 - 2'", "4.440892098500626e-16\n");
    prints("cotangent eval 'take(x, i)' x=[5,6,7] 'i=cast([2,0], i64)'", "[7, 5]\n");
    prints("cotangent eval 'x + m' x=1.5 'm=True'", "2.5\n");
    prints("cotangent eval e e=7", "7\n");
    prints("cotangent grad --json 'x*x' 'x = (1 if (2 > 1) else 2) + 2'", "{\"value\":9,\"grad\":{\"x\":6}}\n");
    prints("cotangent eval 'x' 'x=uniform(1, [0, 3], max([1, 2]))'", "[] of shape (0, 3)\n");
    sh("printf 'a = x*2\\n# twice\\na + y\\n' > e.txt; cotangent eval -f e.txt x=1 y=3; cotangent eval x=1 y=4 "
       "-fe.txt; cotangent "
       "eval --file - x=2 y=1 < e.txt");
    assert_string_equal(last.out, "5\n6\n5\n");
}

/* {"descr":…} of two doubles 1.5, -2, and a .safetensors file with the same as f32. */
static void values_come_from_files(void **state) {
    (void)state;
    sh("printf '\\223NUMPY\\1\\0\\166\\0%%-117s\\n' \"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\" > "
       "a.npy;"
       "printf '\\0\\0\\0\\0\\0\\0\\370\\77\\0\\0\\0\\0\\0\\0\\0\\300' >> a.npy;"
       "printf '\\71\\0\\0\\0\\0\\0\\0\\0{\"w.0\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}} ' > "
       "m.safetensors;"
       "printf '\\0\\0\\300\\77\\0\\0\\0\\300' >> m.safetensors");
    assert_string_equal(last.err, "");
    prints("cotangent eval x x=@a.npy", "[1.5,  -2]\n");
    prints("cotangent grad 'sum(x**2)' x=@a.npy", "value = 6.25\nd/dx  = [ 3, -4]\n");
    prints("cotangent eval --json x x=@m.safetensors:w.0", "{\"value\":[1.5,-2]}\n");
    fails("cotangent eval x x=@m.safetensors", 2,
          "x: which tensor of m.safetensors? Write @m.safetensors:KEY; it holds w.0", "");
    fails("cotangent eval x x=@m.safetensors:w.1", 3,
          "x: m.safetensors has no tensor w.1; did you mean w.0? It holds w.0", "");
    fails("head -c 60 a.npy > b.npy; cotangent eval x x=@b.npy", 3,
          "x: b.npy is truncated: its header takes 118 bytes, and the file has 60", "");
    fails("cotangent eval x x=@nowhere.npy", 3, "x: cannot read nowhere.npy: No such file or directory", "");
    fails("mkdir -p d.npy; cotangent eval x x=@d.npy", 3, "x: cannot read d.npy: it is not a regular file", "");
    fails("cotangent eval x x=@a.txt", 2, "x: @a.txt is neither a .npy file nor .npz:KEY nor .safetensors:KEY", "");
}

static void grad_prints_value_and_gradient(void **state) {
    (void)state;
    prints("cotangent grad 'x*y + sin(x)' x=pi/4 y=3",
           "value = 3.0633012713788923\nd/dx  = 3.7071067811865475\nd/dy  = 0.7853981633974483\n");
    const char json[] = "{\"value\":3.0633012713788923,\"grad\":{\"x\":3.7071067811865475,\"y\":0.7853981633974483}}\n";
    prints("cotangent grad --json 'x*y + sin(x)' x=pi/4 y=3", json);
    prints("cotangent grad 'x*y + sin(x)' --mode=forward x=pi/4 --json y=3", json);
    prints("cotangent vjp --json 'x*y + sin(x)' x=pi/4 y=3", json);
    prints("cotangent grad --json 'x*y' x=2 y=3 --wrt y", "{\"value\":6,\"grad\":{\"y\":2}}\n");
    prints("cotangent grad --json 'x*y' x=2 y=3 --wrt 'y, x'", "{\"value\":6,\"grad\":{\"x\":3,\"y\":2}}\n");
    prints("cotangent grad --json 'x + 0*y' x=2 y=[1,1] --seed [1,2]",
           "{\"value\":[2,2],\"grad\":{\"x\":3,\"y\":[0,0]}}\n");
    prints("cotangent grad --json 'x**2' x=[1,2,3] --seed [1,0,-1]", "{\"value\":[1,4,9],\"grad\":{\"x\":[2,0,-6]}}\n");
    prints("cotangent grad --json 'x**2' x=[1,2,3] --seed=[1,0,-1] --mode forward",
           "{\"value\":[1,4,9],\"grad\":{\"x\":[2,0,-6]}}\n");
    prints("cotangent grad --json 'x**2' x=[1,2] --seed -1", "{\"value\":[1,4],\"grad\":{\"x\":[-2,-4]}}\n");
    prints("cotangent vjp --json 'W @ x' W=[[1,2],[3,4]] x=[5,6] --seed [1,-1]",
           "{\"value\":[17,39],\"grad\":{\"W\":[[5,6],[-5,-6]],\"x\":[-2,-2]}}\n");
    prints("cotangent grad --json x x=2", "{\"value\":2,\"grad\":{\"x\":1}}\n");
    prints("cotangent grad --json --dtype f32 'x**3/3' x=0.1",
           "{\"value\":0.00033333336,\"grad\":{\"x\":0.010000001}}\n");
}

static void products_follow_their_directions(void **state) {
    (void)state;
    prints("cotangent jvp --json 'x*y' x=2 y=3 --tangent x=1", "{\"value\":6,\"tangent\":3}\n");
    prints("cotangent jvp 'x*y' x=2 y=3 --tangent x=1 --tangent=y=10", "value = 6\nd/ds  = 23\n");
    prints("cotangent jvp 'x*y' x=2 y=3 --along x=1 --tangent y=10", "value = 6\nd/ds  = 23\n");
    prints("cotangent taylor --json 'x*y' x=2 y=3 --tangent x=1 --order 1", "{\"value\":6,\"taylor\":[3]}\n");
    prints("cotangent taylor 'exp(x)' x=0 --order 11 | tail -n 3", "d⁹/ds⁹   = 1\nd¹⁰/ds¹⁰ = 1\nd¹¹/ds¹¹ = 1\n");
    prints("cotangent jvp --json 'W @ x' W=[[1,2],[3,4]] x=[5,6] --tangent x=[1,0]",
           "{\"value\":[17,39],\"tangent\":[1,3]}\n");
    prints("cotangent taylor 'x**3' x=2 --order 4",
           "value  = 8\nd/ds   = 12\nd²/ds² = 12\nd³/ds³ = 6\nd⁴/ds⁴ = 0\n");
    prints("cotangent taylor --json 'x**3' x=2", "{\"value\":8,\"taylor\":[12,12,6]}\n");
    prints("cotangent taylor --json 'x*y' x=2 y=3 --along x=1 --along=y=10 --order 2",
           "{\"value\":6,\"taylor\":[23,20]}\n");
    prints("cotangent taylor --json 'W @ W' W=[[1,2],[3,4]] --along W=[[1,0],[0,0]] --order=2",
           "{\"value\":[[7,10],[15,22]],\"taylor\":[[[2,2],[3,0]],[[2,0],[0,0]]]}\n");
    prints("cotangent taylor --json 'x**2*y' x=3 y=1 --along y=1 --order 0", "{\"value\":9,\"taylor\":[]}\n");
    prints("cotangent taylor --json --dtype f32 'exp(x)' x=0 --order 2", "{\"value\":1,\"taylor\":[1,1]}\n");
    prints("cotangent hvp --json 'sum(x**3)' x=[1,2,3] --tangent x=[1,0,1]",
           "{\"value\":36,\"hvp\":{\"x\":[6,0,18]}}\n");
    prints("cotangent hvp 'x**2*y' x=2 y=5 --tangent y=1", "value    = 20\nd²/dx ds = 4\nd²/dy ds = 0\n");
    prints("cotangent hvp --json 'x**2*y' x=2 y=5 --along y=1", "{\"value\":20,\"hvp\":{\"x\":4,\"y\":0}}\n");
    prints("cotangent hvp --json 'x**2*y' x=2 y=5 --tangent y=1 --wrt x", "{\"value\":20,\"hvp\":{\"x\":4}}\n");
}

static void matrices_have_blocks_and_say_their_mode(void **state) {
    (void)state;
    prints("cotangent jac --json 'x**2' x=[1,2,3]",
           "{\"value\":[1,4,9],\"mode\":\"reverse\",\"jacobian\":{\"x\":[[2,0,0],[0,4,0],[0,0,6]]}}\n");
    prints("cotangent jac --json 'x**2' x=[1,2,3] --mode forward",
           "{\"value\":[1,4,9],\"mode\":\"forward\",\"jacobian\":{\"x\":[[2,0,0],[0,4,0],[0,0,6]]}}\n");
    prints("cotangent jac 'x*[1,2]' x=3",
           "value = [3, 6]\nd/dx  = [1, 2]\nmode: forward, 1 sweep (outputs 2, inputs 1)\n");
    prints("cotangent jac --json 'x*[1,2]' x=3 --mode reverse",
           "{\"value\":[3,6],\"mode\":\"reverse\",\"jacobian\":{\"x\":[1,2]}}\n");
    prints("cotangent jac --json 'W @ x' W=[[1,2],[3,4]] x=[5,6]",
           "{\"value\":[17,39],\"mode\":\"reverse\",\"jacobian\":{\"W\":[[[5,6],[0,0]],[[0,0],[5,6]]],\"x\":[[1,2],[3,"
           "4]]}}\n");
    const char hessian[] = "\"hessian\":{\"x\":{\"x\":802,\"y\":-400},\"y\":{\"x\":-400,\"y\":200}}}\n";
    char       out[256];
    snprintf(out, sizeof out, "{\"value\":0,\"mode\":\"forward over reverse\",%s", hessian);
    prints("cotangent hess --json '100*(y - x**2)**2 + (1 - x)**2' x=1 y=1", out);
    prints("cotangent hess --mode forward --json '100*(y - x**2)**2 + (1 - x)**2' x=1 y=1", out);
    snprintf(out, sizeof out, "{\"value\":0,\"mode\":\"reverse over reverse\",%s", hessian);
    prints("cotangent hess --mode reverse --json '100*(y - x**2)**2 + (1 - x)**2' x=1 y=1", out);
    prints("cotangent hess 'sum(x**3)*y' x=[1,2] y=1",
           "value    = 9\n"
           "d²/dx dx = [[ 6,  0],\n"
           "            [ 0, 12]]\n"
           "d²/dx dy = [ 3, 12]\n"
           "d²/dy dx = [ 3, 12]\n"
           "d²/dy dy = 0\n"
           "mode: forward over reverse, 3 sweeps (one for each element of the inputs)\n");
    prints("cotangent hess --json 'x**2' x=[3] --wrt x",
           "{\"value\":[9],\"mode\":\"forward over reverse\",\"hessian\":{\"x\":{\"x\":[[2]]}}}\n");
}

static void check_compares_and_its_status_tells(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent check 'logsumexp(x*y)' x=[1,2,3] y=0.5"), 0);
    assert_non_null(strstr(last.out, "forward with finite differences  agree "));
    assert_non_null(strstr(last.out, "reverse with forward             agree "));
    assert_non_null(strstr(last.out, "second order, both ways          agree "));
    assert_int_equal(sh("cotangent check 'relu(x)' x=0"), 1);
    assert_non_null(strstr(last.out, "forward with finite differences  DISAGREE"));
    assert_non_null(strstr(last.out, "relu (f) sits on its kink x = 0"));
    assert_string_equal(last.err, "");
    prints_json("cotangent check --json 'relu(x)' x=0");
    assert_int_equal(last.status, 1);
    assert_true(strncmp(last.out, "{\"agree\":false,\"jvp_error\":", 27) == 0);
    prints_json("cotangent check --json --dtype f32 'take(x, i)*s' x=[1,2,3] 'i=cast([0,2],i64)' s=3 --wrt x");
    assert_true(strncmp(last.out, "{\"agree\":true,", 14) == 0);
}

static void cost_of_functions_and_of_sizes(void **state) {
    (void)state;
    prints_json("cotangent cost --json 'sum(x**2)' x=[1,2,3]");
    assert_true(strncmp(last.out, "{\"inputs\":3,\"outputs\":1,", 24) == 0);
    assert_non_null(strstr(last.out, "\"cheaper\":\"reverse\""));
    prints_json("cotangent cost --json --inputs 1 --outputs 1000");
    assert_non_null(strstr(last.out, "\"cheaper\":\"forward\""));
    assert_int_equal(sh("cotangent cost --inputs 1000000"), 0);
    assert_non_null(strstr(last.out, "1000000 inputs, 1 output"));
    assert_non_null(strstr(last.out, "cheaper: reverse"));
    fails("cotangent cost x x=1 --inputs 3", 2, "cost takes an expression, or --inputs and --outputs, not both", "");
    fails("cotangent cost --inputs 0", 2, "--inputs is a whole number from 1 to 1000000000000, not '0'", "");
    fails("cotangent cost", 2,
          "cost needs an expression: cotangent cost [EXPR name=value… | --inputs N --outputs M | --depth N] [options]",
          "");
}

static void a_trace_has_the_tangents_of_every_input(void **state) {
    (void)state;
    prints_json("cotangent trace --json 'sum(x*y)' x=[1,2] y=3 --wrt y");
    assert_non_null(strstr(last.out, "\"tangents\":{\"y\":[{\"node\":1,\"tangent\":1,\"parts\":[]},"));
    assert_non_null(strstr(last.out, "\"tangent\":[1,2],\"parts\":[{\"from\":"));
    assert_non_null(strstr(last.out, "{\"node\":4,\"tangent\":3,\"parts\":[{\"from\":3,"));
    prints_json("cotangent trace --json 'floor(2.5)'");
    assert_non_null(strstr(last.out, "\"tangents\":{}"));
}

static void cost_of_many_steps(void **state) {
    (void)state;
    prints_json("cotangent cost --json --depth 10 --width 4 --batch 2 --states 2");
    assert_non_null(strstr(last.out, "{\"name\":\"plain\",\"kept\":10,\"runs\":10,\"time\":40,\"bytes\":640}"));
    assert_non_null(strstr(last.out, "{\"name\":\"micro\",\"kept\":10,\"runs\":10,\"time\":40,\"bytes\":320}"));
    assert_non_null(strstr(last.out, "[\"back\",0]]}"));
    prints_json("cotangent cost --json --depth 1001");
    assert_null(strstr(last.out, "schedule"));
    assert_int_equal(sh("cotangent cost --depth 100"), 0);
    assert_non_null(strstr(last.out, "binomial: at most 6 states besides the first and the last"));
    fails("cotangent cost --depth 3 --inputs 2", 2,
          "cost --depth takes neither an expression nor --inputs and --outputs", "");
    fails("cotangent cost --depth 3 --micro 2", 2,
          "--micro is 2, --batch is 1; a part has at least one of the batch", "");
    /* the largest of three parts of seven has three; f32 has half of the bytes */
    prints("cotangent cost --depth 2 --micro 3 --batch 7 --width 5 --dtype f32 | sed -n '4p;7p'",
           "plain               2          2              8    280\n"
           "micro               2          2              8    120\n");
    fails("cotangent cost 'x*x' x=1 --states 3", 2,
          "--width, --batch, --states and --micro are of --depth; an expression has its own sizes", "");
    fails("cotangent cost --inputs 3 --dtype f32", 2,
          "--dtype and --wrt are of an expression; --inputs and --outputs count numbers of 8 bytes", "");
    prints_json("cotangent cost --json --depth 10 --width 4 --batch 2 --states 2 --precision f16 --limit 64");
    assert_non_null(strstr(last.out, "{\"name\":\"plain\",\"kept\":10,\"runs\":10,\"time\":40,\"bytes\":160}"));
    assert_non_null(strstr(last.out, "\"bytes\":2,\"limit\":64,"));
    assert_non_null(strstr(last.out, "{\"name\":\"limit\",\"kept\":4,"));
    assert_int_equal(sh("cotangent cost --depth 100 --dtype f32 --limit 5"), 1);
    assert_non_null(strstr(last.out, "number of 4 bytes"));
    assert_non_null(strstr(last.out, "less than any plan needs: this is the smallest"));
    assert_int_equal(sh("cotangent cost --depth 100 --batch 4 --limit 1500"), 0);
    assert_non_null(strstr(last.out, " with the whole batch at once within 1500 bytes, which is sqrt\n"
                                     "       micro keeps to it too, in a time of 400 steps\n"));
    prints("cotangent cost --depth 100 --limit 1000 | tail -n 1",
           "limit: the fastest with the whole batch at once within 1000 bytes, which is plain\n");
    assert_int_equal(sh("cotangent cost --depth 10 --limit 1"), 1);
    assert_non_null(strstr(last.out, " within 1 byte, which is binomial\n       less than any plan needs: "));
    /* as many states as steps, or more: a loop runs each step twice all the same */
    for (int states = 8; states < 50; states += 20) {
        assert_int_equal(sh("cotangent cost --depth 10 --states %d", states), 0);
        assert_non_null(strstr(last.out, "\nbinomial           10         20             50     80\n"));
        assert_non_null(strstr(last.out, "binomial: all states, but as loops do: a step runs again on its way back; "));
    }
    assert_int_equal(sh("cotangent cost --depth 9 --batch 64 --limit 1000"), 0);
    assert_non_null(strstr(last.out, "       none keeps to it, this is the smallest; micro does\n"));
    fails("cotangent cost --depth 3 --precision f32", 2, "--precision is bf16 or f16, not 'f32'", "");
    fails("cotangent cost --inputs 3 --limit 5", 2, "--precision and --limit of cost go with --depth", "");
}

static void letters_of_rules_are_no_names(void **state) {
    (void)state;
    prints("cotangent explain 'y*x' x=1 y=0 | head -n 3",
           "value = 0\nThe gradient of leaf (x) is zero. It is cut at mul "
           "(f): its rule f̄·y gives 0 for\nthe adjoint f̄ = 1, y = 0.\n");
    assert_int_equal(sh("cotangent check 'relu(b)' b=0"), 1);
    assert_non_null(strstr(last.out, "\nb along direction 0, the result: jvp gives 0, central differences "));
    assert_int_equal(sh("cotangent check 'relu(b*c)' b=[0,1] c=2 --wrt c,b"), 1);
    assert_non_null(
        strstr(last.out, "\nb along direction 0, element 0 of the result: jvp gives 0, central differences "));
}

static void check_judges_where_it_can(void **state) {
    (void)state;
    const char *points[] = {"1e6", "1e10", "1e12", "1e14", "1e16", "1e100"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        assert_int_equal(sh("cotangent check 'sin(x)' x=%s", points[i]), 0);
        assert_int_equal(
            i > 2,
            strstr(last.out, "\nx along direction 0, the result: cannot be judged here: it changes too fast") != NULL);
    }
    assert_int_equal(sh("cotangent check 'sqrt(x)' x=1e-12"), 0);
    assert_int_equal(sh("cotangent check 'sin(1/x)' x=1e-9"), 0);
    assert_int_equal(sh("cotangent check 'abs(x)' x=1e-6"), 0);
    /* wrong by one in a cosine */
    assert_int_equal(sh("cotangent check 'sin(x) + detach(x)' x=1e10"), 1);
    assert_int_equal(sh("cotangent check 'x + 10000*detach(x)' x=1"), 1);
    /* far too large, of a function that hardly moves */
    assert_int_equal(sh("cotangent check 'detach(x)/1e30 + 1e20*(x - detach(x))' x=1"), 1);
    assert_int_equal(sh("cotangent check 'log(x)' x=-1"), 1);
    assert_null(strstr(last.out, "inf"));
    assert_non_null(strstr(last.out, "DISAGREE  nothing finite to compare"));
}

static void explain_names_the_operation(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent explain 'log(x - x) * 0' x=2"), 0);
    assert_non_null(strstr(last.out, "value = nan\n"));
    assert_non_null(strstr(last.out, "The result, mul (f), is nan. The first value that is not finite is log (v₂):\n"
                                     "log(v₁) = -inf for v₁ = 0."));
    prints("cotangent explain 'log(-1)*x' x=1",
           "value = nan\nThe result, mul (f), is nan. It comes from nan, a number that mul (f) was given:\n"
           "nan·x = nan for x = 1. The number comes from log(-1) in the expression.\n");
    /* through other numbers and names, the first of several; what was written so has no place */
    prints("cotangent explain 'a = 1 - 2*exp(1000); x + a' x=1",
           "value = -inf\nThe result, add (f), is -inf. It comes from -inf, a number that add (f) was\n"
           "given: x + -inf = -inf for x = 1. The number comes from exp(1000) in the\nexpression.\n");
    assert_int_equal(sh("cotangent explain 'where(x > 3, x, log(-1))' x=2"), 0);
    assert_non_null(strstr(last.out, "comes from log(-1) in"));
    /* it could be either */
    assert_int_equal(sh("cotangent explain 'where(x > 3, log(-1), x) + where(x > 1, inf - inf, x)' x=2"), 0);
    assert_null(strstr(last.out, "comes from"));
    prints("cotangent explain 'nan*x' x=2",
           "value = nan\nThe result, mul (f), is nan. It comes from nan, a number that mul (f) was given:\n"
           "nan·x = nan for x = 2.\n");
    prints("cotangent explain 'x*x' x=2", "value = 4\nnothing to explain: the value and all gradients are finite, no "
                                          "gradient is zero,\nand the point is smooth\n");
    prints_json("cotangent explain --json 'where(x > 0, log(x), 0)' x=0");
    assert_true(strncmp(last.out, "{\"value\":0,\"findings\":1,\"explanation\":", 38) == 0);
}

static void forward_mode_is_tables_and_needs_no_seed(void **state) {
    (void)state;
    prints("cotangent trace 'x**2' x=[1,2] --mode forward | tail -n 4",
           "forward mode along x[1], walk 2 of 2\n"
           "node  rule           tangent\n"
           "ẋ     it moves by 1  [0 1]\n"
           "ḟ     ẋ·2·x          [0 4]\n");
    static const char *const others[] = {"--json", "--html t.html", "--dot t.dot", "--c", "--seed 1"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        assert_int_equal(sh("cotangent trace 'x*y' x=1 y=2 --mode forward %s", others[k]), 2);
        assert_non_null(strstr(k ? last.err : last.out,
                               "--mode forward prints tables, and takes no seed; --json and --html have the tangents "
                               "beside the sweep, --dot and --c show the sweep: leave out --mode"));
    }
}

static void trace_shows_tape_and_sweep(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent trace 'x*y + sin(x)' x=pi/4 y=3"), 0);
    assert_non_null(strstr(last.out, "forward tape"));
    assert_non_null(strstr(last.out, "mul x y"));
    assert_non_null(strstr(last.out, "reverse sweep"));
    assert_non_null(strstr(last.out, "3.70711"));
    prints_json("cotangent trace --json 'x*y + sin(x)' x=pi/4 y=3");
    assert_non_null(strstr(last.out, "\"grad\":{\"x\":3.7071067811865475,\"y\":0.7853981633974483}"));
    prints_json("cotangent trace --json 'x**2' x=[1,2] --seed [1,10] --dtype f32");
    assert_non_null(strstr(last.out, "\"grad\":{\"x\":[2,40]}"));
    prints_json("cotangent trace --json 'x*y' x=1 y=2 --wrt y");
    assert_non_null(strstr(last.out, "\"grad\":{\"y\":1}"));
    prints_json("cotangent trace --json '1 + 2'");
    fails("cotangent trace 'x**2' x=[1,2]", 2,
          "[trace] the value has shape (2,), not one element; give --seed V of that shape, or use jac", "");
}

static void ops_lists_the_rules(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent ops"), 0);
    assert_non_null(strstr(last.out, "matmul"));
    assert_int_equal(sh("cotangent ops --names"), 0);
    assert_non_null(strstr(last.out, "\nsin\n"));
    assert_int_equal(sh("cotangent ops sum"), 0);
    assert_true(
        strncmp(last.out,
                "sum(x, axis=None, keepdims=False)   [Reductions]\n  in C       cot_sum(cot_var x, cot_axes axes)\n",
                60) == 0);
    const char *others[][2] = {{"clip", "clip is clamp\nclamp(x, min, max)   ["},
                               {"var", "var is variance\n"},
                               {"'*'", "* is mul\nmul(x, y)   ["},
                               {"'**'", "** is pow\n"},
                               {"@", "@ is matmul\n"},
                               {"concatenate", "concatenate is concat\n"},
                               {"stop_gradient", "stop_gradient is detach\n"},
                               {"arcsin", "arcsin is asin\n"},
                               {"//", "// is floor_divide\n"},
                               {"array", "array(x, dtype=None)   [Expressions]\n"},
                               {"asarray", "asarray is array\n"},
                               {"'<='", "<= is less_equal\n"},
                               {"slogdet", "slogdet(a)   [Expressions]\n"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(sh("cotangent ops %s", others[i][0]), 0);
        if (strncmp(last.out, others[i][1], strlen(others[i][1]))) fail_msg("ops %s: %s", others[i][0], last.out);
        char line[64];
        snprintf(line, sizeof line, "cotangent ops --json %s", others[i][0]);
        prints_json(line);
    }
    /* names of C are not those of the language */
    assert_int_equal(sh("cotangent ops | grep cot_"), 1);
    fails("cotangent ops arcsn", 2, "there is no operation arcsn; did you mean arcsin?", "");
    prints_json("cotangent ops --json");
    prints_json("cotangent ops --json --names");
    prints_json("cotangent ops --json matmul");
    fails("cotangent ops matmull", 2, "there is no operation matmull; did you mean matmul?", "");
    fails("cotangent ops sin cos", 2, "ops takes one name, not 2", "");
}

static void help_is_everywhere(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent --help"), 0);
    assert_non_null(strstr(last.out, "usage: cotangent COMMAND"));
    char *all = strdup(last.out);
    prints("cotangent -h", all);
    prints("cotangent help", all);
    static const char *const commands[] = {"eval",  "grad",  "vjp",  "jvp",     "hvp", "taylor", "jac", "hess",
                                           "trace", "check", "cost", "explain", "ops", "help"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char expected[64], *help;
        assert_non_null(strstr(all, commands[i]));
        assert_int_equal(sh("cotangent help %s", commands[i]), 0);
        snprintf(expected, sizeof expected, "usage: cotangent %s ", commands[i]);
        assert_true(strncmp(last.out, expected, strlen(expected)) == 0);
        assert_non_null(strstr(last.out, "--json"));
        assert_non_null(strstr(last.out, "example"));
        help = strdup(last.out);
        assert_int_equal(sh("cotangent %s --help", commands[i]), 0);
        assert_string_equal(last.out, help);
        free(help);
    }
    free(all);
    assert_int_equal(sh("cotangent --version"), 0);
    assert_true(strncmp(last.out, "cotangent 0.", 12) == 0);
}

static void help_tells_the_language_and_what_was_meant(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent help expressions"), 0);
    static const char *const parts[] = {
        "\nsyntax\n  numbers     1  .5  1e-3", "  arithmetic  + - * /   // and % (rounding down)",
        "  indexing    x[0]  x[-1]  x[1:, ::2]", "\n  Reductions                  sum mean prod max min argmax",
        "\n  Linear algebra              solve triangular_solve inv", "\nvalues\n  x=2  x=pi/4  x=[1,2,3] ",
        "\nsparse matrices, of A=@graph.npz\n  products       A @ x  x @ A",
        "cotangent eval 'W @ x + b' W=[[1,2],[3,4]]"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (!strstr(last.out, parts[k])) fail_msg("help expressions lacks %s:\n%s", parts[k], last.out);
    assert_null(strstr(last.out, "lu_factors")); /* not a function of expressions */
    for (const char *p = last.out, *end; (end = strchr(p, '\n')); p = end + 1) assert_true(end - p <= 90);
    prints("cotangent eval 'W @ x + b' W=[[1,2],[3,4]] x=[5,6] b=[1,1]", "[18, 40]\n");
    prints("cotangent eval 'sum(x[x > 0])' x=[-1,2,3]", "5\n");
    fails("cotangent help grd", 2, "there is no help on grd; did you mean `cotangent help grad`?", "");
    fails("cotangent help expresions", 2, "there is no help on expresions; did you mean `cotangent help expressions`?",
          "");
    fails("cotangent help softmax", 2, "softmax is an operation: `cotangent ops softmax` tells of it", "");
    fails("cotangent help arcsin", 2, "arcsin is an operation: `cotangent ops arcsin` tells of it", "");
    fails("cotangent help qqqqqqqq", 2,
          "there is no help on qqqqqqqq; `cotangent help` lists the commands, `cotangent help expressions` the "
          "language",
          "");
}

/* Numbers with all their digits, out and in again. */
static void numbers_read_back_to_the_same_double(void **state) {
    (void)state;
    static const char *const numbers[] = {"0.1",
                                          "1e-323",
                                          "5e-324",
                                          "1.7976931348623157e+308",
                                          "2.2250738585072014e-308",
                                          "0.30000000000000004",
                                          "9007199254740993.0",
                                          "-0.0",
                                          "1e22",
                                          "123456789012345680000.0"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (int json = 0; json < 2; json++) {
            double there = strtod(numbers[i], NULL), back;
            assert_int_equal(sh("cotangent eval x x=%s %s", numbers[i], json ? "--json" : ""), 0);
            back = strtod(last.out + (json ? strlen("{\"value\":") : 0), NULL);
            assert_memory_equal(&there, &back, sizeof there);
        }
    }
    sh("cotangent eval x 'x=uniform(3, [200], 1e-7)' | tr -d '[] \\n' | tr , '\\n' > numbers; cotangent eval --json x "
       "\"x=[$(paste "
       "-sd, numbers)]\" > a.json;"
       "cotangent eval --json x 'x=uniform(3, [200], 1e-7)' > b.json; cmp a.json b.json");
    assert_string_equal(last.out, "");
    assert_int_equal(last.status, 0);
}

/* A comma for a point in the locale changes nothing. */
static void numbers_do_not_depend_on_the_locale(void **state) {
    (void)state;
    prints("LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 cotangent eval --json 'x/4' x=1.5", "{\"value\":0.375}\n");
}

static void large_arrays_show_their_corners(void **state) {
    (void)state;
    prints("cotangent eval 'reshape(arange(1200), [1200])'",
           "[   0,    1,    2, …, 1197, 1198, 1199]  shape (1200,)\n");
    prints("cotangent eval 'reshape(arange(1200), [40, 30])'",
           "[[   0,    1,    2, …,   27,   28,   29],\n"
           " [  30,   31,   32, …,   57,   58,   59],\n"
           " [  60,   61,   62, …,   87,   88,   89],\n"
           " …,\n"
           " [1110, 1111, 1112, …, 1137, 1138, 1139],\n"
           " [1140, 1141, 1142, …, 1167, 1168, 1169],\n"
           " [1170, 1171, 1172, …, 1197, 1198, 1199]]  shape (40, 30)\n");
    assert_int_equal(sh("cotangent eval --json 'arange(1200)' | tr , '\\n' | wc -l | tr -d ' '"), 0);
    assert_string_equal(last.out, "1200\n");
}

static void a_number_has_derivatives(void **state) {
    (void)state;
    prints("cotangent grad 'x if x > 0 else 0' x=-1", "value = 0\nd/dx  = 0\n");
    prints("cotangent grad 'expm1(x)/x if x != 0 else 1' x=0 --dtype f32 --json", "{\"value\":1,\"grad\":{\"x\":0}}\n");
    prints("cotangent eval 'x if x > 0 else 0' x=-1", "0\n");
    assert_int_equal(sh("cotangent hess 'x if x > 0 else 0' x=-1 && cotangent check 'x if x > 0 else 0' x=-1 && "
                        "cotangent jvp 'x if x > 0 else 0' x=-1 --tangent x=1"),
                     0);
    assert_int_equal(sh("cotangent grad 'cast(x, i64)' x=-1"), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_derivatives),
        cmocka_unit_test(eval_prints_the_value),
        cmocka_unit_test(values_come_from_literals_files_and_the_generator),
        cmocka_unit_test(values_come_from_files),
        cmocka_unit_test(grad_prints_value_and_gradient),
        cmocka_unit_test(products_follow_their_directions),
        cmocka_unit_test(matrices_have_blocks_and_say_their_mode),
        cmocka_unit_test(check_compares_and_its_status_tells),
        cmocka_unit_test(cost_of_functions_and_of_sizes),
        cmocka_unit_test(cost_of_many_steps),
        cmocka_unit_test(a_trace_has_the_tangents_of_every_input),
        cmocka_unit_test(letters_of_rules_are_no_names),
        cmocka_unit_test(check_judges_where_it_can),
        cmocka_unit_test(explain_names_the_operation),
        cmocka_unit_test(forward_mode_is_tables_and_needs_no_seed),
        cmocka_unit_test(trace_shows_tape_and_sweep),
        cmocka_unit_test(ops_lists_the_rules),
        cmocka_unit_test(help_is_everywhere),
        cmocka_unit_test(help_tells_the_language_and_what_was_meant),
        cmocka_unit_test(numbers_read_back_to_the_same_double),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(large_arrays_show_their_corners),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
