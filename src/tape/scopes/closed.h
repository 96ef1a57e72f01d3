/* closed.h: scopes of the user's (cot_scope_open, cot_scope_close): what was recorded in one and is
 * not kept can be used no more, and of its memory only what rules read stays. Code that meets such
 * a value asks tape/scope.h.
 *
 * May call: base, backend, tape. Must not touch: derivatives; which values rules read, the masks of
 * the tape say. */
#ifndef COT_CLOSED_H
#define COT_CLOSED_H

#include "tape/scope.h"

#endif
