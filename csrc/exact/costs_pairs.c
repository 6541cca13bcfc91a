/* exact/costs_pairs.c - see exact/costs_pairs.h. All pairs of variables of all factors are sorted, and those of
 * the same two stand together. */
#include "base/util.h"
#include "exact/costs.h"
#include "exact/costs_pairs.h"

enum {
    MOST_ENTRIES = 2000000, /* entries of all tables added: 32 MB, and as much again for their other side */
    MOST_SHARED = 8000000   /* pairs of variables of factors, beyond which none are looked for */
};

typedef struct occurrence {
    int64_t key;    /* names the two variables */
    int32_t factor; /* pairwise ones first: they are -1 - factor here */
    int32_t at;     /* fgi_costs_pair_at */
} occurrence;

static int by_key(const void *a, const void *b) {
    const occurrence *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    const int x_pair = x->factor < 0, y_pair = y->factor < 0;
    if (x_pair != y_pair) return x_pair ? -1 : 1;
    const int32_t fx = x_pair ? -1 - x->factor : x->factor, fy = y_pair ? -1 - y->factor : y->factor;
    return fx < fy ? -1 : fx > fy;
}

static int64_t key_of(const fgi_structure *s, int32_t i, int32_t j) {
    return i < j ? i * s->n_vars + j : j * s->n_vars + i;
}

static int64_t pairs_of(int32_t arity) { return arity > 2 ? fgi_costs_pair_at(0, arity) : 0; }

/* All of them, sorted; how many is returned. */
static int64_t list_pairs(const fgi_structure *s, int larger, occurrence *list) {
    int64_t n = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t *v = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f);
        if (arity == 2) list[n++] = (occurrence){key_of(s, v[0], v[1]), (int32_t)(-1 - f), 0};
        for (int32_t q = 1; larger && arity > 2 && q < arity; q++)
            for (int32_t p = 0; p < q; p++)
                list[n++] = (occurrence){key_of(s, v[p], v[q]), (int32_t)f, fgi_costs_pair_at(p, q)};
    }
    qsort(list, (size_t)n, sizeof *list, by_key);
    return n;
}

/* Where a new pairwise factor is worth its memory. */
static int32_t add_pair(const fgi_structure *s, int64_t key, fgi_costs_pairs *out) {
    const int32_t i = (int32_t)(key / s->n_vars), j = (int32_t)(key % s->n_vars);
    const int64_t states = (int64_t)s->cards[i] * s->cards[j];
    if (states > FGI_COSTS_CELLS || out->entries + 2 * states > MOST_ENTRIES) return FGI_NO_PAIR;
    out->entries += 2 * states;
    out->added[2 * out->n_added] = i;
    out->added[2 * out->n_added + 1] = j;
    return (int32_t)s->n_factors + out->n_added++;
}

/* Occurrences of the same two variables. */
static void join(const fgi_structure *s, const occurrence *list, int64_t n, fgi_costs_pairs *out) {
    int32_t pair = list[0].factor < 0 ? -1 - list[0].factor : n > 1 ? add_pair(s, list[0].key, out) : FGI_NO_PAIR;
    for (int64_t k = 0; k < n; k++) {
        const int32_t f = list[k].factor;
        if (f < 0) out->first[-1 - f] = pair;
        else out->meet[out->begin[f] + list[k].at] = pair;
    }
}

void fgi_costs_pairs_free(fgi_costs_pairs *p) {
    free(p->first);
    free(p->begin);
    free(p->meet);
    free(p->added);
}

int fgi_costs_pairs_find(const fgi_structure *s, fgi_costs_pairs *out) {
    int64_t shared = 0;
    for (int64_t f = 0; f < s->n_factors; f++) shared += pairs_of(fgi_factor_arity(s, f));
    const int larger = shared <= MOST_SHARED;
    if (!larger) shared = 0;
    *out = (fgi_costs_pairs){.first = fgi_alloc(s->n_factors, sizeof *out->first),
        .begin = fgi_alloc(s->n_factors, sizeof *out->begin),
        .meet = fgi_alloc(shared, sizeof *out->meet),
        .added = fgi_alloc(shared, sizeof *out->added), /* two of them share a pair, so there is room for both */
        .n_meet = shared};
    occurrence *list = fgi_alloc(s->n_factors + shared, sizeof *list);
    if (!out->first || !out->begin || !out->meet || !out->added || !list) {
        free(list);
        fgi_costs_pairs_free(out);
        return 0;
    }
    int64_t at = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        out->first[f] = (int32_t)f;
        out->begin[f] = at;
        if (larger) at += pairs_of(fgi_factor_arity(s, f));
    }
    const int64_t n = list_pairs(s, larger, list);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && list[end].key == list[begin].key; end++) continue;
        join(s, list + begin, end - begin, out);
    }
    free(list);
    return 1;
}
