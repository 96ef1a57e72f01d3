/* lin_reflect.c: Householder reflections, of which QR and the tridiagonal form are made. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_reflect.inc"
#include "backend/cpu/linalg/lin_types.h"
