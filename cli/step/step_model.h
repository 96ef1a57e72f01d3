/* step_model.h: a walk through a trace, without a terminal: its position, the typed text, and what
 * each key does.
 *
 * Positions are numbered from 1: each node of the tape forward; then, if there is a sweep, the seed
 * and each step of the sweep; last the end, which shows the gradient (or why there is none). */
#ifndef COT_CLI_STEP_MODEL_H
#define COT_CLI_STEP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys are bytes, or these numbers above them. */
enum {
    KEY_NONE = 256,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_UP,
    KEY_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_ESCAPE,
    KEY_BACKSPACE
};

typedef enum step_phase { STEP_FORWARD, STEP_SEED, STEP_REVERSE, STEP_END } step_phase;
typedef enum step_mode { STEP_WALK, STEP_JUMP, STEP_CHANGE, STEP_PREDICT, STEP_HELP } step_mode;
/* What the caller must do after a key: draw again, quit, set an input as model->typed says, ask for
 * a prediction of the next step, or judge the one that was typed. */
typedef enum step_wish { STEP_DRAW, STEP_QUIT, STEP_SET, STEP_ASK, STEP_JUDGE } step_wish;

enum { STEP_TYPED = 1024, STEP_MESSAGE = 1024 };

typedef struct step_model {
    int64_t   nodes, steps;        /* of the trace; no steps: no sweep */
    int64_t   at;                  /* 1 … step_last */
    int64_t   shift;               /* lines by which the panel is scrolled */
    step_mode mode;
    size_t    length;
    bool      too_long;            /* more was typed than fits */
    char      typed[STEP_TYPED];   /* text typed at the prompt of STEP_JUMP or STEP_CHANGE */
    char      before[STEP_TYPED];  /* the last change; the key "up" brings it back */
    char      message[STEP_MESSAGE];
    bool      wrong;               /* the message is an error */
    char      question[512];       /* of STEP_PREDICT */
    int       asked, right;        /* predictions so far */
} step_model;

void       step_begin(step_model *m, int64_t nodes, int64_t steps);
step_wish  step_key(step_model *m, int key);
/* Opens a prompt; takes one step. */
void       step_ask(step_model *m, step_mode mode);
void       step_on(step_model *m);
int64_t    step_last(const step_model *m);
/* The phase of the present position. *index: the node (forward) or the step of the sweep
 * (reverse). */
step_phase step_where(const step_model *m, int64_t *index);
/* The number of nodes whose values are shown. */
int64_t    step_revealed(const step_model *m);
/* The number of steps of the sweep that are done; -1: the seed is not set yet. */
int64_t    step_swept(const step_model *m);
/* Keeps the position when the trace was made again with other sizes: the same place, or the
 * nearest. */
void       step_refit(step_model *m, int64_t nodes, int64_t steps);
void       step_say(step_model *m, bool wrong, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
