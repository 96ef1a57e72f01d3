/* lex.c: numbers, names, strings and operators as Python writes them. Comments and spaces are
 * skipped. */
#include "expr/lex.h"

#include "base/number.h"
#include "base/utf8.h"
#include "expr/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int peek(const cot__lexer *x, size_t ahead) {
    return x->at + ahead < x->length ? (unsigned char)x->text[x->at + ahead] : 0;
}

/* Skips spaces, comments, a backslash before the end of a line and, inside brackets, ends of
 * lines. */
static void pass_over(cot__lexer *x) {
    while (x->at < x->length) {
        int c = peek(x, 0);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || (c == '\n' && x->brackets > 0))
            x->at++;
        else if (c == '\\' && peek(x, 1) == '\n')
            x->at += 2;
        else if (c == '\\' && peek(x, 1) == '\r' && peek(x, 2) == '\n')
            x->at += 3;
        else if (c == '#')
            while (x->at < x->length && x->text[x->at] != '\n') x->at++;
        else
            return;
    }
}

static bool fail(cot__lexer *x, size_t start, size_t stop, const char *message) {
    return cot__expr_fail(x->error, x->text, x->length, start, stop, "%s", message);
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { LONGEST_NUMBER = 400 };

typedef struct digits {
    char text[LONGEST_NUMBER + 1];
    int  n;
    bool too_long;
} digits;

static void put(digits *d, int c) {
    if (d->n < LONGEST_NUMBER)
        d->text[d->n++] = (char)c;
    else
        d->too_long = true;
}

/* Digits with single underscores between them. */
static void run_of_digits(cot__lexer *x, digits *d) {
    while (is_digit(peek(x, 0)) || (peek(x, 0) == '_' && is_digit(peek(x, 1)))) {
        if (peek(x, 0) != '_') put(d, peek(x, 0));
        x->at++;
        if (peek(x, 0) == '_' && !is_digit(peek(x, 1))) return;
    }
}

static bool number(cot__lexer *x, cot__token *out) {
    digits d = {.n = 0};
    bool   whole = true;
    run_of_digits(x, &d);
    if (peek(x, 0) == '.' && !(peek(x, 1) == '.' && peek(x, 2) == '.')) {
        whole = false;
        put(&d, '.');
        x->at++;
        run_of_digits(x, &d);
    }
    int e = peek(x, 0), sign = peek(x, 1) == '+' || peek(x, 1) == '-';
    if ((e == 'e' || e == 'E') && is_digit(peek(x, 1 + (size_t)sign))) {
        whole = false;
        for (int k = 0; k <= sign; k++, x->at++) put(&d, peek(x, 0));
        run_of_digits(x, &d);
    }
    size_t end = x->at;
    while (is_letter(peek(x, 0)) || is_digit(peek(x, 0))) x->at++;
    if (d.too_long) return fail(x, out->start, end, "a number has at most 400 digits");
    if (x->at > end && d.n == 1 && d.text[0] == '0' && strchr("xXbBoO", x->text[end]))
        return fail(x, out->start, x->at, "numbers are decimal here: 16, not 0x10");
    if (x->at > end) {
        int name = (int)(x->at - end < 40 ? x->at - end : 40);
        d.text[d.n > 40 ? 40 : d.n] = 0;
        return cot__expr_fail(x->error, x->text, x->length, end, x->at,
                              "expected an operator between %s and %.*s; a product is written %s*%.*s", d.text, name,
                              x->text + end, d.text, name, x->text + end);
    }
    d.text[d.n] = 0;
    out->kind = TOKEN_NUMBER;
    out->number = cot__read_number(d.text, NULL);
    if (!whole) return true;
    errno = 0;
    out->integer = strtoll(d.text, NULL, 10);
    /* digits that an int64_t cannot hold are a floating-point number */
    if (errno == 0) out->kind = TOKEN_INTEGER;
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct { const char *text; int kind;
} words[] = {
    {"and", TOKEN_AND},        {"or", TOKEN_OR},          {"not", TOKEN_NOT},       {"if", TOKEN_IF},
    {"else", TOKEN_ELSE},      {"True", TOKEN_TRUE},      {"False", TOKEN_FALSE},   {"None", TOKEN_NONE},
    {"def", TOKEN_FOREIGN},    {"lambda", TOKEN_FOREIGN}, {"for", TOKEN_FOREIGN},   {"while", TOKEN_FOREIGN},
    {"return", TOKEN_FOREIGN}, {"import", TOKEN_FOREIGN}, {"from", TOKEN_FOREIGN},  {"in", TOKEN_FOREIGN},
    {"is", TOKEN_FOREIGN},     {"class", TOKEN_FOREIGN},  {"with", TOKEN_FOREIGN},  {"as", TOKEN_FOREIGN},
    {"del", TOKEN_FOREIGN},    {"elif", TOKEN_FOREIGN},   {"pass", TOKEN_FOREIGN},  {"yield", TOKEN_FOREIGN},
    {"global", TOKEN_FOREIGN}, {"try", TOKEN_FOREIGN},    {"raise", TOKEN_FOREIGN}, {"assert", TOKEN_FOREIGN},
};

static void name(cot__lexer *x, cot__token *out) {
    while (is_letter(peek(x, 0)) || is_digit(peek(x, 0))) x->at++;
    size_t n = x->at - out->start;
    out->kind = TOKEN_NAME;
    for (int i = 0; i < COUNTOF(words); i++)
        if (strlen(words[i].text) == n && memcmp(words[i].text, x->text + out->start, n) == 0)
            out->kind = words[i].kind;
}

static bool string(cot__lexer *x, cot__token *out) {
    int quote = peek(x, 0);
    x->at++;
    while (x->at < x->length && peek(x, 0) != quote && peek(x, 0) != '\n' && peek(x, 0) != '\\' && peek(x, 0) != 0)
        x->at++;
    if (peek(x, 0) == '\\') return fail(x, x->at, x->at + 1, "a string has no backslashes here");
    if (x->at >= x->length || peek(x, 0) != quote)
        return cot__expr_fail(x->error, x->text, x->length, out->start, out->start + 1,
                              "expected %c to end the string that starts here", quote);
    x->at++;
    out->kind = TOKEN_STRING;
    return true;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Characters that people type or paste, and what to write instead. */
static const struct { const char *text, *advice;
} lookalikes[] = {
    {"^", "'^' is no power here; write ** for a power"},
    {"!", "'!' is not part of the language; write not x, or != for unequal"},
    {"&", "'&' is not part of the language; write and for numbers, logical_and(x, y) for arrays"},
    {"|", "'|' is not part of the language; write abs(x) for an absolute value, or for numbers, logical_or(x, y) for "
          "arrays"},
    {"?", "'?' is not part of the language; a choice is written a if c else b, or where(c, a, b) for arrays"},
    {"~", "'~' is not part of the language; write not for numbers, logical_not(x) for arrays"},
    {"{", "'{' is not part of the language; lists are written [1, 2]"},
    {"\xc2\xa0", "a non-breaking space is not part of the language; write a plain one"},
    {"×", "'×' is not part of the language; write * for a product"},
    {"·", "'·' is not part of the language; write * for a product"},
    {"÷", "'÷' is not part of the language; write / for a quotient"},
    {"−", "'−' is not the minus of the keyboard; write -"},
    {"–", "'–' is not the minus of the keyboard; write -"},
    {"²", "'²' is not part of the language; write **2"},
    {"³", "'³' is not part of the language; write **3"},
    {"π", "'π' is not part of the language; write pi"},
    {"√", "'√' is not part of the language; write sqrt(x)"},
    {"∞", "'∞' is not part of the language; write inf"},
    {"≤", "'≤' is not part of the language; write <="},
    {"≥", "'≥' is not part of the language; write >="},
    {"≠", "'≠' is not part of the language; write !="},
    {"’", "'’' is no quotation mark here; write '"},
    {"‘", "'‘' is no quotation mark here; write '"},
    {"“", "'“' is no quotation mark here; write \""},
    {"”", "'”' is no quotation mark here; write \""},
};

static bool no_token(cot__lexer *x) {
    const char   *s = x->text + x->at;
    size_t        left = x->length - x->at, n = cot__utf8(s, left);
    unsigned char c = (unsigned char)*s;
    for (int i = 0; i < COUNTOF(lookalikes); i++) {
        size_t k = strlen(lookalikes[i].text);
        if (k <= left && memcmp(s, lookalikes[i].text, k) == 0) return fail(x, x->at, x->at + k, lookalikes[i].advice);
    }
    if (n > 1 || (n == 1 && c > ' ' && c < 0x7f))
        return cot__expr_fail(x->error, x->text, x->length, x->at, x->at + n, "'%.*s' is not part of the language",
                              (int)n, s);
    return cot__expr_fail(x->error, x->text, x->length, x->at, x->at + 1, "the byte 0x%02x is not part of the language",
                          c);
}

static const struct { const char *text; int kind;
} pairs[] = {
    {"**", TOKEN_POWER},         {"//", TOKEN_FLOOR_DIVIDE}, {"<=", TOKEN_LESS_EQUAL},
    {">=", TOKEN_GREATER_EQUAL}, {"==", TOKEN_EQUAL},        {"!=", TOKEN_NOT_EQUAL},
};

static bool is_arithmetic(int kind) {
    return kind == '+' || kind == '-' || kind == '*' || kind == '/' || kind == '%' || kind == '@' ||
           kind == TOKEN_POWER || kind == TOKEN_FLOOR_DIVIDE;
}

static bool operator(cot__lexer *x, cot__token *out) {
    int c = peek(x, 0), after = peek(x, 1);
    if (c == '.' && after == '.' && peek(x, 2) == '.') {
        out->kind = TOKEN_ELLIPSIS;
        x->at += 3;
        return true;
    }
    for (int i = 0; i < COUNTOF(pairs); i++)
        if (c == pairs[i].text[0] && after == pairs[i].text[1]) out->kind = pairs[i].kind;
    if (out->kind == TOKEN_END) {
        if (c == 0 || !strchr("+-*/%@()[],:;=<>.\n", c)) return no_token(x);
        out->kind = c;
        x->at++;
    } else {
        x->at += 2;
    }
    if (is_arithmetic(out->kind) && peek(x, 0) == '=' && peek(x, 1) != '=') {
        out->update = out->kind;
        out->kind = TOKEN_UPDATE;
        x->at++;
    }
    if (out->kind == '(' || out->kind == '[') x->brackets++;
    if ((out->kind == ')' || out->kind == ']') && x->brackets > 0) x->brackets--;
    return true;
}

bool cot__lex(cot__lexer *x, cot__token *out) {
    /* skip a byte order mark */
    if (x->at == 0 && x->length >= 3 && memcmp(x->text, "\xef\xbb\xbf", 3) == 0) x->at = 3;
    pass_over(x);
    *out = (cot__token){.kind = TOKEN_END, .start = (uint32_t)x->at, .stop = (uint32_t)x->at};
    if (x->at >= x->length) return true;
    int  c = peek(x, 0);
    bool ok = true;
    if (is_digit(c) || (c == '.' && is_digit(peek(x, 1))))
        ok = number(x, out);
    else if (is_letter(c))
        name(x, out);
    else if (c == '\'' || c == '"')
        ok = string(x, out);
    else
        ok = operator(x, out);
    out->stop = (uint32_t)x->at;
    return ok;
}
