/* The largest of many numbers, against an order of all of them. */
#include <stdlib.h>
#include "base/cutoff.h"
#include "base/util.h"
#include "check.h"

enum { MOST = 600 };

static int descending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Numbers of many sizes and signs, few different ones, or all alike but one. */
static float draw(fgi_rng *rng, int kind) {
    const float whole = (float)(fgi_rng_below(rng, 9) - 4);
    if (kind == 0) return (float)(fgi_rng_unit(rng) - 0.5);
    if (kind == 1) return whole;
    if (kind == 2) return ldexpf((float)(fgi_rng_unit(rng) - 0.5), (int)fgi_rng_below(rng, 250) - 125);
    if (kind == 3) return fgi_rng_below(rng, 50) ? 1.5f : whole;
    return whole > 2 ? INFINITY : whole < -2 ? -INFINITY : whole;
}

static int one(fgi_rng *rng, int kind) {
    float x[MOST], sorted[MOST];
    uint32_t keys[MOST];
    const int64_t n = fgi_rng_below(rng, MOST) + 1, most = fgi_rng_below(rng, n + 3);
    for (int64_t k = 0; k < n; k++) {
        x[k] = sorted[k] = draw(rng, kind);
        keys[k] = fgi_cutoff_key(x[k]);
    }
    qsort(sorted, (size_t)n, sizeof *sorted, descending);
    const float last = most < 1 ? INFINITY : most < n ? sorted[most - 1] : -INFINITY;
    fgi_cutoff c = fgi_cutoff_of(keys, n, most);
    int64_t taken = 0;
    int passed = 0; /* a number equal to the last one: none of these may be taken later */
    for (int64_t k = 0; k < n; k++) {
        const int takes = fgi_cutoff_takes(&c, x[k]);
        taken += takes;
        REQUIRE(!takes || x[k] >= last);
        REQUIRE(takes || x[k] <= last);
        if (x[k] != last) continue;
        REQUIRE(!(takes && passed));
        passed |= !takes;
    }
    REQUIRE(taken == (most < n ? most : n));
    return 0;
}

int main(void) {
    fgi_rng rng = {7};
    for (int round = 0; round < 2000; round++)
        if (one(&rng, round % 5)) return 1;
    for (float x = -3; x < 3; x += 0.25f) REQUIRE(fgi_cutoff_key(x) < fgi_cutoff_key(x + 0.25f));
    return 0;
}
