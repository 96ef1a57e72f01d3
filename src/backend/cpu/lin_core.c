/* lin_core.c: triangular systems, of which the factorisations are made. */
#include "backend/cpu/lin.h"

#define LIN_TEMPLATE "backend/cpu/lin_core.inc"
#include "backend/cpu/lin_types.h"
