/* train_list.c: the models that can be trained. */
#include <string.h>

#include "base/names/nearest.h"
#include "train/train.h"

static const trainable *const all[] = {&train_gcn, &train_mnist, &train_gpt, &train_ode};
enum { MODELS = sizeof all / sizeof *all };

const char *train_names(void) { return "gcn, mnist, gpt or ode"; }

const trainable *train_find(const char *name, failure *f) {
    const char *names[MODELS];
    for (int k = 0; k < MODELS; k++) {
        if (strcmp(all[k]->name, name) == 0) return all[k];
        names[k] = all[k]->name;
    }
    const char *near = cot__nearest(name, MODELS, names);
    if (near) failure_usage(f, "there is no model %.100s; did you mean %s?", name, near);
    else failure_usage(f, "there is no model %.100s; it is %s", name, train_names());
    return NULL;
}
