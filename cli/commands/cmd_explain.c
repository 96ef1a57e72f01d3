/* cmd_explain.c: cotangent explain: where a NaN, an infinity or a zero gradient comes from, and
 * which kinks the point sits on. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "problem/results.h"
#include "texts/cures.h"
#include "trace/trace.h"
#include "problem/values.h"

/* Where the explanation blames what node k of the expression was given; NULL: it does not. */
static char *find_blamed(const problem *p, int64_t k, char *explanation) {
    char        text[COT__FORMULA_TEXT], blamed[COT__FORMULA_TEXT + 40];
    uint32_t    node = (uint32_t)(p->first + k);
    bool        given = cot__op_of(p->t->nodes[node].op)->kind == KIND_SOURCE;
    const char *name = cot__describe(p->t, node, text, sizeof text);
    if (p->spans[k].odd_stop == p->spans[k].odd_start) return NULL;
    snprintf(blamed, sizeof blamed, given ? "not finite is %s: " : ", a number that %s was given:", name);
    return strstr(explanation, blamed);
}

/* The explanation, which it takes, with where in the expression the number came about that it
 * blames: numbers are computed among themselves, and nothing is recorded that it could name. NULL:
 * out of memory. */
static char *with_number(const problem *p, char *explanation) {
    enum { MOST = 60, ROOM = MOST + 60 }; /* bytes of the expression; of the sentence */
    const cot__expr_span *odd = NULL;
    char                  sentence[ROOM], *at = NULL;
    for (int64_t k = 0; explanation && k < p->span_count; k++) {
        char *blamed = find_blamed(p, k, explanation);
        if (!blamed) continue;
        if (odd && odd->odd_start != p->spans[k].odd_start) return explanation; /* one of two */
        odd = &p->spans[k], at = blamed;
    }
    if (!odd) return explanation;
    size_t bytes = odd->odd_stop - odd->odd_start, all = bytes, before;
    if (bytes > MOST) bytes = MOST;
    while (bytes < all && ((unsigned char)p->text[odd->odd_start + bytes] & 0xc0) == 0x80) bytes--;
    snprintf(sentence, sizeof sentence, " The number comes from %.*s%s in the expression.", (int)bytes,
             p->text + odd->odd_start, bytes < all ? "…" : "");
    before = (size_t)(at - explanation) + strcspn(at, "\n");
    char *longer = realloc(explanation, strlen(explanation) + ROOM);
    if (!longer) return free(explanation), NULL;
    memmove(longer + before + strlen(sentence), longer + before, strlen(longer + before) + 1);
    memcpy(longer + before, sentence, strlen(sentence));
    return longer;
}

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
        char *explanation = with_number(&p, cot__whole_text(cot_explain, p.y, &findings));
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
