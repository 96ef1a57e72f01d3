/* The smallest program of someone else's. */
#include <cotangent.h>
#include <stdio.h>

int main(void) { return printf("cotangent %s from C\n", cot_version()) < 0; }
