/* model/alike.h - labels that can be renamed. */
#ifndef FGI_ALIKE_H
#define FGI_ALIKE_H
#include "model/model.h"

/* Whether all variables have the same labels, and every labeling the same score when all its labels are renamed, in
 * whatever way: as in colourings, cuts and clusterings. It is the scores that are compared, to the last bit. Most
 * models are found out at the first variable. 0 also where there is no memory to find out. */
int fgi_labels_are_alike(const fgi_model *m);

#endif
