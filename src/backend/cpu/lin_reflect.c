/* lin_reflect.c: Householder reflections, of which QR and the tridiagonal form are made. */
#include "backend/cpu/lin.h"

#define LIN_TEMPLATE "backend/cpu/lin_reflect.inc"
#include "backend/cpu/lin_types.h"
