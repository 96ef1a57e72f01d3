/* step_shape.c: views and arrangements: reshape, permute, broadcast, slices, joins, borders,
 * parts of matrices. */
#include "program.h"

STEP_FUNCTION(reshape) {
    value x = any_of(f, c);
    if (x.name < 0) return;
    int64_t   n = cot_size(x.var), parts = 1 + (int64_t)choose(c, 5);
    cot_shape s = {1, {-1}};
    if (n > 0 && n % parts == 0)
        s = chance(c, 2) ? (cot_shape){2, {parts, chance(c, 2) ? -1 : n / parts}}
                         : (cot_shape){3, {n / parts, 1, parts}};
    if (n == 1 && chance(c, 2)) s.ndim = 0;
    if (n == 0) s = (cot_shape){2, {0, parts}};
    if (wild(f, c)) s.dim[0] = (int64_t)choose(c, 9) - 3;
    say(f, "cot_reshape(%s, %s)", name_of(x), shape_text(s));
    put(f, cot_reshape(x.var, s));
}

STEP_FUNCTION(permute) {
    value x = any_of(f, c);
    if (x.name < 0) return;
    if (chance(c, 3)) {
        say(f, "cot_transpose(%s)", name_of(x));
        put(f, cot_transpose(x.var));
        return;
    }
    cot_axes order = {rank(x), false, {0}};
    for (int i = 0; i < order.n; i++) order.axis[i] = i;
    for (int i = order.n - 1; i > 0; i--) {
        int k = (int)choose(c, (unsigned)i + 1), swap = order.axis[i];
        order.axis[i] = order.axis[k], order.axis[k] = swap;
    }
    if (wild(f, c)) order.axis[0] = -7;
    say(f, "cot_permute(%s, %s)", name_of(x), axes_text(order));
    put(f, cot_permute(x.var, order));
}

STEP_FUNCTION(broadcast) {
    value x = any_of(f, c);
    if (x.name < 0) return;
    cot_shape s = cot_shape_of(x.var), z = s;
    if (cot_size(x.var) > 200) return;
    for (int i = 0; i < z.ndim; i++)
        if (z.dim[i] == 1) z.dim[i] = choose_extent(c);
    if (z.ndim < 4 && chance(c, 2)) {
        z.ndim = s.ndim + 1;
        for (int i = s.ndim; i > 0; i--) z.dim[i] = z.dim[i - 1];
        z.dim[0] = choose_extent(c);
    }
    say(f, "cot_broadcast_to(%s, %s)", name_of(x), shape_text(z));
    put(f, cot_broadcast_to(x.var, z));
}

STEP_FUNCTION(slice) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int     axis = choose_axis(f, c, x, 0);
    int64_t n = extent(x, axis), start = (int64_t)choose(c, (unsigned)n + 3) - 1,
            stop = (int64_t)choose(c, (unsigned)n + 3) - 1;
    int64_t step = (int64_t[]){1, 2, -1, -2, 1, 3, 1, -1}[choose(c, 8)];
    if (chance(c, 3)) stop = COT_END, start = step < 0 ? COT_END : start;
    if (n > 0 && chance(c, 4)) {
        int64_t i = (int64_t)choose(c, 2 * (unsigned)n) - n + (wild(f, c) ? n : 0);
        say(f, "cot_index(%s, %d, %lld)", name_of(x), axis, (long long)i);
        put(f, cot_index(x.var, axis, i));
        return;
    }
    say(f, "cot_slice(%s, %d, %lld, %lld, %lld)", name_of(x), axis, (long long)start, (long long)stop, (long long)step);
    put(f, cot_slice(x.var, axis, start, stop, step));
}

STEP_FUNCTION(axes_of_one) {
    value x = any_of(f, c);
    if (x.name < 0 || rank(x) > 5) return;
    if (chance(c, 2)) {
        int axis = choose_axis(f, c, x, 1);
        say(f, "cot_expand_dims(%s, %d)", name_of(x), axis);
        put(f, cot_expand_dims(x.var, axis));
    } else {
        cot_axes all = {-1, false, {0}};
        say(f, "cot_squeeze(%s, COT_ALL)", name_of(x));
        put(f, cot_squeeze(x.var, all));
    }
}

