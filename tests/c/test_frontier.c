/* Open nodes come back by bound, then by age; or the newest first. */
#include <math.h>
#include <stdlib.h>
#include "base/frontier.h"
#include "check.h"

enum { N = 500 };

/* The place of the node that is due, by looking at all of them. */
static int due(const double *bound, const int *is_out, int n, int newest) {
    int best = -1;
    for (int k = 0; k < n; k++)
        if (!is_out[k] && (best < 0 || newest || bound[k] > bound[best])) best = k;
    return best;
}

int main(void) {
    fgi_frontier f = {0};
    double bound[N];
    int is_out[N] = {0}, n = 0, out = 0;
    uint32_t x = 12345;
    fgi_open node;
    CHECK(!fgi_frontier_take(&f, 0, &node));
    CHECK(fgi_frontier_bound(&f) == -INFINITY);
    while (out < N) {
        x = x * 1664525u + 1013904223u;
        if (n < N && (x >> 16) % 3 != 0) {
            bound[n] = (double)((x >> 8) % 50);
            CHECK(fgi_frontier_reserve(&f, 1));
            fgi_frontier_add(&f, (fgi_open){.bound = bound[n], .choice = n});
            n++;
        } else if (out < n) {
            const int newest = (x >> 20) % 4 == 0, k = due(bound, is_out, n, newest);
            CHECK(newest || fgi_frontier_bound(&f) == bound[k]);
            CHECK(fgi_frontier_take(&f, newest, &node));
            CHECK(node.choice == k && node.number == k && node.bound == bound[k]);
            is_out[k] = 1;
            out++;
        }
    }
    CHECK(f.count == 0);
    free(f.heap);
    return failed();
}
