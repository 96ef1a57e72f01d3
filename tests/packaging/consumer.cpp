// The same program in C++.
#include <cotangent.h>
#include <cmath>
#include <cstdio>

int main() {
    cot_tape *t = cot_tape_create(nullptr);
    cot_var x1 = cot_scalar(t, 0.5), x2 = cot_scalar(t, 3.0);
    cot_var f = cot_add(cot_mul(x1, x2), cot_mul(2.0, cot_sin(x1)));
    cot_backward(f);
    double d1 = cot_grad_value(x1), d2 = cot_grad_value(x2);
    std::size_t size = 2; // numbers of every type mix in
    bool mixes = cot_value(cot_div(x2, size)) == 1.5 && cot_value(cot_mul(x2, 2L)) == 6 &&
                 cot_value(cot_add(x2, 1u)) == 4 && cot_value(cot_mul(x2, 0.5L)) == 1.5;
    bool ok = mixes && cot_tape_status(t) == COT_OK && std::fabs(d1 - 4.7551651237807455) < 1e-14 && d2 == 0.5;
    std::printf("cotangent %s from C++: f = %g  df/dx1 = %g  df/dx2 = %g %s\n", cot_version(), cot_value(f), d1, d2,
                cot_tape_message(t));
    cot_tape_destroy(t);
    return !ok;
}
