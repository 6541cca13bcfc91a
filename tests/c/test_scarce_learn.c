/* Every allocation of the learners, random fields, optimisers and extreme classifiers fails in turn: each says so and
 * frees what it had; one that does without comes to the same weights. */
#include <math.h>
#include <stdlib.h>
#include "scarce.h"
#include "fginfer_extreme.h"
#include "fginfer_learn_crf.h"
#include "fginfer_optimise.h"
#include "learn_problem.h"

enum { SOME = 4, EVERY = 150 }; /* examples of a problem; allocations that fail, evenly chosen where there are more */

static const int32_t ORDER[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static double expected; /* what the run with enough memory came to; NAN before it */
static const char *tried;

/* What a run that ended well came to must be what the first one did. */
static fgi_rc ends_with(fgi_rc rc, double result) {
    if (rc) return rc;
    if (isnan(expected)) expected = result;
    CHECK_SAYING(result == expected, "%s: without allocation %lld it came to %.17g, with it to %.17g\n", tried,
        (long long)scarce_at, result, expected);
    return FGI_OK;
}

static void try_all(const char *name, scarce_job *job, void *given) {
    expected = NAN;
    tried = name;
    scarce_try(name, job, given, EVERY);
}

static double sum_of(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)(k % 17 + 1) * x[k];
    return sum;
}

/* ---- structural learners ------------------------------------------------------------------------------------- */

typedef struct trial {
    problem p;
    int method, threads;
    fgi_learn_gdmm_settings gdmm;
} trial;

static fgi_rc read_back(fgi_learner *L, const fgi_learn_data *data, fgi_error *err) {
    int64_t n, m;
    fgi_learner *other = NULL;
    fgi_learn_export_size(L, &n, &m);
    int32_t *ints = fgi_calloc(2 * n + m, sizeof *ints);
    double *reals = fgi_calloc(2 * n + 2 * N, sizeof *reals);
    fgi_rc rc = ints && reals ? fgi_learn_create(data, 1, &other, err) : FGI_NO_MEMORY;
    if (!rc) {
        fgi_learn_export(L, ints, ints + n, reals, reals + n, ints + 2 * n, reals + 2 * n, reals + 2 * n + N);
        rc = fgi_learn_import(
            other, n, ints, ints + n, reals, reals + n, ints + 2 * n, reals + 2 * n, reals + 2 * n + N, err);
    }
    free(ints), free(reals);
    fgi_learn_free(other);
    return rc;
}

static fgi_rc run_blocks(void *given) {
    trial *t = given;
    fgi_learner *L = NULL;
    fgi_error err;
    const fgi_learn_settings s = {
        .method = t->method, .averaging = 1, .max_answers = 3, .batch = t->threads, .C = 0.5, .threshold = 1e-3};
    int32_t answers[N * MOST * K];
    int64_t end[N];
    double values[N], loss = 0, plane[4096] = {0};
    fgi_rc rc = fgi_learn_create(&t->p.data, t->threads, &L, &err);
    for (int pass = 0; pass < 3 && !rc; pass++) {
        int64_t next = 0;
        rc = fgi_learn_pass(L, &s, ORDER, SOME, &next, INFINITY, &err);
        next = 0;
        if (!rc) rc = fgi_learn_cached_pass(L, &s, ORDER, SOME, &next, INFINITY, &err);
    }
    double result = 0;
    if (!rc && !t->p.data.sparse) {
        const fgi_learn_vector w = {.dense = fgi_learn_weights(L), .pairs = fgi_learn_weights(L) + D * K};
        result = sum_of(w.dense, fgi_learn_dimension(L));
        rc = fgi_learn_decode(L, &w, 1.0, ORDER, SOME, answers, end, values, &err);
        if (!rc) rc = fgi_learn_hinges(L, &w, ORDER, SOME, answers, end, values, &err);
        if (!rc) rc = fgi_learn_add_psi(L, ORDER, SOME, answers, end, 1.0, plane, &loss, &err);
        result += loss + sum_of(values, SOME);
        if (!rc && t->method <= FGI_LEARN_DCD) rc = read_back(L, &t->p.data, &err);
    }
    if (!rc && t->p.data.sparse) {
        const int64_t n = fgi_learn_rows_size(L);
        int64_t begin[D + 1];
        int32_t *label = fgi_calloc(n, sizeof *label);
        double *weight = fgi_calloc(n, sizeof *weight), *average = fgi_calloc(n, sizeof *average);
        if (!label || !weight || !average) rc = FGI_NO_MEMORY;
        else {
            fgi_learn_rows_export(L, begin, label, weight, average);
            result = sum_of(weight, n);
            rc = fgi_learn_rows_import(L, begin, label, weight, average, &err);
        }
        free(label), free(weight), free(average);
    }
    fgi_learn_free(L);
    return ends_with(rc, result);
}

