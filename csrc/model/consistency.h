/* model/consistency.h - which labels of a factor's variables have a state that is not forbidden: the step that
 * generalised arc consistency (Mackworth 1977; Bessiere and Regin 1997) repeats. */
#ifndef FGI_CONSISTENCY_H
#define FGI_CONSISTENCY_H
#include "model/model.h"

/* One variable of a factor, and which of its labels are left. */
typedef struct fgi_domain {
    const double *scores; /* -INFINITY: the label is gone */
    int32_t card, live;   /* labels; those left, at least one */
    int64_t stride;       /* in the table */
    int32_t at;           /* scratch */
} fgi_domain;

/* seen[..]: 1 for labels with a state of finite score among the labels left, domain after domain. Returns how many of
 * the labels left have none. *work grows by the entries read. */
int64_t fgi_find_supports(int32_t arity, fgi_domain *domains, const double *values, uint8_t *seen, int64_t *work);
/* The same for a Potts table of score `equal` on the diagonal, `unequal` elsewhere. */
int64_t fgi_potts_supports(const fgi_domain domains[2], double equal, double unequal, uint8_t *seen);
/* The same for a factor as it is; domains as above, but for card and stride, which are filled in. */
int64_t fgi_view_supports(const fgi_model *m, const fgi_view *v, fgi_domain *domains, uint8_t *seen, int64_t *work);

#endif
