/* workloads: times whole steps of small and middle-sized programs, which bench/README.md lists. It
 * prints one JSON object on each line.
 *
 *     workloads [--only NAME,NAME] [--threads N] [--seconds S]
 *
 * The result of the first step is compared with the known one. A wrong result is printed, and the
 * program fails. */
#include "workloads/workloads.h"

int main(int argc, char **argv) {
    workload all[64];
    int      count = 0;
#define TAKE(table) \
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) all[count++] = table[k]
    TAKE(mlp_workloads);
    TAKE(cnn_workloads);
    TAKE(gpt_workloads);
    TAKE(number_workloads);
    TAKE(chain_workloads);
    TAKE(deep_workloads);
    TAKE(compiled_workloads);
    TAKE(cnn_compiled_workloads);
    TAKE(gpt_compiled_workloads);
    TAKE(layer_workloads);
    TAKE(gcn_workloads);
    TAKE(gcn_compiled_workloads);
#undef TAKE
    char     system[64];
    snprintf(system, sizeof system, "cotangent-%s", cot_version());
    settings s = read_arguments(argc, argv, system);
    cot_set_threads(s.threads);
    return measure_all(all, count, &s);
}
