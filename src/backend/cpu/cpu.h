/* cpu.h: the door of the CPU's backend: its table.
 *
 * Files above src/backend include this header of the folder and no other. */
#ifndef COT_CPU_BACKEND_H
#define COT_CPU_BACKEND_H

#include "backend/backend.h"

extern const cot__backend cot__cpu_backend;

#endif
