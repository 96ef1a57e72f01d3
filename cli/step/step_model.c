/* step_model.c: positions, prompts and keys of a walk through a trace. */
#include "step/step_model.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 10, CTRL_C = 3, CTRL_D = 4, CTRL_H = 8, CTRL_U = 21, CTRL_W = 23, DELETE = 127 };

/* ---- positions ------------------------------------------------------------------------------- */

int64_t step_last(const step_model *m) { return m->nodes + (m->steps ? 1 + m->steps : 0) + 1; }

static void go(step_model *m, int64_t to) {
    int64_t last = step_last(m);
    m->at = to < 1 ? 1 : to > last ? last : to;
    m->shift = 0;
}

void step_begin(step_model *m, int64_t nodes, int64_t steps) {
    *m = (step_model){.nodes = nodes, .steps = steps, .at = 1};
}

step_phase step_where(const step_model *m, int64_t *index) {
    *index = m->at - 1;
    if (m->at <= m->nodes) return STEP_FORWARD;
    *index = m->at - m->nodes - 2;
    if (m->at == step_last(m)) return STEP_END;
    return *index < 0 ? STEP_SEED : STEP_REVERSE;
}

int64_t step_revealed(const step_model *m) { return m->at < m->nodes ? m->at : m->nodes; }

int64_t step_swept(const step_model *m) {
    int64_t done = m->at - m->nodes - 1;
    return m->steps == 0 || done < 0 ? -1 : done < m->steps ? done : m->steps;
}

void step_refit(step_model *m, int64_t nodes, int64_t steps) {
    int64_t    index, shift = m->shift;
    step_phase phase = step_where(m, &index);
    bool       same = m->nodes == nodes && m->steps == steps;
    m->nodes = nodes;
    m->steps = steps;
    if (same) return;
    switch (phase) {
    case STEP_FORWARD: go(m, index < nodes ? index + 1 : nodes); break;
    case STEP_SEED: go(m, nodes + 1); break;
    case STEP_REVERSE: go(m, steps == 0 ? nodes + 1 : nodes + 2 + (index < steps ? index : steps - 1)); break;
    case STEP_END: go(m, step_last(m)); break;
    }
    m->shift = phase == STEP_END ? shift : 0;
}

void step_say(step_model *m, bool wrong, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cot__vformat(m->message, sizeof m->message, format, arguments);
    va_end(arguments);
    m->wrong = wrong;
}

/* ---- prompts --------------------------------------------------------------------------------- */

void step_on(step_model *m) { go(m, m->at + 1); }

void step_ask(step_model *m, step_mode mode) {
    m->mode = mode;
    m->length = 0;
    m->typed[0] = 0;
    m->too_long = false;
}

static void jump(step_model *m) {
    const char *text = m->typed + strspn(m->typed, " ");
    char       *end;
    errno = 0;
    long long to = strtoll(text, &end, 10);
    m->mode = STEP_WALK;
    if (!*text) return;
    if (end == text || end[strspn(end, " ")])
        step_say(m, true, "a step is a whole number, 1 to %lld, not '%.40s'", (long long)step_last(m), text);
    else if (errno || to < 1 || to > step_last(m))
        step_say(m, true, "there is no step %.40s; they go from 1 to %lld", text, (long long)step_last(m));
    else
        go(m, to);
}

static step_wish enter(step_model *m) {
    if (m->too_long) {
        m->mode = STEP_WALK;
        step_say(m, true, "a line holds at most %d bytes; this one is longer, and nothing was done", STEP_TYPED - 1);
        return STEP_DRAW;
    }
    if (m->mode == STEP_JUMP) {
        jump(m);
        return STEP_DRAW;
    }
    bool predicted = m->mode == STEP_PREDICT;
    m->mode = STEP_WALK;
    if (m->typed[strspn(m->typed, " ")] == 0) return STEP_DRAW;
    if (predicted) return STEP_JUDGE;
    memcpy(m->before, m->typed, sizeof m->before);
    return STEP_SET;
}

/* Erases the last character of UTF-8. */
static void erase(step_model *m) {
    while (m->length > 0 && (m->typed[m->length - 1] & 0xc0) == 0x80) m->length--;
    if (m->length > 0) m->length--;
    m->typed[m->length] = 0;
}

static void type(step_model *m, int key) {
    if (key < ' ' || key > 255 || key == DELETE) return;
    if (m->length + 2 > sizeof m->typed) {
        /* enter reports it: half a line must not be taken for a whole one */
        m->too_long = true;
        return;
    }
    m->typed[m->length++] = (char)key;
    m->typed[m->length] = 0;
}

static step_wish prompt_key(step_model *m, int key) {
    switch (key) {
    case '\r':
    case '\n': return enter(m);
    case KEY_ESCAPE: m->mode = STEP_WALK; break;
    case CTRL_H:
    case DELETE:
    case KEY_BACKSPACE: erase(m); break;
    case CTRL_U: step_ask(m, m->mode); break;
    case CTRL_W:
        while (m->length > 0 && m->typed[m->length - 1] == ' ') erase(m);
        while (m->length > 0 && m->typed[m->length - 1] != ' ') erase(m);
        break;
    case KEY_UP:
        if (m->mode != STEP_CHANGE) break;
        memcpy(m->typed, m->before, sizeof m->typed);
        m->length = strlen(m->typed);
        break;
    default: type(m, key);
    }
    return STEP_DRAW;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static step_wish walk_key(step_model *m, int key) {
    switch (key) {
    case 'q':
    case 'Q': return STEP_QUIT;
    case KEY_RIGHT:
    case ' ':
    case 'n': go(m, m->at + 1); break;
    case 'p': return STEP_ASK;
    case KEY_LEFT:
    case 'b': go(m, m->at - 1); break;
    case KEY_PAGE_DOWN: go(m, m->at + PAGE); break;
    case KEY_PAGE_UP: go(m, m->at - PAGE); break;
    case KEY_HOME: go(m, 1); break;
    case KEY_END: go(m, step_last(m)); break;
    case 'r': go(m, m->nodes + 1); break;
    /* the drawing limits it */
    case KEY_DOWN: m->shift++; break;
    case KEY_UP: m->shift -= m->shift > 0; break;
    case 'g':
    case 'j': step_ask(m, STEP_JUMP); break;
    case 'i': step_ask(m, STEP_CHANGE); break;
    case '?':
    case 'h': m->mode = STEP_HELP; break;
    }
    return STEP_DRAW;
}

step_wish step_key(step_model *m, int key) {
    if (key == CTRL_C || key == CTRL_D) return STEP_QUIT;
    if (key == KEY_NONE) return STEP_DRAW;
    m->message[0] = 0;
    m->wrong = false;
    if (m->mode == STEP_WALK) return walk_key(m, key);
    if (m->mode != STEP_HELP) return prompt_key(m, key);
    m->mode = STEP_WALK; /* any key leaves the help, q too */
    return STEP_DRAW;
}
