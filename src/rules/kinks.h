/* kinks.h: kinks.def as a table. */
#ifndef COT_KINKS_H
#define COT_KINKS_H

#include "rules/elementwise_table.h"

typedef struct cot__kink {
    int              op;
    const cot__tree *condition;
    const char      *convention;
    bool (*holds)(double x, double y, double w);
    double point[3], partial[3];
} cot__kink;

typedef enum cot__kink_id {
#define KINK(id, ...) KINK_##id,
#define KINK_OF(...)
#include "rules/kinks.def"
    KINK_count
} cot__kink_id;

extern const cot__kink cot__kinks[KINK_count];

/* Conventions of operations over whole arrays: the words only. */
typedef struct cot__array_kink { int op; const char *condition, *convention; } cot__array_kink;

typedef enum cot__array_kink_id {
#define KINK(...)
#define KINK_OF(id, ...) ARRAY_KINK_##id,
#include "rules/kinks.def"
    ARRAY_KINK_count
} cot__array_kink_id;

extern const cot__array_kink cot__array_kinks[ARRAY_KINK_count];

#endif
