/* custom_job.h: a function of the user's as an operation of a program (cot__op). */
#ifndef COT_CUSTOM_JOB_H
#define COT_CUSTOM_JOB_H

#include "tape/lower.h"

bool  cot__custom_job_infer(const cot__job *j, cot__type *z);
void *cot__custom_job_open(const cot__job *j, const cot_allocator *al);
bool  cot__custom_job_go(const cot__job *j);
void  cot__custom_job_close(void *held);
bool  cot__custom_job_again(const cot__attr *a);
bool  cot__custom_job_effect(const cot__attr *a);
bool  cot__numbers_job_infer(const cot__job *j, cot__type *z);
void *cot__numbers_job_open(const cot__job *j, const cot_allocator *al);
bool  cot__numbers_job_go(const cot__job *j);
/* Records a derivative in numbers with these attributes on a tape again. */
cot_var cot__numbers_record(cot_tape *t, const cot__attr *of, int n, const cot_var *xs);
bool  cot__custom_plain(cot__rule *r, cot__plain *to);

#endif
