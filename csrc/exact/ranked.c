/* exact/ranked.c - labelings in the order of their scores, from the messages of bucket elimination.
 *
 * With the variables after p at given labels, label a of p loses delta_p(a) = max_b J_p(b) - J_p(a) >= 0 against the
 * best that is still possible (J_p: the sum of bucket p). A labeling loses the sum of its deltas, so it is known by its
 * deviations from the best labels: the last one, at position p, is a *candidate* on the labeling without it, and all
 * positions before p take their best labels. Every labeling is the candidate of exactly one other (Lawler 1972). */
#include <string.h>
#include "exact/eliminator.h"
#include "fginfer_exact.h"

enum { SPARE_CANDIDATES = 1024 }; /* beyond twice those wanted, before the worst are thrown out */

typedef struct candidate {
    double loss;
    int64_t parent; /* the labeling it deviates from */
    int32_t p, label;
} candidate;

typedef struct given {
    double loss;
    int32_t *labels; /* by position */
    double *second;  /* by position: the least delta of another label; INFINITY: there is none */
} given;

struct fgi_ranked {
    fgi_model *model;
    fgi_eliminator *e;
    double value, error;
    int64_t most; /* labelings that may still be asked for; < 0: no limit */
    int done;     /* the messages are there */
    candidate *heap;
    int64_t n_heap, heap_capacity;
    double cap; /* candidates that lose this much, or more, will not be needed */
    given *given;
    int64_t n_given, given_capacity;
    double *row;
    uint8_t *changed;
    int32_t *labels; /* by variable: of the labeling under way */
};

void fgi_ranked_free(fgi_ranked *r) {
    if (!r) return;
    for (int64_t k = 0; k < r->n_given; k++) {
        free(r->given[k].labels);
        free(r->given[k].second);
    }
    fgi_eliminator_free(r->e);
    fgi_model_free(r->model);
    void *owned[] = {r->heap, r->given, r->row, r->changed, r->labels};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    free(r);
}

static const int32_t *bag_of(const fgi_eliminator *e, int32_t p, int32_t *n) {
    *n = (int32_t)(e->bags->begin[p + 1] - e->bags->begin[p]);
    return e->bags->bag + e->bags->begin[p];
}

static double message_bytes(const fgi_eliminator *e) {
    double bytes = 0;
    for (int32_t p = 0; p < e->n; p++) bytes += 8.0 * (double)e->messages[p].size;
    return bytes;
}

