/* cmd_grad.c: cotangent grad and vjp: the value, and the seed times its derivative by each
 * input. */
#include "commands/commands.h"

#include <stdlib.h>

#include "problem/directions.h"
#include "commands/rank.h"
#include "problem/results.h"

int run_grad(const options *o, FILE *out, look how, failure *f) {
    problem         p;
    cot_array       seed = {0};
    double         *gradient = NULL;
    problem_input **wanted = NULL;
    int             n;
    if (!rank_usage(o, f)) return EXIT_USAGE;
    if (problem_for_derivatives(&p, o, f) && problem_seed(&p, &seed, f)) {
        gradient = malloc(((size_t)p.wanted_size + 1) * sizeof *gradient);
        wanted = result_wanted(&p, &n, f);
        if (!gradient) failure_memory(f);
        if (gradient && wanted &&
            directions_gradient(p.t, o->mode, p.y, seed.size, seed.data, p.wanted_count, p.wanted, p.wanted_size,
                                gradient, f)) {
            if (o->rank) rank_print(&p, out, how, n, wanted, gradient, f);
            else result_print(&p, out, how, "grad", "d/d", "", n, wanted, gradient, f);
        }
    }
    free(gradient);
    free(wanted);
    free(seed.data);
    problem_close(&p);
    return EXIT_FINE;
}
