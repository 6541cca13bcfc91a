/* learn/crf/bits.c - features that many tokens have, as bits: scores and derivatives of 64 tokens at a time.
 *
 * Where labels are few, values are 1 and a feature is not rare, going through its list of tokens costs a scattered
 * addition an entry and label; a word of bits selects from 64 tokens that lie side by side. Words are made for the
 * features in use, and kept; those of 64 tokens lie side by side, too. Scores and residuals are turned, from tokens by
 * labels to labels by tokens and back, 64 tokens at a time. */
#include <string.h>
#include "base/array.h"
#include "base/masks.h"
#include "learn/crf/crf.h"

/* A feature of fewer than one in so many tokens stays a list: by count, an addition of eight tokens against a quarter
 * of a scattered one. 99 % of the weights that OCR keeps at l1 100 are of features above; other values were not
 * tried. */
#define RARE 32

int crf_bits_create(fgi_crf *c) {
    crf_bits *b = &c->bits;
    b->possible = c->columns <= CRF_NARROW && !c->cell && !c->column_value && c->n_spans == 1;
    if (!b->possible) return 1;
    b->kernels = *fgi_mask_kernels_all();
    b->slot = fgi_alloc(c->data.n_features, sizeof(int32_t));
    b->first = fgi_alloc(c->n_blocks + 1, sizeof(int64_t));
    b->lists[0].begin = fgi_alloc(c->columns + 1, sizeof(int64_t));
    b->lists[1].begin = fgi_alloc(c->columns + 1, sizeof(int64_t));
    if (!b->slot || !b->first || !b->lists[0].begin || !b->lists[1].begin) return 0;
    for (int64_t f = 0; f < c->data.n_features; f++) {
        const int64_t from = c->column_begin[f], to = c->column_begin[f + 1];
        b->slot[f] = RARE * (to - from) >= c->tokens ? CRF_NO_SLOT : CRF_LISTED;
        for (int64_t e = from + 1; b->slot[f] == CRF_NO_SLOT && e < to; e++)
            if (c->column_token[e] == c->column_token[e - 1]) b->slot[f] = CRF_LISTED; /* twice in a token */
    }
    b->first[0] = 0;
    for (int64_t k = 0; k < c->n_blocks; k++) {
        const int64_t tokens = c->data.token_begin[c->block[k + 1]] - c->data.token_begin[c->block[k]];
        b->first[k + 1] = b->first[k] + (tokens + FGI_MASK_PLACES - 1) / FGI_MASK_PLACES;
    }
    return 1;
}

