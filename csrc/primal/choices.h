/* primal/choices.h - the labels worth a look where all labels are alike: those in use, and one that is not.
 *
 * Partitions (multicuts, clusterings, colourings) are written with as many labels as there may ever be sets. Nearly
 * all are not in use, and one of those is as good as any other: to look at all of them takes time, and a random choice
 * among them hardly ever falls on a set that there is (decision 0016). */
#ifndef FGI_CHOICES_H
#define FGI_CHOICES_H
#include "base/arena.h"
#include "model/model.h"

typedef struct fgi_choices {
    int32_t *labels; /* all labels: those in use first, and one that is not next, if there is one */
    int32_t *place;  /* per label: where it is among them */
    int32_t *users;  /* per label: variables that have it */
    int32_t n_labels, n_used;
    fgi_arena arena;
} fgi_choices;

/* NULL: labels are not alike (model/alike.h), or so few that nothing is gained; or there is no memory. */
fgi_choices *fgi_choices_create(const fgi_model *m);
void fgi_choices_free(fgi_choices *c);
void fgi_choices_count(fgi_choices *c, const int32_t *labels, int64_t n_vars); /* anew, for a whole labeling */
void fgi_choices_change(fgi_choices *c, int32_t from, int32_t to);             /* one variable changes */

static inline int32_t fgi_choices_number(const fgi_choices *c) { return c->n_used + (c->n_used < c->n_labels); }

#endif
