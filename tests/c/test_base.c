/* The idioms of csrc/base: arenas, growing arrays, meters. */
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/array.h"
#include "base/meter.h"
#include "check.h"

static void arenas_count_and_remember(void) {
    fgi_arena a = {0};
    double *x = fgi_take(&a, 100, double);
    int32_t *zero = fgi_take_zero(&a, 7, int32_t);
    const int32_t given[3] = {4, 5, 6};
    int32_t *copied = fgi_arena_copy(&a, given, 3, sizeof *given);
    CHECK(x && zero && copied && !a.failed);
    for (int k = 0; k < 100; k++) x[k] = k;
    for (int k = 0; k < 7; k++) CHECK(zero[k] == 0);
    CHECK(memcmp(copied, given, sizeof given) == 0);
    CHECK(a.bytes == 800 + 28 + 12);
    CHECK(fgi_take(&a, 0, double) != NULL);
    CHECK(fgi_take(&a, INT64_MAX / 2, double) == NULL && a.failed); /* more than there is room for */
    CHECK(fgi_take(&a, 1, double) == NULL && a.bytes == 840);       /* from then on nothing, so one check is enough */
    fgi_arena_free(&a);
    CHECK(!a.failed && a.bytes == 0 && !a.last);
    CHECK(fgi_take(&a, -1, double) == NULL && a.failed); /* sizes may say so */
    fgi_arena_free(&a);
}

static void arrays_grow(void) {
    int32_t *x = NULL;
    int64_t capacity = 0;
    for (int32_t n = 0; n < 1000; n++) {
        CHECK(fgi_grow(&x, &capacity, n + 1, sizeof *x) && capacity > n);
        x[n] = n;
    }
    for (int32_t n = 0; n < 1000; n++) CHECK(x[n] == n);
    const int32_t *before = x;
    CHECK(!fgi_grow(&x, &capacity, INT64_MAX - 5, sizeof *x) && x == before && capacity >= 1000);
    CHECK(!fgi_resize(&x, INT64_MAX / 2, sizeof *x) && x == before);
    CHECK(fgi_resize(&x, 10, sizeof *x) && x[9] == 9);
    CHECK(fgi_resize(&x, 0, sizeof *x) && x);
    free(x);
}

static void meters_look_now_and_then(void) {
    fgi_meter m = {.every = 10, .deadline = fgi_clock() - 1}; /* over already, but nobody has looked */
    CHECK(!fgi_meter_spend(&m, 9));
    CHECK(fgi_meter_spend(&m, 1) && m.spent == 0);
    CHECK(!fgi_meter_spend(&m, 3) && m.spent == 3);
    m.deadline = INFINITY;
    CHECK(!fgi_meter_spend(&m, 1000) && !fgi_meter_over(&m));
    m.deadline = fgi_clock() + 1000;
    CHECK(!fgi_meter_over(&m) && !fgi_meter_spend(&m, 1000));
}

int main(void) {
    arenas_count_and_remember();
    arrays_grow();
    meters_look_now_and_then();
    return failed();
}