void crf_bits_free(fgi_crf *c) {
    crf_bits *b = &c->bits;
    for (int k = 0; k < 2; k++) free(b->lists[k].begin), free(b->lists[k].at), free(b->lists[k].place);
    free(b->slot), free(b->first), free(b->words), free(b->weight), free(b->lanes);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

static void write_words(fgi_crf *c, int64_t f) {
    crf_bits *b = &c->bits;
    for (int64_t e = c->column_begin[f], k = 0; e < c->column_begin[f + 1]; e++) {
        while (c->column_token[e] >= c->data.token_begin[c->block[k + 1]]) k++;
        const int64_t t = c->column_token[e] - c->data.token_begin[c->block[k]];
        b->words[(b->first[k] + t / FGI_MASK_PLACES) * b->stride + b->slot[f]] |= UINT64_C(1) << t % FGI_MASK_PLACES;
    }
}

/* Words for the features of a pattern. Where there is no room for more, those of other features go. */
static int make_words(fgi_crf *c, const crf_pattern *p) {
    crf_bits *b = &c->bits;
    int64_t more = 0, all = 0;
    for (int64_t k = 0; k < p->n_features; k++) {
        more += b->slot[p->features[k]] == CRF_NO_SLOT;
        all += b->slot[p->features[k]] != CRF_LISTED;
    }
    if (b->used + more > b->stride) {
        const int64_t stride = all + all / 2 + 64;
        free(b->words);
        b->stride = b->used = 0;
        for (int64_t f = 0; f < c->data.n_features; f++)
            if (b->slot[f] != CRF_LISTED) b->slot[f] = CRF_NO_SLOT;
        if (!(b->words = fgi_calloc(b->first[c->n_blocks] * stride, sizeof(uint64_t)))) return 0;
        b->stride = stride;
    }
    for (int64_t k = 0; k < p->n_features; k++)
        if (b->slot[p->features[k]] == CRF_NO_SLOT) {
            b->slot[p->features[k]] = (int32_t)b->used++;
            write_words(c, p->features[k]);
        }
    return 1;
}

/* The coordinates of a pattern that have words, label by label. */
static int sort_by_label(const fgi_crf *c, const crf_pattern *p, crf_bit_list *list) {
    const int32_t *slot = c->bits.slot;
    const int64_t n = p->n_features ? p->begin[p->n_features] : 0;
    int64_t room = list->room;
    if (!fgi_grow(&list->at, &room, n, sizeof(int32_t)) || !fgi_grow(&list->place, &list->room, n, sizeof(int64_t)))
        return 0;
    memset(list->begin, 0, (size_t)(c->columns + 1) * sizeof *list->begin);
    for (int64_t k = 0; k < p->n_features; k++)
        for (int64_t i = p->begin[k]; slot[p->features[k]] >= 0 && i < p->begin[k + 1]; i++)
            list->begin[p->columns[i] + 1]++;
    for (int64_t a = 0; a < c->columns; a++) list->begin[a + 1] += list->begin[a];
    for (int64_t k = 0; k < p->n_features; k++)
        for (int64_t i = p->begin[k]; slot[p->features[k]] >= 0 && i < p->begin[k + 1]; i++) {
            const int64_t to = list->begin[p->columns[i]]++; /* becomes the end, which is the next one's begin */
            list->at[to] = slot[p->features[k]];
            list->place[to] = i;
        }
    memmove(list->begin + 1, list->begin, (size_t)c->columns * sizeof *list->begin);
    list->begin[0] = 0;
    return 1;
}

/* Whether words are the cheaper way for the coordinates of a pattern: an addition of eight tokens against, with lists,
 * a look at all entries and a row of labels for each one in use, four labels at a time. */
static int is_worth_it(const fgi_crf *c, const crf_pattern *p) {
    const int64_t n = p->n_features ? p->begin[p->n_features] : 0, entries = n ? p->before[p->n_features] : 0;
    return c->bits.possible && n > 0 &&
        n * (c->tokens / FGI_MASK_LANES) < c->data.row_begin[c->tokens] / 2 + entries * (c->columns / 4 + 1);
}

/* ---- scores ---------------------------------------------------------------------------------------------------- */

int crf_bits_load(fgi_crf *c, const double *w) {
    crf_bits *b = &c->bits;
    const crf_pattern *p = &c->support;
    b->now = is_worth_it(c, p);
    if (!b->now) return 1;
    crf_bit_list *list = &b->lists[0];
    if (!make_words(c, p) || !sort_by_label(c, p, list) || !fgi_grow(&b->weight, &b->weights, list->room, sizeof *w))
        return 0;
    for (int64_t k = 0; k < p->n_features; k++) /* a coordinate's place in the pattern is known, its weight not yet */
        for (int64_t i = p->begin[k]; i < p->begin[k + 1]; i++)
            c->packed[i] = w[p->features[k] * c->columns + p->columns[i]];
    for (int64_t i = 0; i < list->begin[c->columns]; i++) b->weight[i] = c->packed[list->place[i]];
    return 1;
}

void crf_bits_scores(const fgi_crf *c, int64_t block, double *cells) {
    const crf_bits *b = &c->bits;
    const crf_bit_list *list = &b->lists[0];
    const int64_t width = c->columns;
    int64_t left = c->data.token_begin[c->block[block + 1]] - c->data.token_begin[c->block[block]];
    double turned[CRF_NARROW * FGI_MASK_PLACES];
    for (int64_t g = b->first[block]; g < b->first[block + 1]; g++, left -= FGI_MASK_PLACES) {
        for (int64_t a = 0; a < width; a++)
            b->kernels->spread(b->words + g * b->stride, list->at + list->begin[a], b->weight + list->begin[a],
                list->begin[a + 1] - list->begin[a], turned + a * FGI_MASK_PLACES);
        for (int64_t t = 0; t < FGI_MASK_PLACES && t < left; t++, cells += width)
            for (int64_t a = 0; a < width; a++) cells[a] = turned[a * FGI_MASK_PLACES + t];
    }
}

/* ---- derivatives ----------------------------------------------------------------------------------------------- */

/* One part of the coordinates: as many in each, whatever their labels. */
static void add_part(const crf_job *j, int64_t part) {
    const fgi_crf *c = j->c;
    const crf_bits *b = &c->bits;
    const crf_bit_list *list = &b->lists[1];
    const int64_t width = c->columns, all = list->begin[width];
    const int64_t lo = part * all / j->parts, hi = (part + 1) * all / j->parts;
    double turned[FGI_MASK_PLACES];
    for (int64_t block = 0; block < c->n_blocks; block++) {
        const int64_t from = c->data.token_begin[c->block[block]], to = c->data.token_begin[c->block[block + 1]];
        for (int64_t g = b->first[block]; g < b->first[block + 1]; g++) {
            const int64_t first = from + (g - b->first[block]) * FGI_MASK_PLACES;
            const int64_t n = to - first < FGI_MASK_PLACES ? to - first : FGI_MASK_PLACES;
            for (int64_t a = 0; a < width; a++) {
                const int64_t k = list->begin[a] > lo ? list->begin[a] : lo;
                const int64_t end = list->begin[a + 1] < hi ? list->begin[a + 1] : hi;
                if (k >= end) continue;
                const double *cell = c->span_cells + first * width + a;
                for (int64_t t = 0; t < n; t++) turned[t] = cell[t * width];
                for (int64_t t = n; t < FGI_MASK_PLACES; t++) turned[t] = 0;
                b->kernels->collect(
                    b->words + g * b->stride, list->at + k, end - k, turned, b->lanes + k * FGI_MASK_LANES);
            }
        }
    }
}

static void add_parts(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t part = begin; part < end; part++) add_part(context, part);
}

