/* nearest.c: finds the name that was meant. */
#include "base/names/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 100 };

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

/* The number of insertions, deletions, replacements and swaps of neighbours that turn a into b. A
 * difference of case does not count. */
static int distance(const char *a, int n, const char *b, int m) {
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= m; j++) rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (above[j] + 1 < best) best = above[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

/* Is one name the beginning of the other? */
static bool begins(const char *a, size_t n, const char *b, size_t m) {
    for (size_t i = 0; i < n && i < m; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

const char *cot__nearest(const char *name, int n, const char *const *among) {
    const char *found = NULL;
    /* The name found begins as `name` does: it wins over others that are as near. */
    bool        alike = false;
    size_t      length = strlen(name);
    if (length == 0 || length > LONGEST) return NULL;
    /* A third of the letters may be wrong. Of one letter only the case may be. */
    int best = (int)(length < 5 ? (length + 1) / 3 : length / 3) + 1;
    for (int i = 0; i < n; i++) {
        size_t m = strlen(among[i]);
        if (m > LONGEST || m + (size_t)best < length || length + (size_t)best < m) continue;
        int  d = distance(name, (int)length, among[i], (int)m);
        bool same = begins(name, length, among[i], m);
        bool nearer = d < best || (found && d == best && same && (!alike || m < strlen(found)));
        if (!nearer || (size_t)d >= m || (size_t)d >= length) continue;
        best = d;
        alike = same;
        found = among[i];
    }
    return found;
}
