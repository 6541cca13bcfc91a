/* learn/means.c - averages of the iterates, kept without touching what does not change: `sum` gets each change of the
 * weights times a factor that stands for the iterates before it. After k steps,
 *
 *   usual (bcfw)       2 / (k (k + 1)) sum_t t w_t  = w - 2 / (k (k + 1)) sum,    factor k (k - 1) / 2
 *   uniform, suffix    mean of w_t over first < t <= k = w - sum / (k - first),   factor k - 1 - first
 *
 * The iterates of ssg are w_t = (n C / t) v_t, of which v is stored: the weighted mean needs the plain sum of v_t, the
 * others that of v_t / t, so harmonic numbers take the place of k. A suffix begins anew at every power of two (the
 * doubling trick of Rakhlin, Shamir and Sridharan 2012), so that it holds between a half of the iterates and all. */
#include "learn/learn.h"
#include <string.h>

/* 1 + 1/2 + ... + 1/n; the series is exact to 1e-13 from 64 on. */
static double harmonic(int64_t n) {
    double sum = 0, x = (double)n;
    if (n >= 64) return log(x) + 0.57721566490153286 + 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
    for (int64_t t = n; t > 0; t--) sum += 1.0 / (double)t;
    return sum;
}

void fgi_learn_begin_step(fgi_learner *L, const fgi_learn_settings *settings) {
    const int64_t k = ++L->state.steps;
    if (settings->averaging != FGI_MEAN_SUFFIX || (k & (k - 1))) return;
    const int64_t n = L->rows ? L->dimension - L->unary : L->dimension;
    memset(L->sum, 0, (size_t)n * sizeof *L->sum);
    if (L->rows) fgi_rows_clear_sums(L->rows);
}

double fgi_learn_mean_factor(const fgi_learner *L, const fgi_learn_settings *settings) {
    const int64_t k = L->state.steps;
    if (settings->averaging == FGI_MEAN_NONE || k == 0) return 0.0;
    if (settings->averaging == FGI_MEAN_USUAL)
        return settings->method == FGI_LEARN_BCFW ? 0.5 * (double)k * (double)(k - 1) : (double)(k - 1);
    int64_t first = 0;
    if (settings->averaging == FGI_MEAN_SUFFIX) {
        while (2 * (first + 1) <= k) first = 2 * first + 1;
    }
    return settings->method == FGI_LEARN_SSG ? harmonic(k - 1) - harmonic(first) : (double)(k - 1 - first);
}
