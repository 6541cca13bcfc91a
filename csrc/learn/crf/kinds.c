/* learn/crf/kinds.c - chains and forests whose tokens have candidate lists that recur, as readings of syllables or a
 * dictionary's tags of words do: edges with the same two lists are of one kind.
 *
 * A table over thousands of labels is in no cache, and an edge reads a few hundred of its entries here and there. By
 * kinds, a sum over an edge goes over the entries between its two lists that are not zero (see weigh_entries in
 * oracle/forest_sum.c), derivatives by some weights over those weights, and derivatives by all weights are collected in
 * a small table a kind. */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "learn/crf/crf.h"

/* Kinds are worth it when edges of one kind are at least so many, on average over their pairs of labels. */
#define RECURRING 4
/* An entry costs as much as two pairs that lie side by side: two places, and a factor. */
#define ENTRY_COST 2
/* Looking for a kind costs as much as so many pairs. */
#define LOOK_COST 8

static int64_t list_size(const fgi_crf *c, int64_t token) { return c->cell[token + 1] - c->cell[token]; }

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static uint64_t mix(const int32_t *labels, int64_t n) {
    uint64_t h = (uint64_t)n;
    for (int64_t a = 0; a < n; a++) h = (h ^ (uint32_t)labels[a]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
    return h;
}

/* The list of each token, and one token of each list. 0: no memory. */
static int find_lists(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    int64_t slots = 16;
    while (slots < 2 * c->tokens) slots *= 2;
    int32_t *slot = fgi_alloc(slots, sizeof(int32_t)); /* a list, or -1 */
    k->list = fgi_alloc(c->tokens, sizeof(int32_t));
    k->holder = fgi_alloc(c->tokens, sizeof(int32_t));
    if (!slot || !k->list || !k->holder) {
        free(slot);
        return 0;
    }
    memset(slot, 0xff, (size_t)slots * sizeof(int32_t));
    for (int64_t t = 0; t < c->tokens; t++) {
        const int32_t *own = c->data.choice + c->cell[t];
        const int64_t n = list_size(c, t);
        uint64_t at = mix(own, n) & (uint64_t)(slots - 1);
        for (; slot[at] >= 0; at = (at + 1) & (uint64_t)(slots - 1)) {
            const int64_t other = k->holder[slot[at]];
            if (list_size(c, other) == n && !memcmp(own, c->data.choice + c->cell[other], (size_t)n * sizeof *own))
                break;
        }
        if (slot[at] < 0) {
            k->holder[k->n_lists] = (int32_t)t;
            slot[at] = (int32_t)k->n_lists++;
        }
        k->list[t] = slot[at];
    }
    free(slot);
    return 1;
}

/* Turns the lists around: for each label, the lists that it is in, and its place there. */
static int turn_lists(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    int64_t all = 0;
    for (int64_t l = 0; l < k->n_lists; l++) all += list_size(c, k->holder[l]);
    k->label_begin = fgi_calloc(c->data.n_labels + 2, sizeof(int64_t));
    k->label_list = fgi_alloc(all, sizeof(int32_t));
    k->label_at = fgi_alloc(all, sizeof(int32_t));
    if (!k->label_begin || !k->label_list || !k->label_at) return 0;
    int64_t *end = k->label_begin + 1; /* a label's end while it is filled, which is where the next one begins */
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t l = 0; l < k->n_lists; l++) {
            const int32_t *own = c->data.choice + c->cell[k->holder[l]];
            for (int64_t a = 0; a < list_size(c, k->holder[l]); a++) {
                if (!pass) {
                    end[own[a] + 1]++;
                    continue;
                }
                k->label_list[end[own[a]]] = (int32_t)l;
                k->label_at[end[own[a]]++] = (int32_t)a;
            }
        }
        for (int64_t y = 0; !pass && y < c->data.n_labels; y++) end[y + 1] += end[y];
    }
    return 1;
}

/* ---- kinds ----------------------------------------------------------------------------------------------------- */

static int64_t all_edges(const fgi_crf *c) { return fgi_learn_edge_begin(&c->data, c->data.n_examples); }