static fgi_rc run_gdmm(void *given) {
    trial *t = given;
    fgi_learner *L = NULL;
    fgi_learn_gdmm *g = NULL;
    fgi_error err;
    double dual = 0, gap = 0, loss[N] = {0};
    int32_t done = 0;
    fgi_rc rc = fgi_learn_create(&t->p.data, t->threads, &L, &err);
    if (!rc) rc = fgi_learn_gdmm_create(L, &t->gdmm, &g, &err);
    for (int pass = 0; pass < 3 && !rc; pass++) {
        int64_t next = 0;
        rc = fgi_learn_gdmm_pass(g, ORDER, SOME, &next, INFINITY, &err);
        if (!rc) rc = fgi_learn_gdmm_end_pass(g, &err);
    }
    int64_t next = 0;
    if (!rc) rc = fgi_learn_gdmm_losses(g, fgi_learn_weights(L), ORDER, SOME, &next, INFINITY, loss, &err);
    if (!rc) rc = fgi_learn_gdmm_dual(g, INFINITY, &dual, &gap, &done, &err);
    const double result = rc ? 0 : sum_of(fgi_learn_weights(L), fgi_learn_dimension(L)) + sum_of(loss, SOME) + dual;
    fgi_learn_gdmm_free(g);
    fgi_learn_free(L);
    return ends_with(rc, result);
}

static fgi_rc run_sets(void *given) {
    trial *t = given;
    fgi_learner *L = NULL;
    fgi_learn_gdmm_sets *g = NULL, *other = NULL;
    fgi_error err;
    double dual = 0, gap = 0, loss[N] = {0}, losses[N];
    int32_t done = 0, sizes[2 * N];
    int64_t labels = 0, pairs = 0, next = 0;
    fgi_rc rc = fgi_learn_create(&t->p.data, t->threads, &L, &err);
    if (!rc) rc = fgi_learn_gdmm_sets_create(L, &t->gdmm, 1, &g, &err);
    for (int pass = 0; pass < 3 && !rc; pass++) {
        next = 0;
        rc = fgi_learn_gdmm_sets_pass(g, ORDER, SOME, &next, INFINITY, &err);
        if (!rc) rc = fgi_learn_gdmm_sets_end_pass(g, &err);
    }
    next = 0;
    if (!rc) rc = fgi_learn_gdmm_sets_losses(g, fgi_learn_weights(L), ORDER, SOME, &next, INFINITY, loss, &err);
    if (!rc) rc = fgi_learn_gdmm_sets_dual(g, INFINITY, &dual, &gap, &done, &err);
    const double result = rc ? 0 : sum_of(fgi_learn_weights(L), fgi_learn_dimension(L)) + sum_of(loss, SOME) + dual;
    if (!rc) {
        fgi_learn_gdmm_sets_export_size(g, &labels, &pairs);
        int32_t *ints = fgi_calloc(labels + 2 * pairs, sizeof *ints);
        double *reals = fgi_calloc(labels + 4 * pairs, sizeof *reals);
        const int64_t work[5] = {0};
        if (!ints || !reals) rc = FGI_NO_MEMORY;
        if (!rc) rc = fgi_learn_gdmm_sets_create(L, &t->gdmm, 1, &other, &err);
        if (!rc) {
            fgi_learn_gdmm_sets_export(g, sizes, ints, reals, ints + labels, reals + labels, losses);
            rc = fgi_learn_gdmm_sets_import(
                other, sizes, ints, reals, ints + labels, reals + labels, losses, work, &err);
        }
        free(ints), free(reals);
    }
    fgi_learn_gdmm_sets_free(other);
    fgi_learn_gdmm_sets_free(g);
    fgi_learn_free(L);
    return ends_with(rc, result);
}

