/* primal/tiers.h - penalties that stand for constraints: costs so far above all smaller ones that a labeling which pays
 * none of them, if there is one, is most likely better than any that does.
 *
 * A cost is how far a score lies below the best of its factor or unary. Sorted, the costs of such models fall into
 * groups with wide gaps between them: preferences of 0.01 and penalties of 10. Each group but the lowest is a tier. */
#ifndef FGI_TIERS_H
#define FGI_TIERS_H
#include "model/model.h"

enum { FGI_MOST_TIERS = 4 }; /* the highest ones are taken */

/* The least costs of the tiers, the highest first; returns how many there are. None where the tables are too large for
 * a look at every entry, or there is no memory for it. */
int32_t fgi_tiers_find(const fgi_model *m, double least[FGI_MOST_TIERS]);
/* The largest cost that the labeling pays in one place. */
double fgi_tiers_paid(const fgi_model *m, const int32_t *labels);

#endif
