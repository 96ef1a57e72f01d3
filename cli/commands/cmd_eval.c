/* cmd_eval.c: cotangent eval, the value. */
#include "commands/commands.h"

#include <stdlib.h>

#include "problem/results.h"
#include "problem/values.h"

int run_eval(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    cot_array value = {0};
    if (problem_open(&p, o, f) && problem_record(&p, f) && value_of_var(p.y, &value, f)) {
        if (o->json) {
            cot__json j = cot__json_to(out);
            cot__json_open(&j, '{');
            cot__json_key(&j, "value");
            print_json(&j, &value);
            result_note(&p, out, &j);
            cot__json_close(&j, '}');
            fputs("\n", out);
        } else {
            print_values(out, how, 1, &(labelled){.value = &value});
            result_note(&p, out, NULL);
        }
    }
    free(value.data);
    problem_close(&p);
    return EXIT_FINE;
}
