/* base/partials.c - see base/partials.h. */
#include "base/partials.h"
#include <math.h>

void fgi_partials_add(fgi_partials *p, double x) {
    int n = 0;
    for (int k = 0; k < p->n; k++) {
        const double y = p->at[k], sum = x + y;
        if (isinf(sum)) {
            p->at[0] = sum; /* no later term changes that */
            p->n = 1;
            return;
        }
        const double of_y = sum - x, lost = (x - (sum - of_y)) + (y - of_y); /* exactly (Knuth) */
        if (lost != 0) p->at[n++] = lost;
        x = sum;
    }
    if (x != 0) p->at[n++] = x;
    p->n = n;
}

double fgi_partials_value(const fgi_partials *p) {
    int k = p->n - 1;
    if (k < 0) return 0;
    double sum = p->at[k], lost = 0;
    while (k > 0 && lost == 0) {
        const double before = sum, y = p->at[--k];
        sum = before + y;
        lost = y - (sum - before);
    }
    /* If exactly half of the last digit was lost, the sum was rounded to even; the next partial says whether it should
     * have been rounded the other way. */
    if (k > 0 && ((lost < 0 && p->at[k - 1] < 0) || (lost > 0 && p->at[k - 1] > 0))) {
        const double twice = 2 * lost, next = sum + twice;
        if (twice == next - sum) sum = next;
    }
    return sum;
}