static void structural(void) {
    static trial t;
    const int kinds[] = {FGI_LEARN_LABELS, FGI_LEARN_LABELS, FGI_LEARN_LABELS, FGI_LEARN_CHOICES, FGI_LEARN_SETS};
    const int edges[] = {FGI_EDGES_CHAIN, FGI_EDGES_LIST, FGI_EDGES_CHAIN, FGI_EDGES_NONE, FGI_EDGES_CHAIN};
    for (int shape = 0; shape < 5; shape++)
        for (t.method = FGI_LEARN_BCFW; t.method <= FGI_LEARN_SSG; t.method++) {
            make(&t.p, kinds[shape], edges[shape], shape == 2, 3);
            t.threads = 1 + t.method % 2;
            try_all("blocks", run_blocks, &t);
            t.p.data.sparse = shape == 0 && t.method != FGI_LEARN_DCD;
            if (t.p.data.sparse) try_all("blocks by rows", run_blocks, &t);
        }
    for (int shape = 0; shape < 6; shape++) {
        make(&t.p, FGI_LEARN_LABELS, shape % 3, shape == 3, 5);
        t.threads = 1 + shape % 2;
        t.gdmm = (fgi_learn_gdmm_settings){.C = 1,
            .eta = 1,
            .partitions = 1,
            .seed = 3,
            .batch = shape == 1 ? 3 : 0,
            .brute_force = shape == 2,
            .averaging = shape == 1,
            .search = shape == 4,
            .away = shape == 5 ? 2 : 0};
        try_all("gdmm of tokens", run_gdmm, &t);
        if (shape > 3) continue;
        make(&t.p, FGI_LEARN_SETS, shape % 2, 0, 5);
        t.gdmm.sorted = shape == 3;
        t.gdmm.brute_force = shape == 1;
        try_all("gdmm of sets", run_sets, &t);
    }
}

/* ---- random fields ------------------------------------------------------------------------------------------- */

typedef struct field {
    problem p;
    fgi_crf_settings s;
    int sgd;
} field;

static fgi_rc run_field(void *given) {
    field *f = given;
    fgi_crf *c = NULL;
    fgi_error err;
    double loss = 0, log_z[N], truth[N], due = 0, result = 0;
    fgi_rc rc = fgi_crf_create(&f->p.data, &f->s, &c, &err);
    if (rc) return rc;
    const int64_t n = fgi_crf_dimension(c);
    double *w = fgi_calloc(3 * n, sizeof *w), *cells = fgi_calloc(fgi_crf_cells(c), sizeof *cells);
    if (!w || !cells) rc = FGI_NO_MEMORY;
    for (int64_t k = 0; k < n && !rc; k++) w[k] = (double)(k * 37 % 41) / 41 - 0.5;
    if (!rc) rc = fgi_crf_value(c, w, NULL, n, &loss, &err);
    if (!rc) rc = fgi_crf_gradient(c, w, NULL, n, w + n, &err);
    if (!rc) rc = fgi_crf_curvature(c, w, NULL, n, w + 2 * n, &err);
    if (!rc) result = loss + sum_of(w + n, 2 * n);
    if (!rc && !f->s.pseudo) rc = fgi_crf_marginals(c, w, log_z, truth, cells, NULL, &err);
    if (!rc && !f->s.pseudo) result += sum_of(log_z, N) + sum_of(cells, fgi_crf_cells(c));
    if (!rc && f->sgd) {
        int64_t next = 0;
        for (int64_t k = n; k < 2 * n; k++) w[k] = 0;
        rc = fgi_crf_sgd(c, w, w + n, &due, ORDER, N, &next, 0.1, 0.01, INFINITY, &err);
        if (!rc) result += sum_of(w, n);
    }
    free(w), free(cells);
    fgi_crf_free(c);
    return ends_with(rc, result);
}

static void fields(void) {
    static field f;
    const int32_t parent[2 + K] = {-1, 0, 0, 0, 1, 1, -1};
    const double weight[N] = {1, 2, 0, 1, 1, 0.5, 1, 1, 3, 1, 1, 1};
    for (int shape = 0; shape < 8; shape++) {
        make(&f.p, FGI_LEARN_LABELS,
            shape < 5        ? FGI_EDGES_CHAIN
                : shape == 5 ? FGI_EDGES_LIST
                             : FGI_EDGES_NONE,
            shape == 1, 11);
        f.s = (fgi_crf_settings){.threads = 1 + shape % 2,
            .pseudo = shape == 2,
            .memory = shape == 3 ? 1 : 1 << 20,
            .prune = shape == 4 ? 0.01 : 0,
            .weight = shape == 0 ? weight : NULL};
        if (shape == 7) f.s.n_inner = 2, f.s.parent = parent;
        f.sgd = shape == 0 || shape == 1 || shape == 5;
        try_all("a random field", run_field, &f);
    }
}

