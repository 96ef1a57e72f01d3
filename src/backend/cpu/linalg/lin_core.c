/* lin_core.c: triangular systems, of which the factorisations are made. */
#include "backend/cpu/linalg/lin.h"
#include "base/math/elementary.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_core.inc"
#include "backend/cpu/linalg/lin_types.h"
