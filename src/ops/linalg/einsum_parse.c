/* einsum_parse.c: reads subscripts as NumPy does: "ij,jk->ik", "...ij->...ji", "ii", with spaces
 * anywhere.
 *
 * Each letter and each axis under "..." (counted from the right, where they align) becomes a label.
 * Without "->" the result has the axes under "..." and then the letters that appear once, in
 * alphabetical order, capitals first. */
#include "ops/linalg/einsum.h"

#include <string.h>

enum { LETTERS = 128, UNKNOWN = 255 };

typedef struct reader {
    cot__einsum *e;
    const char  *text;
    int          at;
    /* their labels; under: axes of "...", from the right */
    uint8_t      letter[LETTERS], under[COT_MAX_NDIM];
    /* how often each letter appears in operands */
    int          count[LETTERS];
    int          widest;                               /* axes under the longest "..." */
} reader;

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static char peek(reader *r) {
    while (r->text[r->at] == ' ') r->at++;
    return r->text[r->at];
}

/* How a message names a label. */
static const char *label_text(const cot__einsum *e, int label, char buf[24]) {
    if (e->name[label] == '.') strcpy(buf, "an axis under \"...\"");
    else snprintf(buf, 24, "'%c'", e->name[label]);
    return buf;
}

static bool bad_character(reader *r) {
    cot__fail(r->e->t, COT_VALUE,
              "[%s] '%c' at place %d of \"%s\" is out of place; subscripts are letters, \"...\", \",\" between "
              "operands and one \"->\"",
              r->e->op, r->text[r->at], r->at, r->text);
    return false;
}

/* Letters up to the next ',', '-' or the end; *dots: where "..." stands among them, -1 if nowhere.
 * False after an error. */
static bool read_group(reader *r, const char *whose, char *letters, int *n, int *dots) {
    *n = 0, *dots = -1;
    for (char c; (c = peek(r)) && c != ',' && c != '-'; r->at++) {
        if (c == '.') {
            if (strncmp(r->text + r->at, "...", 3) != 0) return bad_character(r);
            if (*dots >= 0) {
                cot__fail(r->e->t, COT_VALUE, "[%s] \"%s\" has \"...\" twice for %s; once is possible", r->e->op,
                          r->text, whose);
                return false;
            }
            *dots = *n;
            r->at += 2;
        } else if (!is_letter(c)) return bad_character(r);
        else if (*n == COT_MAX_NDIM) {
            cot__fail(r->e->t, COT_LIMIT, "[%s] \"%s\" has more than %d letters for %s; there are at most %d axes",
                      r->e->op, r->text, COT_MAX_NDIM, whose, COT_MAX_NDIM);
            return false;
        } else letters[(*n)++] = c;
    }
    return true;
}

static bool label_of(reader *r, uint8_t *known, char name, uint8_t *label) {
    cot__einsum *e = r->e;
    if (*known == UNKNOWN) {
        if (e->labels == COT__MAX_LABELS) {
            cot__fail(e->t, COT_LIMIT, "[%s] \"%s\" has more than %d different subscripts", e->op, r->text,
                      COT__MAX_LABELS);
            return false;
        }
        e->name[e->labels] = name;
        e->extent[e->labels] = 1;
        *known = (uint8_t)e->labels++;
    }
    *label = *known;
    return true;
}

/* The labels of letters, with `wide` axes where "..." stands. */
static bool label_axes(reader *r, const char *letters, int n, int dots, int wide, cot__einsum_term *term) {
    term->ndim = term->set = 0;
    for (int k = 0; k <= n; k++) {
        for (int i = wide; k == dots && i-- > 0;)
            if (!label_of(r, &r->under[i], '.', &term->label[term->ndim++])) return false;
        if (k < n && !label_of(r, &r->letter[(int)letters[k]], letters[k], &term->label[term->ndim++])) return false;
    }
    for (int k = 0; k < term->ndim; k++) term->set |= cot__label_bit(term->label[k]);
    return true;
}

static bool rank_differs(reader *r, int k, int n, int dots) {
    char      text[COT__SHAPE_TEXT];
    cot_shape s = cot_shape_of(r->e->terms[k].x);
    cot__fail(r->e->t, COT_SHAPE, "[%s] \"%s\" has %d letters for xs[%d] of shape %s; %s", r->e->op, r->text, n, k,
              cot__shape_text(s.ndim, s.dim, text),
              dots < 0 ? "each axis has one, or \"...\" stands for the others" : "there are no more letters than axes");
    return false;
}

