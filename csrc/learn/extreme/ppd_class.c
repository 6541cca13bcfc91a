/* learn/extreme/ppd_class.c - ppd-sparse for one label (Yen et al., "PPDsparse", 2017, Algorithms 2 to 4).
 *
 * With y_i = +1 for rows that have the label, margins m_i = y_i (<w, x_i> + b) and C_i = C (times positive_weight):
 *
 *     primal   lambda |w|_1 + 1/2 |w|^2 + 1/2 (b - b0)^2 + sum_i C_i loss(1 - m_i)
 *     dual     sum_i alpha_i (1 - y_i b0) - 1/2 |w|^2 - 1/2 (b - b0)^2 [ - sum_i alpha_i^2 / (4 C_i) ]
 *              w = S_lambda(v), v = sum_i y_i alpha_i x_i, b = b0 + sum_i y_i alpha_i,
 *              0 <= alpha_i [ <= C_i ]             (first bracket: squared hinge, second: hinge)
 *
 * With a fixed bias the terms in b - b0 vanish. Rows become active greedily, the largest violators first; coordinate
 * descent runs on the active rows only. A search costs the columns of w's support, so rows that share no feature with w
 * are never touched: they all have the score b.
 */
#include "learn/extreme/ppd.h"
#include <string.h>

enum { ROW_SEEN = 1, ROW_ACTIVE = 2, ROW_POSITIVE = 4 }; /* flags of a row */
enum { MANY_ROWS = 8 }; /* no list of active rows is kept beyond this part of all: a look at each is simpler */
/* A violation below this (margins have the unit 1) admits no row: descent on the active rows matters more then. */
static const double SMALL = 1e-6;

typedef struct ppd_run {
    const ppd_problem *p;
    ppd_work *w;
    ppd_column *out;
    int64_t positives;
    const int32_t *positive;
    double limit[2], ridge[2]; /* by sign (1: positive): upper bound of alpha, and 1 / (2 C_i) of the squared hinge */
    fgi_rng rng;
} ppd_run;

/* fgi_soft without branches: which side v is on cannot be foreseen. */
static inline double soft(double v, double lambda) {
    const double low = v < lambda ? v : lambda;
    return v - (low > -lambda ? low : -lambda);
}

static int stopped(const ppd_run *r) { return r->p->stop && __atomic_load_n(r->p->stop, __ATOMIC_RELAXED) != 0; }