/* ---- optimisers ---------------------------------------------------------------------------------------------- */

enum { SIZE = 20 };

static fgi_rc run_optimiser(void *given) {
    const fgi_optimise_settings *s = given;
    fgi_optimiser *o = NULL, *other = NULL;
    fgi_error err;
    fgi_request q;
    double w[SIZE];
    fgi_rc rc = fgi_optimiser_create(SIZE, s, NULL, &o, &err);
    for (int asked = 0; !rc && asked < 60 && (fgi_optimiser_ask(o, &q), q.ask != FGI_ASK_NOTHING); asked++) {
        double value = 0;
        for (int64_t k = 0; q.ask != FGI_ASK_VALUE && k < q.n; k++) {
            const int64_t j = q.set ? q.set[k] : k;
            q.gradient[k] =
                q.ask == FGI_ASK_CURVATURE ? (double)(1 + j % 7) : (double)(1 + j % 7) * (q.w[j] - (double)j / 5);
        }
        for (int64_t j = 0; q.ask == FGI_ASK_VALUE && j < SIZE; j++)
            value += 0.5 * (double)(1 + j % 7) * (q.w[j] - (double)j / 5) * (q.w[j] - (double)j / 5);
        rc = fgi_optimiser_answer(o, value, &err);
    }
    if (!rc) {
        int64_t n, m;
        fgi_optimiser_export_size(o, &n, &m);
        double *reals = fgi_calloc(n, sizeof *reals);
        int64_t *ints = fgi_calloc(m, sizeof *ints);
        rc = reals && ints ? fgi_optimiser_create(SIZE, s, NULL, &other, &err) : FGI_NO_MEMORY;
        if (!rc) fgi_optimiser_export(o, reals, ints), rc = fgi_optimiser_import(other, reals, n, ints, m, &err);
        free(reals), free(ints);
    }
    if (!rc) fgi_optimiser_weights(other, w);
    fgi_optimiser_free(o);
    fgi_optimiser_free(other);
    return ends_with(rc, rc ? 0 : sum_of(w, SIZE));
}

static void optimisers(void) {
    for (int method = FGI_PROXQN; method <= FGI_BCD; method++) {
        fgi_optimise_settings s = {method, 5, 10, 1, method == FGI_PROXQN, 1.5, 0.25, 1e-9, 10, 7, 0};
        try_all("an optimiser", run_optimiser, &s);
    }
}

/* ---- extreme classification ---------------------------------------------------------------------------------- */

enum { ROWS = 30, WIDE = 8, LABELS = 6 };

typedef struct extreme {
    fgi_extreme_data data;
    int64_t row_begin[ROWS + 1], column_begin[WIDE + 1], label_begin[ROWS + 1], positive_begin[LABELS + 1];
    int32_t feature[2 * ROWS], column_row[2 * ROWS], label[ROWS], positive[ROWS];
    float value[2 * ROWS], column_value[2 * ROWS];
    int parts, search, threads;
} extreme;

static void make_extreme(extreme *x) {
    int64_t at = 0;
    for (int r = 0; r < ROWS; r++) {
        x->feature[2 * r] = r % 5, x->feature[2 * r + 1] = 5 + r % 3;
        x->value[2 * r] = 1 + (float)(r % 4), x->value[2 * r + 1] = 0.5f;
        x->label[r] = (r % 5 + r % 3) % LABELS;
        x->row_begin[r + 1] = 2 * r + 2, x->label_begin[r + 1] = r + 1;
    }
    for (int j = 0; j < WIDE; j++) {
        for (int p = 0; p < 2 * ROWS; p++)
            if (x->feature[p] == j) x->column_row[at] = p / 2, x->column_value[at++] = x->value[p];
        x->column_begin[j + 1] = at;
    }
    at = 0;
    for (int y = 0; y < LABELS; y++) {
        for (int r = 0; r < ROWS; r++)
            if (x->label[r] == y) x->positive[at++] = r;
        x->positive_begin[y + 1] = at;
    }
    x->data = (fgi_extreme_data){ROWS, WIDE, LABELS, x->row_begin, x->feature, x->value, x->column_begin, x->column_row,
        x->column_value, x->label_begin, x->label, x->positive_begin, x->positive};
}