static int by_size(const void *x, const void *y) {
    const int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* The kind of two lists, or -1. */
static int64_t find_kind(const crf_kinds *k, int32_t first, int32_t second) {
    const int64_t end = k->first[first + 1], at = fgi_lower_bound(k->second, k->first[first], end, second);
    return at < end && k->second[at] == second ? at : -1;
}

/* Lists of both ends of all edges; kinds are what is different of them. */
static int find_kinds(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    const int64_t n = all_edges(c);
    k->first = fgi_calloc(k->n_lists + 2, sizeof(int64_t));
    k->second = fgi_alloc(n, sizeof(int32_t));
    k->of_edge = fgi_alloc(n, sizeof(int32_t));
    if (!k->first || !k->second || !k->of_edge) return 0;
    int64_t *end = k->first + 1, from, u, v;
    for (int pass = 0; pass < 3; pass++) {
        for (int64_t i = 0; i < c->data.n_examples; i++)
            for (int64_t e = 0, edges = fgi_learn_count_edges(&c->data, i, &from); e < edges; e++) {
                fgi_learn_ends(&c->data, from, e, &u, &v);
                const int32_t a = k->list[c->data.token_begin[i] + u], b = k->list[c->data.token_begin[i] + v];
                if (pass == 0) end[a + 1]++;
                else if (pass == 1) k->second[end[a]++] = b;
                else k->of_edge[from + e] = (int32_t)find_kind(k, a, b);
            }
        for (int64_t l = 0; pass == 0 && l < k->n_lists; l++) end[l + 1] += end[l];
        for (int64_t l = 0, begin = 0; pass == 1 && l < k->n_lists; l++) {
            const int64_t stop = k->first[l + 1];
            qsort(k->second + begin, (size_t)(stop - begin), sizeof(int32_t), by_size);
            k->first[l] = k->n_kinds;
            for (int64_t e = begin; e < stop; e++)
                if (e == begin || k->second[e] != k->second[e - 1]) k->second[k->n_kinds++] = k->second[e];
            begin = stop;
        }
        if (pass == 1) k->first[k->n_lists] = k->n_kinds;
    }
    return 1;
}

/* How many pairs of labels there are, on all edges and in all kinds. */
static int count_pairs(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    k->start = fgi_alloc(k->n_kinds, sizeof(int32_t));
    k->edges = fgi_calloc(k->n_kinds, sizeof(int64_t));
    k->cell = fgi_alloc(k->n_kinds + 1, sizeof(int64_t));
    k->support.begin = fgi_alloc(k->n_kinds + 2, sizeof(int64_t));
    k->wanted.begin = fgi_alloc(k->n_kinds + 2, sizeof(int64_t));
    if (!k->start || !k->edges || !k->cell || !k->support.begin || !k->wanted.begin) return 0;
    for (int64_t e = 0; e < all_edges(c); e++) k->edges[k->of_edge[e]]++;
    k->cell[0] = 0;
    for (int64_t l = 0; l < k->n_lists; l++)
        for (int64_t q = k->first[l]; q < k->first[l + 1]; q++) {
            const int64_t pairs = list_size(c, k->holder[l]) * list_size(c, k->holder[k->second[q]]);
            k->start[q] = (int32_t)l;
            k->cell[q + 1] = k->cell[q] + pairs;
            k->pairs += pairs * k->edges[q];
        }
    return 1;
}

int crf_kinds_create(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    if (!c->cell || c->tables != CRF_ONE_TABLE || c->pseudo || c->columns <= CRF_NARROW) return 1;
    if (!find_lists(c)) return 0;
    if (RECURRING * k->n_lists > c->tokens) return 1;
    if (!turn_lists(c) || !find_kinds(c) || !count_pairs(c)) return 0;
    k->possible = k->n_kinds > 0 && RECURRING * k->cell[k->n_kinds] <= k->pairs;
    return 1;
}

void crf_kinds_free(fgi_crf *c) {
    crf_kinds *k = &c->kinds;
    for (int which = 0; which < 2; which++) {
        crf_kind_list *l = which ? &k->wanted : &k->support;
        free(l->begin), free(l->row), free(l->column), free(l->weight), free(l->place), free(l->excess);
    }
    free(k->list), free(k->holder), free(k->label_begin), free(k->label_list), free(k->label_at), free(k->first);
    free(k->second), free(k->start), free(k->edges), free(k->cell), free(k->of_edge), free(k->scaled), free(k->direct);
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int make_room(crf_kind_list *l, int64_t n) {
    if (n <= l->room) return 1;
    const int64_t room = n + n / 2;
    if (!fgi_resize(&l->row, room, sizeof(int32_t)) || !fgi_resize(&l->column, room, sizeof(int32_t)) ||
        !fgi_resize(&l->weight, room, sizeof(int64_t)) || !fgi_resize(&l->place, room, sizeof(int64_t)) ||
        !fgi_resize(&l->excess, room, sizeof(double)))
        return 0;
    l->room = room;
    return 1;
}

/* The kinds that have the pair of labels of weight j: counts it there, or writes it down. Returns how many kinds were
 * looked for. */
static int64_t note(const fgi_crf *c, crf_kind_list *l, int64_t j, int64_t place, int write) {
    const crf_kinds *k = &c->kinds;
    const int64_t n = c->data.n_labels, y = (j - c->unary) / n, z = (j - c->unary) % n;
    int64_t looks = 0;
    for (int64_t p = k->label_begin[y]; p < k->label_begin[y + 1]; p++)
        for (int64_t q = k->label_begin[z]; q < k->label_begin[z + 1]; q++, looks++) {
            const int64_t kind = find_kind(k, k->label_list[p], k->label_list[q]);
            if (kind < 0) continue;
            int64_t *end = l->begin + 1 + kind;
            if (!write) {
                end[1]++;
                continue;
            }
            l->row[*end] = k->label_at[p];
            l->column[*end] = k->label_at[q];
            l->weight[*end] = j;
            l->place[(*end)++] = place;
        }
    return looks;
}

/* Sorts the weights of pairs set[first .. n) by kinds (set NULL: all); with w those that are not zero. -1: no memory;
 * 0: that, or what would be done with the entries, costs more than to go over all pairs. */
static int sort_pairs(
    const fgi_crf *c, crf_kind_list *l, const double *w, const int64_t *set, int64_t first, int64_t n) {
    const crf_kinds *k = &c->kinds;
    int64_t looks = 0, cost = 0;
    memset(l->begin, 0, (size_t)(k->n_kinds + 2) * sizeof *l->begin);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = first; i < n; i++) {
            const int64_t j = set ? set[i] : i;
            if (w && w[j] == 0.0) continue;
            looks += note(c, l, j, i, pass);
            if (LOOK_COST * looks > k->pairs) return 0;
        }
        if (pass) break;
        for (int64_t q = 0; q < k->n_kinds; q++) cost += ENTRY_COST * k->edges[q] * l->begin[q + 2];
        if (cost > k->pairs) return 0;
        for (int64_t q = 0; q < k->n_kinds; q++) l->begin[q + 2] += l->begin[q + 1];
        if (!make_room(l, l->begin[k->n_kinds + 1])) return -1;
    }
    return 1;
}

