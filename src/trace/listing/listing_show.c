/* listing_show.c: the listing as text and as JSON. */
#include "trace/listing/listing.h"

#include "tape/show.h"
#include "trace/trace.h"

#include <string.h>

void cot__listing_table(FILE *out, int width) {
    const char *family = NULL;
    char        value[COT__LISTING_TEXT + 8];
    cot__listing l;
    if (width == 0) width = 80;
    for (int i = 0, n = cot__listing_count(); i < n; i++) {
        cot__listing_get(i, &l);
        if (!family || strcmp(family, l.family) != 0) fprintf(out, "%s%s\n", family ? "\n" : "", l.family);
        family = l.family;
        cot__fit(l.value, width > 50 ? width - 26 : 24, value, sizeof value);
        fprintf(out, "  %-22s  %s\n", l.name, value);
    }
}

static void line(FILE *out, const char *what, const char *text) {
    if (*text) fprintf(out, "  %-10s %s\n", what, text);
}

void cot__listing_show(FILE *out, int i, const char *call) {
    cot__listing l;
    cot__listing_get(i, &l);
    if (call) fprintf(out, "%s   [%s]\n", call, l.family);
    else fprintf(out, "%s%s   [%s]\n", l.name, l.parameters, l.family);
    if (call && l.parameters[0]) fprintf(out, "  in C       cot_%s%s\n", l.name, l.parameters);
    line(out, "value", l.value);
    for (int k = 0; k < l.arity; k++) {
        char text[COT__LISTING_TEXT + 64], bar[32];
        if (l.partial[k][0])
            snprintf(text, sizeof text, "%s += %s", cot__with_bar(l.operand[k], bar, sizeof bar), l.partial[k]);
        else snprintf(text, sizeof text, "none of %s", l.operand[k]);
        line(out, k ? "" : "adjoints", text);
    }
    if (l.recorded_value[0] && strcmp(l.recorded_value, l.value) != 0) {
        if (strcmp(l.recorded_as, l.name) != 0) line(out, "on tape", l.recorded_as);
        line(out, "there", l.recorded_value);
    }
    line(out, "adjoints", l.adjoints);
    line(out, "remark", l.remark);
    line(out, "domain", l.domain);
    for (int k = 0; k < l.kink_count; k++) {
        if (k == 0) fputs("  where there is no derivative\n", out);
        fprintf(out, "    %s: %s\n", l.kinks[k].condition, l.kinks[k].convention);
    }
}

static void pair(cot__json *j, const char *key, const char *value) {
    cot__json_key(j, key);
    cot__json_string(j, value);
}

static void one(cot__json *j, int i) {
    cot__listing l;
    cot__listing_get(i, &l);
    cot__json_open(j, '{');
    pair(j, "name", l.name);
    pair(j, "family", l.family);
    pair(j, "parameters", l.parameters);
    pair(j, "value", l.value);
    cot__json_key(j, "partials");
    cot__json_open(j, '{');
    for (int k = 0; k < l.arity; k++) pair(j, l.operand[k], l.partial[k][0] ? l.partial[k] : NULL);
    cot__json_close(j, '}');
    pair(j, "recorded_as", l.recorded_as[0] ? l.recorded_as : NULL);
    pair(j, "recorded_value", l.recorded_value[0] ? l.recorded_value : NULL);
    pair(j, "adjoints", l.adjoints[0] ? l.adjoints : NULL);
    pair(j, "remark", l.remark[0] ? l.remark : NULL);
    pair(j, "domain", l.domain[0] ? l.domain : NULL);
    cot__json_key(j, "kinks");
    cot__json_open(j, '[');
    for (int k = 0; k < l.kink_count; k++) {
        cot__json_open(j, '{');
        pair(j, "condition", l.kinks[k].condition);
        pair(j, "convention", l.kinks[k].convention);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
    cot__json_close(j, '}');
}

void cot__listing_json(cot__json *j, int i) {
    if (i >= 0) {
        one(j, i);
        return;
    }
    cot__json_open(j, '[');
    for (int k = 0, n = cot__listing_count(); k < n; k++) one(j, k);
    cot__json_close(j, ']');
}