int crf_bits_prepare(crf_job *j) {
    fgi_crf *c = j->c;
    crf_bits *b = &c->bits;
    crf_bit_list *list = &b->lists[1];
    b->wanted = 0;
    if (!j->set || j->square || !is_worth_it(c, &c->wanted)) return 1;
    if (!make_words(c, &c->wanted) || !sort_by_label(c, &c->wanted, list)) return 0;
    const int64_t n = list->begin[c->columns] * FGI_MASK_LANES;
    if (!fgi_grow(&b->lanes, &b->n_lanes, n, sizeof(double))) return 0;
    memset(b->lanes, 0, (size_t)n * sizeof(double));
    b->wanted = list->begin[c->columns] > 0;
    return 1;
}

void crf_bits_add(crf_job *j) {
    const crf_bits *b = &j->c->bits;
    const crf_bit_list *list = &b->lists[1];
    const int64_t parts = j->parts;
    j->parts = j->c->threads; /* each goes through all tokens */
    fgi_pool_run(j->c->pool, j->parts, 1, add_parts, j);
    j->parts = parts;
    for (int64_t i = 0; i < list->begin[j->c->columns]; i++) {
        const double *x = b->lanes + i * FGI_MASK_LANES;
        j->gradient[list->place[i]] = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
    }
}