fgi_rc fgi_ranked_create(
    const fgi_model *m, double memory, double effort, int64_t most, fgi_ranked **out, fgi_error *err) {
    if (!(memory >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the memory limit must be >= 0 bytes");
    fgi_ranked *r = fgi_calloc(1, sizeof *r);
    if (!r) return fgi_no_memory(err);
    const int64_t n = m->s->n_vars;
    r->model = fgi_model_snapshot(m);
    r->most = most;
    r->cap = INFINITY;
    r->row = fgi_alloc(m->s->max_card, sizeof(double));
    r->changed = fgi_calloc(n, 1);
    r->labels = fgi_calloc(n, sizeof(int32_t));
    fgi_rc rc = FGI_NO_MEMORY;
    if (!r->model || !r->row || !r->changed || !r->labels || !(r->e = fgi_eliminator_create(r->model))) goto fail;
    if ((rc = fgi_eliminator_pose(r->e, NULL, NULL, 0, -INFINITY))) goto fail;
    const double log2_limit = log2(fmax(memory, 8) / 8) + log2(m->s->max_card > 1 ? m->s->max_card : 2);
    rc = fgi_eliminator_order(r->e, fmin(log2_limit, 48), effort > 0 ? effort : 2e7);
    if (!rc && message_bytes(r->e) > memory) rc = FGI_UNSUPPORTED;
    if (rc) goto fail;
    *out = r;
    return FGI_OK;
fail:
    fgi_ranked_free(r);
    if (rc == FGI_UNSUPPORTED)
        return fgi_fail(err, rc, -1, "the messages of elimination do not fit into %.0f bytes", memory);
    return fgi_no_memory(err);
}

/* ---- the heap ----------------------------------------------------------------------------------------------- */

/* Ties go by age and place, so that the order is the same everywhere. */
static int before(const candidate *a, const candidate *b) {
    if (a->loss != b->loss) return a->loss < b->loss;
    if (a->parent != b->parent) return a->parent < b->parent;
    return a->p != b->p ? a->p > b->p : a->label < b->label;
}

static int compare(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a); }

/* Keeps those that can still be asked for. A sorted array is a heap. */
static void shrink(fgi_ranked *r) {
    qsort(r->heap, (size_t)r->n_heap, sizeof *r->heap, compare);
    if (r->n_heap > r->most) r->n_heap = r->most;
    r->cap = r->n_heap ? r->heap[r->n_heap - 1].loss : 0;
}

static int push(fgi_ranked *r, candidate c) {
    if (c.loss >= r->cap) return 1;
    if (r->most >= 0 && r->n_heap >= 2 * r->most + SPARE_CANDIDATES) {
        shrink(r);
        if (c.loss >= r->cap) return 1;
    }
    if (!fgi_grow(&r->heap, &r->heap_capacity, r->n_heap + 1, sizeof *r->heap)) return 0;
    int64_t k = r->n_heap++;
    for (; k > 0 && before(&c, &r->heap[(k - 1) / 2]); k = (k - 1) / 2) r->heap[k] = r->heap[(k - 1) / 2];
    r->heap[k] = c;
    return 1;
}

static candidate pop(fgi_ranked *r) {
    const candidate top = r->heap[0], last = r->heap[--r->n_heap];
    int64_t k = 0;
    for (;;) {
        int64_t child = 2 * k + 1;
        if (child >= r->n_heap) break;
        child += child + 1 < r->n_heap && before(&r->heap[child + 1], &r->heap[child]);
        if (!before(&r->heap[child], &last)) break;
        r->heap[k] = r->heap[child];
        k = child;
    }
    if (r->n_heap) r->heap[k] = last;
    return top;
}

/* ---- labelings ---------------------------------------------------------------------------------------------- */

/* J_p at the present labels of the later variables, into r->row; returns its maximum. */
static double bucket_row(fgi_ranked *r, int32_t p) { return fgi_eliminator_row(r->e, p, r->labels, r->row); }

static int depends_on_change(const fgi_ranked *r, int32_t p) {
    int32_t n;
    const int32_t *bag = bag_of(r->e, p, &n);
    for (int32_t k = 0; k < n; k++)
        if (r->changed[bag[k]]) return 1;
    return 0;
}

/* Position p of a new labeling: its best label, or `wanted` (>= 0), and what the next best label would lose. */
static void choose(fgi_ranked *r, given *g, const given *parent, int32_t p, int32_t wanted) {
    const fgi_eliminator *e = r->e;
    if (wanted < 0 && parent && !depends_on_change(r, p)) {
        g->labels[p] = r->labels[e->var[p]] = parent->labels[p];
        g->second[p] = parent->second[p];
        r->changed[p] = 0;
        return;
    }
    int32_t best = wanted;
    g->second[p] = INFINITY;
    if (wanted < 0) {
        const double top = bucket_row(r, p);
        best = 0;
        while (best + 1 < e->card[p] && r->row[best] < top) best++;
        for (int32_t a = 0; a < e->card[p]; a++)
            if (a != best && r->row[a] > -INFINITY) g->second[p] = fmin(g->second[p], top - r->row[a]);
    }
    r->changed[p] = !parent || parent->labels[p] != best;
    g->labels[p] = r->labels[e->var[p]] = best;
}

/* The candidates on labeling `which` at position p, whose later variables have their labels. */
static int push_candidates(fgi_ranked *r, int64_t which, int32_t p) {
    const given *g = &r->given[which];
    if (!(g->loss + g->second[p] < r->cap)) return 1;
    const double top = bucket_row(r, p);
    const int32_t best = g->labels[p];
    r->labels[r->e->var[p]] = best;
    for (int32_t a = 0; a < r->e->card[p]; a++)
        if (a != best && r->row[a] > -INFINITY && !push(r, (candidate){g->loss + (top - r->row[a]), which, p, a}))
            return 0;
    return 1;
}

static fgi_rc make(fgi_ranked *r, candidate c) {
    const int32_t n = r->e->n;
    if (!fgi_grow(&r->given, &r->given_capacity, r->n_given + 1, sizeof *r->given)) return FGI_NO_MEMORY;
    given *g = &r->given[r->n_given];
    *g = (given){c.loss, fgi_alloc(n, sizeof(int32_t)), fgi_alloc(n, sizeof(double))};
    const int64_t which = r->n_given++; /* owned from here on, whatever happens */
    if (!g->labels || !g->second) return FGI_NO_MEMORY;
    const given *parent = c.parent < 0 ? NULL : &r->given[c.parent];
    for (int32_t p = n; p-- > 0;) {
        if (p > c.p) {
            g->labels[p] = r->labels[r->e->var[p]] = parent->labels[p];
            g->second[p] = INFINITY;
            r->changed[p] = 0;
        } else choose(r, g, parent, p, p == c.p ? c.label : -1);
    }
    for (int32_t p = n; p-- > 0 && r->most != 0;)
        if (p < c.p && !push_candidates(r, which, p)) return FGI_NO_MEMORY;
    return FGI_OK;
}

/* Runs the messages; the first labeling is a candidate that deviates nowhere. */
static fgi_rc begin(fgi_ranked *r, double deadline) {
    int done = 0;
    fgi_rc rc = fgi_eliminator_run(r->e, 1, deadline, &done);
    if (rc || !done) return rc;
    r->value = fgi_eliminator_value(r->e) + r->model->s->constant;
    r->done = 1;
    if (r->value == -INFINITY) return FGI_OK;
    r->error = fgi_eliminator_error(r->e) + 0x1p-52 * (fabs(r->value) + fabs(r->model->s->constant));
    return push(r, (candidate){0, -1, r->e->n, 0}) ? FGI_OK : FGI_NO_MEMORY;
}

fgi_rc fgi_ranked_next(fgi_ranked *r, double seconds, int32_t *labels, double *bound, int32_t *status, fgi_error *err) {
    fgi_rc rc = r->done ? FGI_OK : begin(r, seconds < 0 ? INFINITY : fgi_clock() + seconds);
    if (rc) return fgi_fail(err, rc, -1, "out of memory");
    *status = FGI_RUNNING;
    if (!r->done) return FGI_OK;
    *status = FGI_INFEASIBLE;
    *bound = -INFINITY;
    if (!r->n_heap || r->most == 0) return FGI_OK;
    if (r->most > 0) r->most--;
    const candidate c = pop(r);
    if (make(r, c)) return fgi_no_memory(err);
    memcpy(labels, r->labels, (size_t)r->e->n * sizeof(int32_t));
    *bound = r->value - c.loss;
    *bound += r->error + 0x1p-50 * (fabs(r->value) + c.loss);
    *status = FGI_OPTIMAL;
    return FGI_OK;
}
