/* peak.h: the speed of the library's matrix product on this machine, as a measure for a run's. */
#ifndef COT_CLI_PEAK_H
#define COT_CLI_PEAK_H

/* Floating-point operations a second of a product of square f32 matrices, with the threads that
 * are set. Takes at most about 0.1 s. 0 if it cannot be measured. */
double peak_measure(void);

#endif
