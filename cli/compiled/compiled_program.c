/* compiled_program.c: `compile --json` with --print or --report: the program as an object, for
 * whoever draws it.
 *
 *     --print    "values": in order, each an input, a constant or a result of an operation, with
 *                what it is made from and how; "outputs": which values they are; "text"
 *     --report   "facts": the numbers; "report": all of it in words */
#include "compiled/compiled.h"

#include <stdlib.h>

#include "backend/cpu/table/cpu.h"
#include "compile/compile.h"
#include "io/memory_file.h"
#include "program/plan.h"
#include "trace/json/json.h"

/* ---- values ---------------------------------------------------------------------------------- */

static const char *how_it_is_done(const cot__plan *plan, uint32_t k) {
    switch (plan->how[k]) {
    case COT__BY_GROUP: return "group";
    case COT__BY_SCALARS: return "scalar";
    case COT__BY_VIEW: return "view";
    default: return "job";
    }
}

static void put_operation(cot__json *j, const cot__plan *plan, uint32_t k) {
    const cot__program *p = plan->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    cot__json_key(j, "op");
    cot__json_string(j, cot__op_of(p->operation[k].op)->name);
    cot__json_key(j, "args");
    cot__json_open(j, '[');
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (x[i] == COT__NO_VALUE) {
            cot__json_open(j, '{');
            cot__json_key(j, "number");
            cot__json_number(j, cot__operation_number(p, k));
            cot__json_close(j, '}');
        } else cot__json_integer(j, x[i]);
    }
    cot__json_close(j, ']');
    cot__json_key(j, "how");
    cot__json_string(j, how_it_is_done(plan, k));
    if (plan->fusion.groups && plan->fusion.of[k] != COT__NO_VALUE) {
        cot__json_key(j, "group");
        cot__json_integer(j, plan->fusion.of[k] + 1);
    }
}

static void put_value(cot__json *j, const compiled *c, const cot__plan *plan, uint32_t v) {
    const cot__program *p = plan->p;
    uint32_t            maker = cot__value_maker(p, v);
    cot__view           x = cot__value_view(p, v);
    cot__json_open(j, '{');
    switch (cot__value_origin(p, v)) {
    case COT__FROM_INPUT:
        cot__json_key(j, "input");
        cot__json_string(j, c->input_name[maker]);
        break;
    case COT__FROM_CONSTANT:
        cot__json_key(j, "constant");
        cot__json_integer(j, maker);
        break;
    case COT__FROM_OPERATION: put_operation(j, plan, maker); break;
    }
    cot__json_key(j, "dtype");
    cot__json_string(j, cot__dtype_name(x.dtype));
    cot__json_key(j, "shape");
    cot__json_open(j, '[');
    for (int i = 0; i < x.ndim; i++) cot__json_integer(j, x.shape[i]);
    cot__json_close(j, ']');
    cot__json_close(j, '}');
}

static void put_outputs(cot__json *j, const compiled *c, const cot__program *p) {
    cot__json_key(j, "outputs");
    cot__json_open(j, '[');
    for (uint32_t k = 0; k < p->outputs; k++) {
        cot__json_open(j, '{');
        cot__json_key(j, "name");
        cot__json_string(j, c->output_name[k]);
        cot__json_key(j, "value");
        cot__json_integer(j, p->output[k]);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}

static void forget(const cot__caller *to, cot_status code, const char *text) { (void)to, (void)code, (void)text; }
static void ignore(const cot__caller *to, const char *text) { (void)to, (void)text; }

static bool put_values(cot__json *j, const compiled *c, const cot_program *program, failure *f) {
    cot__caller caller = {"compile", NULL, forget, ignore, NULL};
    cot__plan   plan;
    if (!cot__plan_open(&plan, program->runs, &cot__cpu_backend, &program->al, NULL, true, &caller))
        return failure_memory(f);
    cot__json_key(j, "values");
    cot__json_open(j, '[');
    for (uint32_t v = 0; v < program->runs->values; v++) put_value(j, c, &plan, v);
    cot__json_close(j, ']');
    put_outputs(j, c, program->runs);
    cot__plan_close(&plan);
    return true;
}

/* ---- words and numbers ----------------------------------------------------------------------- */

static bool put_text(cot__json *j, const char *key, cot_program *program, bool report, failure *f) {
    memory_file text = {0};
    bool        fine = memory_file_open(&text, f);
    if (fine && report) fine = cot_program_report(program, text.file) == COT_OK || failure_memory(f);
    else if (fine) cot_program_print(program, text.file);
    fine = text.file && memory_file_close(&text, f) && fine;
    if (fine) {
        cot__json_key(j, key);
        cot__json_string_n(j, text.text, text.size);
    }
    memory_file_free(&text);
    return fine;
}

static bool put_facts(cot__json *j, cot_program *program, failure *f) {
    cot_program_facts x;
    if (cot_program_measure(program, &x) != COT_OK) return failure_memory(f);
    const struct { const char *key; int64_t value; } facts[] = {
        {"operations", x.operations}, {"views", x.views}, {"scalars", x.scalars}, {"fused", x.fused},
        {"groups", x.groups}, {"jobs", x.jobs}, {"input_bytes", x.input_bytes}, {"constant_bytes", x.constant_bytes},
        {"output_bytes", x.output_bytes}, {"run_bytes", x.run_bytes}, {"workspace_bytes", x.workspace_bytes},
        {"fused_bytes", x.fused_bytes}};
    cot__json_key(j, "facts");
    cot__json_open(j, '{');
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++) {
        cot__json_key(j, facts[k].key);
        cot__json_integer(j, facts[k].value);
    }
    cot__json_close(j, '}');
    return true;
}

bool compiled_program_json(const compiled *c, cot_program *program, FILE *out, failure *f) {
    const options *o = c->p->o;
    cot__json      j = cot__json_to(out);
    bool           fine = true;
    cot__json_open(&j, '{');
    if (o->print) fine = put_values(&j, c, program, f) && put_text(&j, "text", program, false, f);
    if (fine && o->report) fine = put_facts(&j, program, f) && put_text(&j, "report", program, true, f);
    cot__json_close(&j, '}');
    fputs("\n", out);
    return fine;
}
