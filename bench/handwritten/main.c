/* handwritten: some of the workloads in plain C with derivatives by hand, to compute ratios.
 * Arguments and output are those of `workloads`. */
#include "handwritten/handwritten.h"

int main(int argc, char **argv) {
    settings s = read_arguments(argc, argv, "c");
    share_start(s.threads);
    product_start(s.threads);
    if (product_is_blas()) s.system = "c-openblas";
    const workload all[] = {mlp_by_hand[0],     mlp_by_hand[1],     mlp_by_hand[2],     cnn_by_hand,   gpt_by_hand,
                            numbers_by_hand[0], numbers_by_hand[1], numbers_by_hand[2], passes_by_hand,
                            chain_by_hand,      deep_by_hand};
    return measure_all(all, (int)(sizeof all / sizeof *all), &s);
}