static bool read_operand(reader *r, int k) {
    cot__einsum_term *term = &r->e->terms[k];
    char       letters[COT_MAX_NDIM], whose[24];
    int        n, dots, rank = term->ndim;
    snprintf(whose, sizeof whose, "xs[%d]", k);
    if (!read_group(r, whose, letters, &n, &dots)) return false;
    if (dots < 0 ? n != rank : n > rank) return rank_differs(r, k, n, dots);
    if (dots >= 0 && rank - n > r->widest) r->widest = rank - n;
    for (int i = 0; i < n; i++) r->count[(int)letters[i]]++;
    return label_axes(r, letters, n, dots, rank - n, term);
}

/* An extent of 1 repeats along the others, but not within one operand. */
static bool merge_extents(reader *r, int k) {
    cot__einsum *e = r->e;
    cot__einsum_term   *term = &e->terms[k];
    cot_shape    s = cot_shape_of(term->x);
    char         name[24];
    for (int i = 0; i < s.ndim; i++) {
        int label = term->label[i];
        for (int j = 0; j < i; j++)
            if (term->label[j] == label && s.dim[j] != s.dim[i]) {
                cot__fail(e->t, COT_SHAPE,
                          "[%s] %s names axes of extents %lld and %lld of xs[%d]; a subscript that repeats names a "
                          "diagonal of equal extents",
                          e->op, label_text(e, label, name), (long long)s.dim[j], (long long)s.dim[i], k);
                return false;
            }
        if (s.dim[i] == 1) continue;
        if (e->extent[label] != 1 && e->extent[label] != s.dim[i]) {
            cot__fail(e->t, COT_SHAPE,
                      "[%s] %s has extent %lld in xs[%d] and %lld before; extents of one subscript are equal or 1",
                      e->op, label_text(e, label, name), (long long)s.dim[i], k, (long long)e->extent[label]);
            return false;
        }
        e->extent[label] = s.dim[i];
    }
    return true;
}

static bool label_output(reader *r, const char *letters, int n, int dots) {
    int axes = n + r->widest;
    if (axes <= COT_MAX_NDIM) return label_axes(r, letters, n, dots, r->widest, &r->e->out);
    cot__fail(r->e->t, COT_LIMIT, "[%s] the output of \"%s\" has %d axes; there are at most %d", r->e->op, r->text,
              axes, COT_MAX_NDIM);
    return false;
}

static bool read_output(reader *r) {
    char letters[COT_MAX_NDIM];
    int  n, dots;
    r->at++;
    if (r->text[r->at] != '>') return r->at--, bad_character(r);
    r->at++;
    if (!read_group(r, "the output", letters, &n, &dots)) return false;
    if (peek(r)) return bad_character(r);
    for (int i = 0; i < n; i++) {
        if (!r->count[(int)letters[i]]) {
            cot__fail(r->e->t, COT_VALUE, "[%s] the output of \"%s\" has '%c', which no operand has", r->e->op, r->text,
                      letters[i]);
            return false;
        }
        for (int j = 0; j < i; j++)
            if (letters[i] == letters[j]) {
                cot__fail(r->e->t, COT_VALUE,
                          "[%s] the output of \"%s\" has '%c' twice; each subscript appears there once", r->e->op,
                          r->text, letters[i]);
                return false;
            }
    }
    if (dots < 0 && r->widest > 0) {
        cot__fail(
            r->e->t, COT_VALUE,
            "[%s] the output of \"%s\" has no \"...\", but operands have axes under theirs; write \"...\" there too",
            r->e->op, r->text);
        return false;
    }
    return label_output(r, letters, n, dots);
}

static bool infer_output(reader *r) {
    char letters[LETTERS];
    int  n = 0;
    for (int c = 0; c < LETTERS; c++)
        if (r->count[c] == 1) letters[n++] = (char)c;
    return label_output(r, letters, n, 0);
}

bool cot__einsum_parse(cot__einsum *e, const char *subscripts) {
    reader r = {.e = e, .text = subscripts};
    if (!subscripts) {
        cot__fail(e->t, COT_VALUE, "[%s] the subscripts are NULL; they are a text like \"ij,jk->ik\"", e->op);
        return false;
    }
    int groups = 1;
    for (const char *c = subscripts; *c && *c != '-'; c++) groups += *c == ',';
    if (groups != e->n) {
        cot__fail(e->t, COT_VALUE, "[%s] \"%s\" has subscripts for %d operands; there are %d", e->op, subscripts,
                  groups, e->n);
        return false;
    }
    memset(r.letter, UNKNOWN, sizeof r.letter);
    memset(r.under, UNKNOWN, sizeof r.under);
    for (int k = 0; k < e->n; k++) {
        if (!read_operand(&r, k)) return false;
        if (peek(&r) == ',') r.at++;
    }
    for (int k = 0; k < e->n; k++)
        if (!merge_extents(&r, k)) return false;
    return peek(&r) == '-' ? read_output(&r) : infer_output(&r);
}