int crf_kinds_load(fgi_crf *c, const double *w, const int64_t *support, int64_t n) {
    crf_kinds *k = &c->kinds;
    crf_kind_list *l = &k->support;
    k->now = 0;
    if (!k->possible) return 1;
    int64_t first = c->support.first_pair;
    if (!support) first = c->unary, n = c->dimension;
    const int worth = sort_pairs(c, l, w, support, first, n);
    if (worth < 0) return 0;
    if (!worth) return 1;
    fgi_sum_table *t = &c->table[0];
    double low = 0;
    t->score = w + c->unary;
    t->top = 0;
    int finite = 1;
    for (int64_t i = first; i < n; i++) {
        const double x = w[support ? support[i] : i];
        t->top = x > t->top ? x : t->top;
        low = x < low ? x : low;
        finite = finite && isfinite(x);
    }
    t->range = finite ? t->top - low : INFINITY;
    t->few = 0;
    k->zero = exp(-t->top);
    for (int64_t i = 0; i < l->begin[k->n_kinds]; i++) l->excess[i] = exp(w[l->weight[i]] - t->top) - k->zero;
    k->now = 1;
    return 1;
}

fgi_sum_entries crf_kinds_entries(const fgi_crf *c, int64_t edge) {
    const crf_kind_list *l = &c->kinds.support;
    const int64_t kind = c->kinds.of_edge[edge], b = l->begin[kind];
    return (fgi_sum_entries){l->begin[kind + 1] - b, l->row + b, l->column + b, l->excess + b, c->kinds.zero};
}

/* ---- sums over pairs ------------------------------------------------------------------------------------------- */

int crf_kinds_begin_sums(fgi_crf *c, const int64_t *set, int64_t first, int64_t n) {
    crf_kinds *k = &c->kinds;
    const int sorted = set ? sort_pairs(c, &k->wanted, NULL, set, first, n) : 0;
    if (sorted < 0) return 0;
    k->adding = sorted ? CRF_OF_ENTRIES : CRF_OF_ALL;
    k->size = sorted ? k->wanted.begin[k->n_kinds] : k->cell[k->n_kinds];
    crf_cut_units(c, k->size);
    int64_t all;
    if (!fgi_mul(c->n_units, k->size, &all)) return 0;
    if (all > k->room || !k->scaled) {
        free(k->scaled), free(k->direct);
        k->scaled = fgi_alloc(all, sizeof(double));
        k->direct = fgi_alloc(all, sizeof(double));
        k->room = k->scaled && k->direct ? all : 0;
        if (!k->scaled || !k->direct) return 0;
    }
    memset(k->scaled, 0, (size_t)all * sizeof(double));
    memset(k->direct, 0, (size_t)all * sizeof(double));
    return 1;
}