STEP_FUNCTION(join) {
    value x = any_of(f, c), y = pick(f, c, is_alike, x);
    if (x.name < 0 || y.name < 0) return;
    cot_var xs[3] = {x.var, y.var, x.var};
    int     n     = 1 + (int)choose(c, 3);
    bool    stack = chance(c, 2) || rank(x) == 0;
    if (rank(x) > 5) return;
    int axis = choose_axis(f, c, x, stack);
    say(f, "%s(%d, %s %s %s, %d)", stack ? "cot_stack" : "cot_concat", n, name_of(x), name_of(y), name_of(x), axis);
    put(f, stack ? cot_stack(n, xs, axis) : cot_concat(n, xs, axis));
}

STEP_FUNCTION(pad) {
    value     x      = any_of(f, c);
    cot_shape before = {0}, after = {0};
    if (x.name < 0 || cot_size(x.var) > 300) return;
    before.ndim = after.ndim = rank(x);
    for (int i = 0; i < rank(x); i++) before.dim[i] = choose(c, 3), after.dim[i] = choose(c, 3);
    double with = choose_number(f, c);
    say(f, "cot_pad(%s, %s, %s, %s)", name_of(x), shape_text(before), shape_text(after), number_text(with));
    put(f, cot_pad(x.var, before, after, with));
}

STEP_FUNCTION(arrange) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int      axis = choose_axis(f, c, x, 0);
    int64_t  n    = (int64_t)choose(c, 7) - 3;
    cot_axes axes = choose_axes(f, c, x);
    switch (choose(c, 5)) {
    case 0: say(f, "cot_roll(%s, %lld, %d)", name_of(x), (long long)n, axis), put(f, cot_roll(x.var, n, axis)); break;
    case 1: say(f, "cot_flip(%s, %s)", name_of(x), axes_text(axes)), put(f, cot_flip(x.var, axes)); break;
    case 2:
        n = n < 0 ? -n : n;
        say(f, "cot_repeat(%s, %lld, %d)", name_of(x), (long long)n, axis), put(f, cot_repeat(x.var, n, axis));
        break;
    case 3: {
        cot_shape reps = {1 + (int)choose(c, 2), {choose(c, 3), choose(c, 3)}};
        say(f, "cot_tile(%s, %s)", name_of(x), shape_text(reps)), put(f, cot_tile(x.var, reps));
        break;
    }
    default: {
        cot_var out[3];
        int     parts = extent(x, axis) % 2 == 0 && !wild(f, c) ? 2 : 1;
        say(f, "cot_split(%s, %d, %d, …)", name_of(x), parts, axis);
        if (cot_split(x.var, parts, axis, out) != COT_OK)
            put_status(f);
        else
            for (int k = 0; k < parts; k++) put(f, out[k]);
    }
    }
}

STEP_FUNCTION(matrix_part) {
    value   x = pick(f, c, chance(c, 4) ? is_vector : has_matrix, no_value);
    int64_t k = (int64_t)choose(c, 5) - 2;
    if (x.name < 0) return;
    switch (choose(c, 4)) {
    case 0:
        if (rank(x) == 1 && cot_size(x.var) > 30) return;
        say(f, "cot_diag(%s, %lld)", name_of(x), (long long)k), put(f, cot_diag(x.var, k));
        break;
    case 1: say(f, "cot_tril(%s, %lld)", name_of(x), (long long)k), put(f, cot_tril(x.var, k)); break;
    case 2: say(f, "cot_triu(%s, %lld)", name_of(x), (long long)k), put(f, cot_triu(x.var, k)); break;
    default: say(f, "cot_trace(%s, %lld)", name_of(x), (long long)k), put(f, cot_trace(x.var, k));
    }
}
