#include "fit.h"
void fit_plot(fit *x, FILE *out, const fit_result *r) { (void)x, (void)out, (void)r; }
