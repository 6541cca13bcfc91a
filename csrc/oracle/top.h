/* oracle/top.h - the `want` best of a stream of (value, label), ties to the lowest label. */
#ifndef FGI_TOP_H
#define FGI_TOP_H
#include <stdint.h>

typedef struct fgi_ranked_label {
    double value;
    int32_t label;
} fgi_ranked_label;

typedef struct fgi_top {
    fgi_ranked_label *items; /* a few are kept in order; many in a buffer that is cut back when it is full */
    int64_t capacity;
    int32_t n, want;
    double floor; /* what lies below can no longer be among the best */
} fgi_top;

/* Room for `want` of them; 0 when out of memory. */
int fgi_top_reserve(fgi_top *t, int32_t want);
void fgi_top_free(fgi_top *t);
/* Empty; nothing below `floor` will be taken. */
void fgi_top_clear(fgi_top *t, int32_t want, double floor);
void fgi_top_insert(fgi_top *t, double value, int32_t label);
/* Cuts back to the best `want` and raises the floor. */
void fgi_top_cut(fgi_top *t);
/* Best first. */
void fgi_top_sort(fgi_top *t);

static inline void fgi_top_offer(fgi_top *t, double value, int32_t label) {
    if (value >= t->floor) fgi_top_insert(t, value, label);
}

#endif