static fgi_rc run_ppd(void *given) {
    extreme *x = given;
    fgi_ppd *p = NULL;
    fgi_ppd_columns *c = NULL;
    fgi_error err;
    const int32_t all[LABELS] = {0, 1, 2, 3, 4, 5}, stop = 0;
    const fgi_ppd_settings s = {.loss = x->search ? FGI_PPD_HINGE : FGI_PPD_SQUARED_HINGE,
        .C = 1,
        .lambda = 0.01,
        .positive_weight = 1,
        .tol = 0.01,
        .max_outer = 20,
        .max_inner = 5,
        .admit = 1,
        .admit_least = 4,
        .learn_bias = 1,
        .seed = 3};
    int64_t begin[LABELS + 1];
    float bias[LABELS];
    fgi_ppd_info info[LABELS];
    uint8_t done[LABELS];
    double result = 0;
    fgi_rc rc = fgi_ppd_create(&x->data, &s, x->threads, &p, &err);
    if (!rc) rc = fgi_ppd_train(p, all, LABELS, &stop, &c, &err);
    if (!rc) {
        const int64_t n = fgi_ppd_columns_weights(c);
        int32_t *feature = fgi_calloc(n, sizeof *feature);
        float *value = fgi_calloc(n, sizeof *value);
        if (!feature || !value) rc = FGI_NO_MEMORY;
        else fgi_ppd_columns_get(c, begin, feature, value, bias, info, done);
        for (int64_t k = 0; !rc && k < n; k++) result += (double)value[k] * (1 + feature[k]);
        free(feature), free(value);
    }
    fgi_ppd_columns_free(c);
    fgi_ppd_free(p);
    return ends_with(rc, result);
}

static fgi_rc run_pd(void *given) {
    extreme *x = given;
    fgi_pd *p = NULL;
    fgi_error err;
    fgi_pd_info info;
    int32_t rows[ROWS];
    double loss = 0;
    for (int r = 0; r < ROWS; r++) rows[r] = (r * 7) % ROWS;
    const fgi_pd_settings s = {.C = 1, .lambda = 0.01, .parts = x->parts, .seed = 3, .search = x->search};
    fgi_rc rc = fgi_pd_create(&x->data, &s, x->threads, &p, &err);
    for (int pass = 0; pass < 3 && !rc; pass++) {
        int64_t next = 0;
        rc = fgi_pd_pass(p, rows, ROWS, &next, INFINITY, &err);
    }
    if (!rc) rc = fgi_pd_joint(p, INFINITY, &err);
    if (!rc) rc = fgi_pd_refit(p, &err);
    if (!rc) rc = fgi_pd_losses(p, 0, ROWS, &loss, &err);
    if (!rc) fgi_pd_get_info(p, &info), loss += info.dual;
    fgi_pd_free(p);
    return ends_with(rc, loss);
}

static fgi_rc run_top(void *given) {
    extreme *x = given;
    const int32_t order[LABELS] = {0, 1, 2, 3, 4, 5};
    const float bias[LABELS] = {0};
    /* The columns of the rows stand for weights of labels: row r is label r % LABELS. */
    int32_t label[2 * ROWS], best[2 * ROWS];
    float scores[2 * ROWS];
    double result = 0;
    fgi_error err;
    for (int64_t j = 0; j < WIDE; j++)
        for (int64_t p = x->column_begin[j]; p < x->column_begin[j + 1]; p++)
            label[p] = (int32_t)((p - x->column_begin[j]) % LABELS);
    const fgi_extreme_weights w = {.n_features = WIDE,
        .n_labels = LABELS,
        .begin = x->column_begin,
        .label = label,
        .value = x->column_value,
        .bias = bias,
        .bias_order = order};
    int64_t touched = 0;
    fgi_rc rc =
        fgi_extreme_topk(&w, ROWS, x->row_begin, x->feature, x->value, 2, x->threads, best, scores, &touched, &err);
    for (int k = 0; k < 2 * ROWS && !rc; k++) result += (double)scores[k] * (1 + best[k]);
    return ends_with(rc, result);
}

static void extremes(void) {
    static extreme x;
    make_extreme(&x);
    for (x.threads = 1; x.threads <= 2; x.threads++) {
        for (x.search = 0; x.search < 2; x.search++) {
            x.parts = 1;
            try_all("ppd-sparse", run_ppd, &x);
            try_all("pd-sparse", run_pd, &x);
        }
        x.search = 0, x.parts = 2;
        try_all("pd-sparse by parts", run_pd, &x);
        try_all("the best labels of rows", run_top, &x);
    }
}

int main(void) {
    structural();
    fields();
    optimisers();
    extremes();
    return failed();
}
