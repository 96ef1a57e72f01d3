/* cmd_explain.c: cotangent explain: where a NaN, an infinity or a zero gradient comes from, and
 * which kinks the point sits on. */
#include "commands/commands.h"

#include <stdlib.h>

#include "problem/results.h"
#include "texts/cures.h"
#include "trace/trace.h"
#include "problem/values.h"

static void print_explanation(const problem *p, FILE *out, look how, const cot_array *value, int findings,
                              const char *explanation, int kinks, const char *report) {
    const char *cures[CURES_MOST];
    int         helps = cures_find(findings ? explanation : "", kinks ? report : "", p->o->dtype == COT_F32, cures);
    if (p->o->json) {
        cot__json j = cot__json_to(out);
        cot__json_open(&j, '{');
        cot__json_key(&j, "value");
        print_json(&j, value);
        cot__json_key(&j, "findings");
        cot__json_integer(&j, findings);
        cot__json_key(&j, "explanation");
        cot__json_string(&j, explanation);
        cot__json_key(&j, "kinks");
        cot__json_integer(&j, kinks);
        cot__json_key(&j, "report");
        cot__json_string(&j, report);
        cot__json_key(&j, "cures");
        cot__json_open(&j, '[');
        for (int k = 0; k < helps; k++) cot__json_string(&j, cures[k]);
        cot__json_close(&j, ']');
        result_note(p, out, &j);
        cot__json_close(&j, '}');
        fputs("\n", out);
        return;
    }
    print_values(out, how, 1, &(labelled){"value", value});
    if (findings) cot__paragraph(out, how.width, 0, explanation);
    if (kinks) fputs("not smooth here:\n", out), cot__paragraph(out, how.width, 2, report);
    if (helps) fputs("what helps:\n", out);
    for (int k = 0; k < helps; k++) cot__paragraph(out, how.width, 2, cures[k]);
    if (!findings && !kinks)
        cot__paragraph(out, how.width, 0,
                       "nothing to explain: the value and all gradients are finite, no gradient is zero, and the point "
                       "is smooth");
    result_note(p, out, NULL);
}

int run_explain(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    cot_array value = {0};
    if (problem_open(&p, o, f) && problem_record(&p, f) && value_of_var(p.y, &value, f)) {
        int   findings, kinks = 0;
        char *explanation = cot__whole_text(cot_explain, p.y, &findings);
        char *report = explanation ? cot__whole_text(cot_report, p.y, &kinks) : NULL;
        if (report)
            print_explanation(&p, out, how, &value, findings, explanation, kinks, report);
        else
            failure_memory(f);
        free(explanation);
        free(report);
    }
    free(value.data);
    problem_close(&p);
    return EXIT_FINE;
}
