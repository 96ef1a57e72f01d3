/* bodies.h: loops as they are printed, and their ways back: the memory that they need while they
 * run, and what the two share. */
#ifndef COT_EMIT_BODIES_H
#define COT_EMIT_BODIES_H

#include "program/emit/block.h"
#include "program/loop_form.h"

/* Where things lie behind the dense copies of the operands, in bytes. Of a way back alone: the
 * adjoints, each twice; values that steps give out, which nobody wants; the kept states of each
 * carried value, and the list of them. Then comes the memory of the bodies. */
typedef struct cot__loop_room { int64_t states, bars, given, kept, list, bodies; } cot__loop_room;
cot__loop_room cot__loop_room_of(const cot__program *p, uint32_t k);
/* Where they end; and "(char *)workspace + …" for a place behind them, as a pointer to elements of
 * this dtype. */
int64_t cot__behind_copies(const cot__block *b);
void cot__put_room(const cot__block *b, cot_dtype d, int64_t at);

/* p_K and q_K point to carried value K now and after the step; the first state; and a step, of
 * which j_0 is the number. back: it is on the way back. */
void cot__put_states(const cot__block *b, const cot__form *f);
void cot__put_first_state(const cot__block *b, const cot__form *f, int depth);
void cot__put_step(const cot__block *b, const cot__form *f, bool back, int depth);
/* The end of a loop of unknown length, in whose step k_0 it stands: "if (…) break;". */
void cot__put_test(const cot__block *b, const cot__form *f, int depth);
/* "const ptrdiff_t j_0 = …;", from the number in the order of running. */
/* "if (the choice is not 0) {". */
void cot__put_choice(const cot__block *b, int depth);
void cot__put_step_number(const cot__block *b, const cot__form *f, const char *k, int depth);
/* "p = q, q = p" of two pointers with this number. */
void cot__put_swap(const cot__block *b, cot_dtype d, char p, char q, int number, int depth);

/* Arguments: an operand, what is carried, a slice of an operand at step j_0. And calls of bodies:
 * "e_0 = b_7(", and the memory that it needs, ");", and the return if it has refused something. */
void cot__put_argument(const cot__block *b, int k);
void cot__put_carried(const cot__block *b, const cot__form *f);
void cot__put_slice(const cot__block *b, int k);
void cot__open_body_call(const cot__block *b, int body, int depth);
void cot__close_body_call(const cot__block *b, int body, int depth);

/* "for (…) TO[…] = FROM[…];" over the elements of a value: each text is followed by an index, or,
 * of a value without axes, preceded by a star. */
void cot__put_elements_copy(const cot__block *b, const cot__view *v, const char *to, const char *from, int depth);

#endif
