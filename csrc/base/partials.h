/* base/partials.h - sums of a few doubles without any rounding: as partial sums that do not overlap (Shewchuk 1997). */
#ifndef FGI_PARTIALS_H
#define FGI_PARTIALS_H

/* All bits of doubles, 2098, in pieces of 53, and one that is on its way. */
enum { FGI_MOST_PARTIALS = 42 };
typedef struct fgi_partials {
    double at[FGI_MOST_PARTIALS]; /* by ascending magnitude, none of them 0 */
    int n;
} fgi_partials; /* begins with n = 0 */

void fgi_partials_add(fgi_partials *p, double x); /* finite */
/* The sum, rounded once, to nearest (ties to even); not finite where a sum on the way was too large for a double. */
double fgi_partials_value(const fgi_partials *p);

#endif
