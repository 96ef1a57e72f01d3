/* A robot arm on a microcontroller: three joints turn until the tool is where it should be.
 *
 * reach.c and reach.h are printed by `cotangent compile` (run.sh does it): the squared distance
 * from the tool to the target (x, y), and its gradient by the angles of the joints. They need no
 * library, no memory and no libm, so this program runs wherever there is a C
 * compiler, and prints the same digits everywhere. */
#include "reach.h"

#include <stdio.h>

int main(void) {
    const float l1 = 0.4f, l2 = 0.3f, l3 = 0.15f; /* metres */
    const float target[3][2] = {{0.5f, 0.4f}, {-0.2f, 0.6f}, {0.3f, -0.3f}};
    float       q1 = 0.1f, q2 = 0.2f, q3 = 0.3f; /* radians */
    for (int k = 0; k < 3; k++) {
        float distance, g1, g2, g3;
        int   steps = 0;
        do {
            reach(q1, q2, q3, l1, l2, l3, target[k][0], target[k][1], &distance, &g1, &g2, &g3, NULL);
            q1 -= g1;
            q2 -= g2;
            q3 -= g3;
        } while (distance > 1e-8f && ++steps < 1000);
        printf("(%4.1f, %4.1f): q = %.9g %.9g %.9g after %d steps\n", (double)target[k][0], (double)target[k][1],
               (double)q1, (double)q2, (double)q3, steps);
    }
    return 0;
}
