/* operand_letters.c: takes the formulas of structural operations apart. They are texts in which a
 * letter stands for an operand. */
#include "trace/operand_letters.h"

#include "base/text.h"

#include <string.h>

int cot__barred(const char *s, const char *letter) {
    static const struct { const char *letter, *barred; } one[] = {
        {"a", "\xc4\x81"}, {"u", "\xc5\xab"}, {"y", "\xc8\xb3"}, {"g", "\xe1\xb8\xa1"}};
    size_t n = strlen(letter);
    if (strncmp(s, letter, n) == 0 && strncmp(s + n, COT__BAR, 2) == 0) return (int)n + 2;
    for (int k = 0; k < COUNTOF(one); k++)
        if (strcmp(letter, one[k].letter) == 0 && strncmp(s, one[k].barred, strlen(one[k].barred)) == 0)
            return (int)strlen(one[k].barred);
    return 0;
}

void cot__formula_value(const char *formula, char *buf, size_t size) {
    const char *end = formula ? strstr(formula, "; ") : NULL;
    buf[0] = 0;
    if (!formula) return;
    if (strncmp(formula, "z = ", 4) == 0) formula += 4;
    snprintf(buf, size, "%.*s", end ? (int)(end - formula) : (int)strlen(formula), formula);
}

const char *cot__formula_adjoints(const char *formula) {
    const char *at = formula ? strstr(formula, "; ") : NULL;
    return at ? at + 2 : "";
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The next comma or semicolon outside of brackets, or the end. */
static const char *clause_end(const char *s) {
    for (int depth = 0; *s; s++) {
        depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        if (depth == 0 && (*s == ',' || *s == ';') && s[1] == ' ') break;
    }
    return s;
}

/* The end of the part that begins at s. A clause without an equals sign explains the clause before
 * it: "Φ: lower half". */
static const char *part_end(const char *s) {
    for (s = clause_end(s); *s;) {
        const char *end = clause_end(s + 2), *equals = strstr(s + 2, "= ");
        if (equals && equals < end) break;
        s = end;
    }
    return s;
}

static bool holds(const char *s, size_t n, const char *what, size_t length) {
    for (size_t i = 0; length && i + length <= n; i++)
        if (memcmp(s + i, what, length) == 0) return true;
    return false;
}

static void append(cot__text *x, const char *s, size_t n) {
    for (char piece[64]; n > 0;) {
        size_t take = n < sizeof piece ? n : sizeof piece - 1;
        while (take < n && ((unsigned char)s[take] & 0xc0) == 0x80) take--;
        memcpy(piece, s, take);
        piece[take] = 0;
        cot__put(x, piece);
        s += take, n -= take;
    }
}

void cot__formula_part(const char *adjoints, const char *letter, char *buf, size_t size) {
    cot__text   x = cot__text_buffer(buf, size);
    const char *found = NULL;
    size_t      length = 0;
    for (const char *p = adjoints; *p && !found;) {
        const char *end = part_end(p);
        int         bar = cot__barred(p, letter);
        if (bar) {
            found = strncmp(p + bar, " += ", 4) == 0 ? p + bar + 4 : p;
            length = (size_t)(end - found);
        }
        p = *end ? end + 2 : end;
    }
    if (!found) {
        cot__put(&x, adjoints);
        return;
    }
    append(&x, found, length);
    for (const char *p = adjoints; *p;) { /* definitions: "h = z̄·w" */
        const char *end = part_end(p), *equals = strstr(p, " = "), *plus = strstr(p, " += ");
        if (equals && equals < end && (!plus || plus > equals) && holds(found, length, p, (size_t)(equals - p)))
            cot__put(&x, ", "), append(&x, p, (size_t)(end - p));
        p = *end ? end + 2 : end;
    }
}

/* ---- names for letters ----------------------------------------------------------------------- */

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void cot__formula_fill(const char *rule, const cot__renaming *with, char *buf, size_t size) {
    cot__text x = cot__text_buffer(buf, size);
    char      before = ' ', barred[128];
    for (const char *p = rule; *p;) {
        int took = 0;
        for (int k = 0; k < with->count && !took && !in_word(before); k++) {
            size_t n = strlen(with->letter[k]);
            if ((took = cot__barred(p, with->letter[k])) != 0)
                cot__put(&x, cot__with_bar(with->name[k], barred, sizeof barred));
            else if (strncmp(p, with->letter[k], n) == 0 && !in_word(p[n])) {
                cot__put(&x, with->name[k]);
                took = (int)n;
            }
        }
        if (!took) {
            took = 1;
            while (((unsigned char)p[took] & 0xc0) == 0x80) took++;
            append(&x, p, (size_t)took);
        }
        before = p[took - 1];
        p += took;
    }
}
