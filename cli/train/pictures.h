/* pictures.h: a picture of a trained model as a file in the folder of --pictures. */
#ifndef COT_CLI_TRAIN_PICTURES_H
#define COT_CLI_TRAIN_PICTURES_H

#include "train/train.h"

/* Makes the folder if it is not there, writes the file whole or not at all, and says on `out` where
 * it is. Where draw writes nothing, memory was short. */
bool picture_file(training *r, const char *folder, const char *name, void (*draw)(training *r, FILE *out), FILE *out,
                  failure *f);

#endif