void crf_kinds_add(
    const fgi_crf *c, const fgi_sum_edge *e, int64_t edge, double weight, double *scaled, double *direct) {
    const crf_kinds *k = &c->kinds;
    const int64_t kind = k->of_edge[edge], n = e->table->n;
    const double *left = e->transposed ? e->q : e->own, *right = e->transposed ? e->own : e->q;
    const double *score = e->table->score;
    if (k->adding == CRF_OF_ENTRIES) {
        const crf_kind_list *l = &k->wanted;
        for (int64_t i = l->begin[kind]; i < l->begin[kind + 1]; i++) {
            const double x = left[l->row[i]], y = right[l->column[i]];
            if (e->logs) direct[i] += weight * exp(x + score[l->weight[i] - c->unary] + y);
            else scaled[i] += weight * x * y;
        }
        return;
    }
    const int32_t *rows = e->transposed ? e->to : e->from, *columns = e->transposed ? e->from : e->to;
    const int64_t n_rows = e->transposed ? e->n_to : e->n_from, n_columns = e->transposed ? e->n_from : e->n_to;
    if (!e->logs && weight == 1.0) {
        c->kernels->outer(scaled + k->cell[kind], n_columns, n_rows, n_columns, left, right);
        return;
    }
    for (int64_t a = 0, at = k->cell[kind]; a < n_rows; a++)
        for (int64_t b = 0; b < n_columns; b++, at++) {
            if (e->logs) direct[at] += weight * exp(left[a] + score[rows[a] * n + columns[b]] + right[b]);
            else scaled[at] += weight * left[a] * right[b];
        }
}

/* P summed over the edges of a kind, of one entry of the sums that is the weight `at` of a pair. */
static double summed(const fgi_crf *c, int64_t entry, int64_t at) {
    const crf_kinds *k = &c->kinds;
    const double score = c->table[0].score[at], top = c->table[0].top;
    double scaled = 0, direct = 0;
    for (int64_t u = 0; u < c->n_units; u++) {
        scaled += k->scaled[u * k->size + entry];
        direct += k->direct[u * k->size + entry];
    }
    if (scaled == 0.0) return direct;
    return direct + scaled * (score == 0.0 && k->now ? k->zero : exp(score - top));
}

/* The same over all kinds that have the pair, from sums of all pairs. */
static double summed_over_kinds(const fgi_crf *c, int64_t at) {
    const crf_kinds *k = &c->kinds;
    const int64_t n = c->data.n_labels, y = at / n, z = at % n;
    double sum = 0;
    for (int64_t p = k->label_begin[y]; p < k->label_begin[y + 1]; p++)
        for (int64_t q = k->label_begin[z]; q < k->label_begin[z + 1]; q++) {
            const int64_t kind = find_kind(k, k->label_list[p], k->label_list[q]);
            if (kind < 0) continue;
            const int64_t columns = list_size(c, k->holder[k->second[kind]]);
            sum += summed(c, k->cell[kind] + k->label_at[p] * columns + k->label_at[q], at);
        }
    return sum;
}

/* From the sums of all pairs to the derivatives by all weights. */
static void scatter(const fgi_crf *c, double *out) {
    const crf_kinds *k = &c->kinds;
    const int64_t n = c->data.n_labels;
    for (int64_t kind = 0; kind < k->n_kinds; kind++) {
        const int64_t u = k->holder[k->start[kind]], v = k->holder[k->second[kind]];
        const int32_t *rows = c->data.choice + c->cell[u], *columns = c->data.choice + c->cell[v];
        int64_t entry = k->cell[kind];
        for (int64_t a = 0; a < list_size(c, u); a++)
            for (int64_t b = 0; b < list_size(c, v); b++, entry++) {
                const int64_t at = rows[a] * n + columns[b];
                out[at] += summed(c, entry, at);
            }
    }
}

void crf_kinds_derivatives(const crf_job *j, int64_t first, int64_t n) {
    const fgi_crf *c = j->c;
    const crf_kinds *k = &c->kinds;
    if (first == n) return;
    if (!j->set) scatter(c, j->gradient + first);
    else if (k->adding == CRF_OF_ALL)
        for (int64_t i = first; i < n; i++) j->gradient[i] = summed_over_kinds(c, j->set[i] - c->unary);
    else
        for (int64_t i = 0; i < k->wanted.begin[k->n_kinds]; i++)
            j->gradient[k->wanted.place[i]] += summed(c, i, k->wanted.weight[i] - c->unary);
    for (int64_t i = first; i < n; i++) /* a curvature is close to the expected number of pairs */
        if (!j->square) j->gradient[i] -= c->pair_truth[(j->set ? j->set[i] : i) - c->unary];
}
