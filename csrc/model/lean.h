/* model/lean.h - wide factors without the variables that have one label: these cost room in every method, and some
 * methods have limits on the variables of a factor that only such variables can reach. */
#ifndef FGI_LEAN_H
#define FGI_LEAN_H
#include "model/model.h"

/* Has a table of very many variables some with one label? */
int fgi_model_is_wide(const fgi_model *m);
/* The same variables, scores and factors; wide tables have lost the axes of length 1, and their factors these
 * variables. A factor keeps two variables at least, so that nothing is added up. */
fgi_rc fgi_model_lean(const fgi_model *m, fgi_model **out, fgi_error *err);

#endif