static double bias_of(const ppd_run *r) {
    const fgi_ppd_settings *settings = r->p->settings;
    return settings->learn_bias ? settings->bias + r->w->bias_sum : settings->bias;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

fgi_rc ppd_work_init(ppd_work *w, const fgi_extreme_data *d) {
    memset(w, 0, sizeof *w);
    w->feature = fgi_calloc(d->n_features, sizeof *w->feature);
    w->features = fgi_alloc(d->n_features + 1, sizeof(int32_t)); /* one more: where a feature seen before is written */
    w->draws = fgi_alloc(d->n_features, sizeof(double));
    w->sampled = fgi_alloc(d->n_features, sizeof(double));
    w->score = fgi_calloc(d->n_rows, sizeof(double));
    w->row_state = fgi_calloc(d->n_rows, 1);
    w->rows = fgi_alloc(d->n_rows + 1, sizeof(int32_t));
    return w->feature && w->features && w->draws && w->sampled && w->score && w->row_state && w->rows ? FGI_OK
                                                                                                      : FGI_NO_MEMORY;
}

void ppd_work_free(ppd_work *w) {
    void *all[] = {w->feature, w->features, w->draws, w->sampled, w->score, w->row_state, w->rows, w->active, w->alpha,
        w->order, w->heap};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
}

static int reserve_active(ppd_work *w, int64_t n) {
    if (n <= w->room) return 1;
    const int64_t room = n > 2 * w->room ? n : 2 * w->room;
    if (!fgi_resize(&w->active, room, sizeof *w->active) || !fgi_resize(&w->alpha, room, sizeof *w->alpha) ||
        !fgi_resize(&w->order, room, sizeof *w->order))
        return 0;
    w->room = room;
    return 1;
}

static int reserve_heap(ppd_work *w, int64_t n) {
    if (n <= w->heap_room) return 1;
    if (!fgi_resize(&w->heap, n, sizeof *w->heap)) return 0;
    w->heap_room = n;
    return 1;
}

/* ---- coordinate descent on the active rows (Algorithm 3) ------------------------------------------------------- */

/* One step of row active[a]; returns the size of its projected gradient before the step. */
static double descend(ppd_run *r, int64_t a) {
    const fgi_extreme_data *d = r->p->data;
    ppd_work *w = r->w;
    fgi_assert(a >= 0 && a < w->n_active && w->alpha[a] >= 0);
    const int64_t i = w->active[a], begin = d->row_begin[i], end = d->row_begin[i + 1];
    const int sign = a < r->positives;
    const double y = sign ? 1.0 : -1.0, lambda = r->p->settings->lambda, old = w->alpha[a];
    double dot = 0.0;
    for (int64_t p = begin; p < end; p++) dot += (double)d->row_value[p] * w->feature[d->row_feature[p]].w;
    r->out->info.touched += end - begin;
    const double gradient = y * (dot + bias_of(r)) - 1.0 + old * r->ridge[sign];
    const double curvature = r->p->squares[i] + r->p->settings->learn_bias + r->ridge[sign];
    double new = curvature > 0.0 ? old - gradient / curvature : gradient < 0.0 ? r->limit[sign] : old;
    new = new < 0.0 ? 0.0 : new > r->limit[sign] ? r->limit[sign] : new;
    if (new == old) return 0.0;
    fgi_assert(new >= 0 && new <= r->limit[sign]);
    w->alpha[a] = new;
    const double step = y * (new - old);
    w->bias_sum += step;
    for (int64_t p = begin; p < end; p++) {
        const int32_t j = d->row_feature[p];
        ppd_feature *f = &w->feature[j];
        fgi_assert(j >= 0 && j < d->n_features && w->n_features <= d->n_features);
        w->features[w->n_features] = j;
        w->n_features += f->seen == 0.0;
        f->seen = 1.0;
        f->v += step * (double)d->row_value[p];
        f->w = soft(f->v, lambda);
    }
    r->out->info.touched += end - begin;
    return fabs(new - old) * curvature;
}

/* Epochs in random order until the largest step has shrunk to `goal`, or max_inner of them. */
static void descend_epochs(ppd_run *r, double goal) {
    ppd_work *w = r->w;
    const int64_t n = w->n_active;
    for (int64_t a = 0; a < n; a++) w->order[a] = (int32_t)a;
    for (int32_t epoch = 0; epoch < r->p->settings->max_inner && !stopped(r); epoch++) {
        double worst = 0.0;
        for (int64_t a = 0; a < n; a++) {
            const int64_t b = a + fgi_rng_below(&r->rng, n - a);
            const int32_t chosen = w->order[b];
            w->order[b] = w->order[a];
            w->order[a] = chosen;
            worst = fgi_larger(worst, descend(r, chosen));
        }
        r->out->info.epochs++;
        if (worst <= goal) break;
    }
}

/* Negatives whose alpha is zero leave the active set. */
static void eliminate(ppd_run *r) {
    ppd_work *w = r->w;
    int64_t kept = r->positives;
    for (int64_t a = r->positives; a < w->n_active; a++) {
        if (w->alpha[a] > 0.0) {
            w->active[kept] = w->active[a];
            w->alpha[kept++] = w->alpha[a];
        } else {
            w->row_state[w->active[a]] &= (uint8_t)~ROW_ACTIVE;
        }
    }
    fgi_assert(kept >= r->positives && kept <= w->n_active);
    w->n_active = kept;
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

/* Adds weight * x_ij to the scores of all rows with feature j. */
static void add_column(ppd_run *r, int32_t j, double weight) {
    const fgi_extreme_data *d = r->p->data;
    ppd_work *w = r->w;
    const int64_t begin = d->column_begin[j], end = d->column_begin[j + 1];
    r->out->info.touched += end - begin;
    if (w->all_rows) {
        for (int64_t p = begin; p < end; p++) w->score[d->column_row[p]] += weight * (double)d->column_value[p];
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        const int32_t i = d->column_row[p];
        w->score[i] += weight * (double)d->column_value[p];
        fgi_assert(i >= 0 && i < d->n_rows && w->n_rows <= d->n_rows);
        w->rows[w->n_rows] = i;
        w->n_rows += !(w->row_state[i] & ROW_SEEN);
        w->row_state[i] |= ROW_SEEN;
    }
    /* Keeping the list costs more than a look at every row once it is long. */
    w->all_rows = w->n_rows > d->n_rows / MANY_ROWS;
}

static void forget_scores(ppd_run *r) {
    ppd_work *w = r->w;
    if (w->all_rows) memset(w->score, 0, (size_t)r->p->data->n_rows * sizeof *w->score);
    for (int64_t k = 0; k < w->n_rows; k++) {
        w->score[w->rows[k]] = 0.0;
        w->row_state[w->rows[k]] &= (uint8_t)~ROW_SEEN;
    }
    w->n_rows = 0;
    w->all_rows = 0;
}

/* <w, x_i> of all rows that share a feature with w (Yan 2018, equation 2.35). */
static void exact_scores(ppd_run *r) {
    const ppd_work *w = r->w;
    forget_scores(r);
    for (int64_t f = 0; f < w->n_features; f++) {
        const double weight = w->feature[w->features[f]].w;
        if (weight != 0.0) add_column(r, w->features[f], weight);
    }
}

static double l1_norm(const ppd_work *w) {
    double sum = 0.0;
    for (int64_t f = 0; f < w->n_features; f++) sum += fabs(w->feature[w->features[f]].w);
    return sum;
}

/* Algorithm 4: scores of the mean of `rounds` draws of single features, each with probability |w_j| / |w|_1. */
static void sample_scores(ppd_run *r, double l1, int64_t rounds) {
    fgi_assert(l1 >= 0 && rounds >= 0);
    ppd_work *w = r->w;
    double sum = 0.0;
    forget_scores(r);
    for (int64_t f = 0; f < w->n_features; f++) {
        w->draws[f] = sum += fabs(w->feature[w->features[f]].w);
        w->sampled[f] = 0.0;
    }
    for (int64_t k = 0; k < rounds; k++) {
        const double u = fgi_rng_unit(&r->rng) * l1;
        int64_t low = 0, high = w->n_features - 1;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (w->draws[middle] <= u) low = middle + 1;
            else high = middle;
        }
        w->sampled[low] += l1 / (double)rounds;
    }
    for (int64_t f = 0; f < w->n_features; f++) {
        if (w->sampled[f] == 0.0) continue;
        add_column(r, w->features[f], copysign(w->sampled[f], w->feature[w->features[f]].w));
    }
}

static double loss_of(const ppd_run *r, int sign, double margin) {
    const fgi_ppd_settings *settings = r->p->settings;
    const double c = sign ? settings->C * settings->positive_weight : settings->C,
                 short_of = fgi_larger(0.0, 1.0 - margin);
    return settings->loss == FGI_PPD_HINGE ? c * short_of : c * short_of * short_of;
}

/* Primal and dual value, after an exact search. */
static void measure(ppd_run *r, double l1) {
    const ppd_work *w = r->w;
    const fgi_ppd_settings *settings = r->p->settings;
    const int64_t n_rows = r->p->data->n_rows, n = w->all_rows ? n_rows : w->n_rows;
    const double bias = bias_of(r);
    /* All rows as negatives first, then the positives put right: they are few. */
    double loss = w->all_rows ? 0.0 : (double)(n_rows - n) * loss_of(r, 0, -bias), linear = 0.0, square = 0.0;
    for (int64_t k = 0; k < n; k++) loss += loss_of(r, 0, -(w->score[w->all_rows ? k : w->rows[k]] + bias));
    for (int64_t k = 0; k < r->positives; k++) {
        const double score = w->score[r->positive[k]] + bias;
        loss += loss_of(r, 1, score) - loss_of(r, 0, -score);
    }
    for (int64_t f = 0; f < w->n_features; f++) {
        const double value = w->feature[w->features[f]].w;
        square += value * value;
    }
    for (int64_t a = 0; a < w->n_active; a++) {
        const int sign = a < r->positives;
        const double alpha = w->alpha[a];
        linear += alpha * (1.0 - (sign ? settings->bias : -settings->bias)) - 0.5 * r->ridge[sign] * alpha * alpha;
    }
    if (settings->learn_bias) square += w->bias_sum * w->bias_sum;
    r->out->info.primal = settings->lambda * l1 + 0.5 * square + loss;
    r->out->info.dual = linear - 0.5 * square;
}

/* ---- admission: the largest violators, ties to the lowest row -------------------------------------------------- */

static int weaker(const ppd_candidate *a, const ppd_candidate *b) {
    return a->violation < b->violation || (a->violation == b->violation && a->row > b->row);
}

/* heap[0] is the weakest of those kept. */
static void offer(ppd_candidate *heap, int64_t *n, int64_t most, ppd_candidate c) {
    int64_t k;
    if (*n < most) {
        for (k = (*n)++; k > 0 && weaker(&c, &heap[(k - 1) / 2]); k = (k - 1) / 2) heap[k] = heap[(k - 1) / 2];
        heap[k] = c;
        return;
    }
    if (!weaker(&heap[0], &c)) return;
    for (k = 0;;) {
        int64_t child = 2 * k + 1;
        if (child >= *n) break;
        if (child + 1 < *n && weaker(&heap[child + 1], &heap[child])) child++;
        if (!weaker(&heap[child], &c)) break;
        heap[k] = heap[child];
        k = child;
    }
    heap[k] = c;
}

static void admit_row(ppd_work *w, int32_t row) {
    fgi_assert(w->n_active < w->room && !(w->row_state[row] & ROW_ACTIVE));
    w->active[w->n_active] = row;
    w->alpha[w->n_active++] = 0.0;
    w->row_state[row] |= ROW_ACTIVE;
}

/* Admits up to `most` negatives; returns how many, and the largest violation seen among inactive rows. */
static int64_t admit(ppd_run *r, int64_t most, double *worst, fgi_rc *rc) {
    ppd_work *w = r->w;
    fgi_assert(most >= 0);
    const double bias = bias_of(r);
    int64_t n = 0;
    *worst = 0.0;
    if (!reserve_heap(w, most) || !reserve_active(w, w->n_active + most)) {
        *rc = FGI_NO_MEMORY;
        return 0;
    }
    const int64_t candidates = w->all_rows ? r->p->data->n_rows : w->n_rows;
    for (int64_t k = 0; k < candidates; k++) {
        const int32_t i = w->all_rows ? (int32_t)k : w->rows[k];
        const double violation = 1.0 + w->score[i] + bias;
        if (violation <= SMALL || (w->row_state[i] & (ROW_ACTIVE | ROW_POSITIVE))) continue;
        *worst = fgi_larger(*worst, violation);
        offer(w->heap, &n, most, (ppd_candidate){violation, i});
    }
    for (int64_t k = 0; k < n; k++) admit_row(w, w->heap[k].row);
    /* All rows that were not touched violate by 1 + b. They are alike to the search: some, drawn at random, will do. */
    if (!w->all_rows && 1.0 + bias > SMALL && r->p->data->n_rows > w->n_rows) {
        *worst = fgi_larger(*worst, 1.0 + bias);
        for (int64_t tries = 2 * most; n < most && tries > 0; tries--) {
            const int32_t i = (int32_t)fgi_rng_below(&r->rng, r->p->data->n_rows);
            if (w->row_state[i]) continue;
            admit_row(w, i);
            n++;
        }
    }
    return n;
}

#ifdef FGI_CHECKED
static void check_rows(const ppd_run *r) {
    const ppd_work *w = r->w;
    double sum = 0, size = 0;
    fgi_assert(r->positives <= w->n_active && w->n_active <= w->room);
    for (int64_t a = 0; a < w->n_active; a++) {
        const int32_t i = w->active[a];
        const int sign = a < r->positives;
        fgi_assert(i >= 0 && i < r->p->data->n_rows && (w->row_state[i] & ROW_ACTIVE));
        fgi_assert(!(w->row_state[i] & ROW_POSITIVE) == !sign);
        fgi_assert(w->alpha[a] >= 0 && w->alpha[a] <= r->limit[sign]);
        sum += sign ? w->alpha[a] : -w->alpha[a];
        size += w->alpha[a];
    }
    fgi_assert(fabs(sum - w->bias_sum) <= 1e-6 * (size + r->p->settings->C));
    int64_t marked = 0;
    for (int64_t i = 0; i < r->p->data->n_rows; i++) marked += (w->row_state[i] & ROW_ACTIVE) != 0;
    fgi_assert(marked == w->n_active);
    for (int64_t k = 0; k < w->n_rows; k++) fgi_assert(w->row_state[w->rows[k]] & ROW_SEEN);
}

static void check(const ppd_run *r) {
    const ppd_work *w = r->w;
    int64_t seen = 0;
    for (int64_t j = 0; j < r->p->data->n_features; j++) {
        const ppd_feature *f = &w->feature[j];
        fgi_assert(f->seen == 1.0 || (f->seen == 0.0 && f->v == 0.0 && f->w == 0.0));
        fgi_assert(f->w == soft(f->v, r->p->settings->lambda));
        seen += f->seen == 1.0;
    }
    fgi_assert(seen == w->n_features);
    for (int64_t k = 0; k < w->n_features; k++) fgi_assert(w->feature[w->features[k]].seen == 1.0);
    check_rows(r);
}
#endif

/* ---- the algorithm --------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static fgi_rc keep_column(ppd_run *r) {
    ppd_work *w = r->w;
    ppd_column *c = r->out;
    qsort(w->features, (size_t)w->n_features, sizeof *w->features, ascending);
    int64_t n = 0;
    for (int64_t f = 0; f < w->n_features; f++) n += (float)w->feature[w->features[f]].w != 0.0f;
    c->feature = fgi_alloc(n, sizeof *c->feature);
    c->value = fgi_alloc(n, sizeof *c->value);
    if (!c->feature || !c->value) return FGI_NO_MEMORY;
    for (int64_t f = 0; f < w->n_features; f++) {
        const float value = (float)w->feature[w->features[f]].w;
        if (value == 0.0f) continue;
        c->feature[c->n] = w->features[f];
        c->value[c->n++] = value;
    }
    c->bias = (float)bias_of(r);
    c->info.weights = n;
    for (int64_t a = 0; a < w->n_active; a++) c->info.support += w->alpha[a] > 0.0;
    return FGI_OK;
}

/* Back to the state in which the next label finds it. */
static void clear(ppd_run *r) {
    ppd_work *w = r->w;
    forget_scores(r);
    for (int64_t f = 0; f < w->n_features; f++) w->feature[w->features[f]] = (ppd_feature){0};
    for (int64_t a = 0; a < w->n_active; a++) w->row_state[w->active[a]] = 0;
    for (int64_t a = 0; a < w->n_active; a++) fgi_assert(w->row_state[w->active[a]] == 0);
    w->n_features = w->n_active = 0;
    w->bias_sum = 0.0;
}

static fgi_rc start(ppd_run *r) {
    const fgi_ppd_settings *settings = r->p->settings;
    ppd_work *w = r->w;
    for (int sign = 0; sign < 2; sign++) {
        const double c = sign ? settings->C * settings->positive_weight : settings->C;
        r->limit[sign] = settings->loss == FGI_PPD_HINGE ? c : INFINITY;
        r->ridge[sign] = settings->loss == FGI_PPD_HINGE ? 0.0 : 0.5 / c;
    }
    if (!reserve_active(w, r->positives)) return FGI_NO_MEMORY;
    for (int64_t k = 0; k < r->positives; k++) {
        admit_row(w, r->positive[k]);
        w->row_state[r->positive[k]] |= ROW_POSITIVE;
    }
    r->out->info.positives = r->positives;
    return FGI_OK;
}

/* Scores for the next search, sampled where that may be (`exact` == 0) and pays. Returns whether they are exact. */
static int search(ppd_run *r, int exact, double l1) {
    const double precision = r->p->settings->sparsify;
    r->out->info.searches++;
    if (!exact && precision > 0.0) {
        const double rounds = ceil(2.0 * l1 * l1 / (precision * precision)); /* Yan 2018, Theorem 5 */
        if (rounds < 0.5 * (double)r->w->n_features) { /* drawing pays when it leaves out at least half */
            sample_scores(r, l1, (int64_t)rounds);
            return 0;
        }
    }
    exact_scores(r);
    r->out->info.exact_searches++;
    return 1;
}

static fgi_rc iterate(ppd_run *r) {
    const fgi_ppd_settings *settings = r->p->settings;
    ppd_work *w = r->w;
    fgi_ppd_info *info = &r->out->info;
    fgi_rc rc = FGI_OK;
    int only_exact = 0;
    double goal = 0.1, last_gap = INFINITY;
    descend_epochs(r, goal);
    while (info->searches < settings->max_outer && !stopped(r)) {
        fgi_audit_rarely(check(r));
        const double l1 = l1_norm(w);
        int exact = search(r, only_exact, l1);
        measure(r, l1);
        /* Where sampling noise hides further progress, only exact searches help. */
        only_exact = only_exact || (!exact && info->primal - info->dual > 0.5 * last_gap);
        last_gap = info->primal - info->dual;
        if (!exact &&
            info->primal - info->dual <= settings->tol * info->primal) { /* so it seems: an exact search decides */
            exact = search(r, 1, l1);
            measure(r, l1);
        }
        if (exact && info->primal - info->dual <= settings->tol * info->primal) {
            info->converged = 1;
            break;
        }
        double worst;
        int64_t most = (int64_t)(settings->admit * (double)w->n_active);
        most = most < settings->admit_least ? settings->admit_least : most;
        const int64_t others = r->p->data->n_rows - w->n_active;
        const int64_t admitted = admit(r, most < others ? most : others, &worst, &rc);
        if (rc) return rc;
        /* Steps much smaller than the violations outside are not worth their time yet. */
        goal = admitted ? fgi_smaller(goal, 0.1 * worst) : 0.1 * goal;
        descend_epochs(r, goal);
        eliminate(r);
    }
    if (!info->converged && !stopped(r)) { /* what was reached, exactly */
        const double l1 = l1_norm(w);
        search(r, 1, l1);
        measure(r, l1);
    }
    return FGI_OK;
}

fgi_rc ppd_solve(const ppd_problem *p, ppd_work *w, int32_t label, ppd_column *column) {
    const fgi_extreme_data *d = p->data;
    const double begin = fgi_clock();
    ppd_run r = {.p = p, .w = w, .out = column};
    r.positive = d->positive + d->positive_begin[label];
    r.positives = d->positive_begin[label + 1] - d->positive_begin[label];
    r.rng.state = p->settings->seed ^ ((uint64_t)label * 0xD1342543DE82EF95u);
    memset(column, 0, sizeof *column);
    fgi_rc rc = start(&r);
    if (!rc) rc = iterate(&r);
    if (!rc && !stopped(&r)) {
        rc = keep_column(&r);
        column->done = !rc;
    }
    clear(&r);
    column->info.seconds = fgi_clock() - begin;
    return rc;
}
