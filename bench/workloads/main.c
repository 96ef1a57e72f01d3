/* workloads: times whole steps of small and middle-sized programs, which bench/README.md lists. It
 * prints one JSON object on each line.
 *
 *     workloads [--only NAME,NAME] [--threads N] [--seconds S]
 *
 * The result of the first step is compared with the known one. A wrong result is printed, and the
 * program fails. */
#include "workloads/workloads.h"

int main(int argc, char **argv) {
    const workload all[] = {mlp_workloads[0],    mlp_workloads[1],   mlp_workloads[2], mlp_workloads[3],
                            mlp_workloads[4],    mlp_workloads[5],   mlp_workloads[6], mlp_workloads[7],
                            mlp_workloads[8],    cnn_workload,       gpt_workload,     number_workloads[0],
                            number_workloads[1], number_workloads[2], chain_workload,   deep_workloads[0],
                            deep_workloads[1],   compiled_workloads[0], compiled_workloads[1],
                            compiled_workloads[2], compiled_workloads[3], compiled_workloads[4],
                            compiled_workloads[5], compiled_workloads[6], cnn_compiled_workload,
                            gpt_compiled_workload};
    char           system[64];
    snprintf(system, sizeof system, "cotangent-%s", cot_version());
    settings s = read_arguments(argc, argv, system);
    cot_set_threads(s.threads);
    return measure_all(all, (int)(sizeof all / sizeof *all), &s);
}
