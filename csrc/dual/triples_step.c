/* dual/triples_step.c - what triples and nodes do with the scores of pairs (dual/triples.h). */
#include <string.h>
#include "dual/triples.h"

/* Entries are added up from `terms` numbers and a few more; one that is raised by so much of its magnitude is no
 * smaller than the exact one. */
static double rounding_of(int64_t terms) { return 0x1p-53 * (double)(terms + 8); }

static int32_t card(const fgi_triples *s, int32_t var) { return s->model->s->cards[var]; }

int64_t fgi_triple_work(const fgi_triples *s, const fgi_triple *q) {
    return (int64_t)card(s, q->vars[0]) * card(s, q->vars[1]) * card(s, q->vars[2]);
}

/* ---- triples --------------------------------------------------------------------------------------------------- */

/* For tables x of (a, b), y of (b, c), z of (a, c): max-marginals of x + y + z, one for each pair. */
static void first_marginal(const fgi_triples *s, const fgi_triple *q, double *const t[3], double *out) {
    const int64_t n0 = card(s, q->vars[0]), n1 = card(s, q->vars[1]), n2 = card(s, q->vars[2]);
    for (int64_t a = 0; a < n0; a++) {
        s->k->maxplus_cols(t[1], n1, n2, 1.0, t[2] + a * n2, out + a * n1);
        s->k->add(out + a * n1, t[0] + a * n1, n1);
    }
}

static void second_marginal(const fgi_triples *s, const fgi_triple *q, double *const t[3], double *out) {
    const int64_t n0 = card(s, q->vars[0]), n1 = card(s, q->vars[1]), n2 = card(s, q->vars[2]);
    for (int64_t b = 0; b < n1; b++) {
        for (int64_t a = 0; a < n0; a++) s->line[a] = t[0][a * n1 + b];
        s->k->maxplus_rows(t[2], n0, n2, 1.0, s->line, out + b * n2);
        s->k->add(out + b * n2, t[1] + b * n2, n2);
    }
}

static void outer_marginal(const fgi_triples *s, const fgi_triple *q, double *const t[3], double *out) {
    const int64_t n0 = card(s, q->vars[0]), n1 = card(s, q->vars[1]), n2 = card(s, q->vars[2]);
    for (int64_t a = 0; a < n0; a++) {
        s->k->maxplus_rows(t[1], n1, n2, 1.0, t[0] + a * n1, out + a * n2);
        s->k->add(out + a * n2, t[2] + a * n2, n2);
    }
}

typedef void marginal_of(const fgi_triples *s, const fgi_triple *q, double *const t[3], double *out);
static marginal_of *const marginals[3] = {first_marginal, second_marginal, outer_marginal};

static double top_of_three(const fgi_triples *s, const fgi_triple *q, double *const t[3]) {
    first_marginal(s, q, t, s->marginal[0]);
    return s->k->max(s->marginal[0], (int64_t)card(s, q->vars[0]) * card(s, q->vars[1]));
}

double fgi_triple_worth(const fgi_triples *s, const fgi_triple *q) {
    double *t[3], apart = 0;
    for (int k = 0; k < 3; k++) {
        t[k] = s->t + s->pairs[q->pairs[k]].begin;
        apart += s->k->max(t[k], fgi_pair_entries(s, q->pairs[k]));
    }
    return apart - top_of_three(s, q, t);
}

/* So much of a marginal goes from the triple to the pair. */
static void give(const fgi_triples *s, const fgi_triple *q, int k, double share) {
    double *t = s->t + s->pairs[q->pairs[k]].begin, *p = q->p[k];
    const double *out = s->marginal[k];
    const int64_t n = fgi_pair_entries(s, q->pairs[k]);
    for (int64_t x = 0; x < n; x++) {
        const double part = share * out[x];
        t[x] += part;
        p[x] -= part;
    }
}

/* A third of its marginal for each pair leaves no state above 0; what is below 0 still goes to one pair after the
 * other. */
void fgi_triple_update(const fgi_triples *s, const fgi_triple *q) {
    for (int k = 0; k < 3; k++) {
        double *t = s->t + s->pairs[q->pairs[k]].begin;
        const int64_t n = fgi_pair_entries(s, q->pairs[k]);
        s->k->add(q->p[k], t, n);
        memset(t, 0, (size_t)n * sizeof *t);
    }
    for (int k = 0; k < 3; k++) marginals[k](s, q, q->p, s->marginal[k]);
    for (int k = 0; k < 3; k++) give(s, q, k, 1.0 / 3);
    for (int k = 0; k < 3; k++) {
        marginals[k](s, q, q->p, s->marginal[k]);
        give(s, q, k, 1.0);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* Max-marginals of a pair for one of its variables. */
static void pair_marginal(const fgi_triples *s, int32_t e, int is_second, double *out) {
    const fgi_pair *pair = &s->pairs[e];
    const double *t = s->t + pair->begin;
    const int32_t rows = card(s, pair->vars[0]), cols = card(s, pair->vars[1]);
    if (!is_second) {
        for (int32_t a = 0; a < rows; a++) out[a] = fgi_max_of(t + (int64_t)a * cols, cols);
        return;
    }
    memcpy(out, t, (size_t)cols * sizeof *out);
    for (int32_t a = 1; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) out[b] = fgi_larger(out[b], t[(int64_t)a * cols + b]);
}

/* From the pair to one of its variables: message += by, the pair's scores -= by. */
static void move(fgi_triples *s, int32_t e, int is_second, const double *by, double times) {
    const fgi_pair *pair = &s->pairs[e];
    const int32_t rows = card(s, pair->vars[0]), cols = card(s, pair->vars[1]);
    double *t = s->t + pair->begin, *m = (is_second ? s->high : s->low) + (int64_t)e * s->max_card;
    for (int32_t a = 0; a < (is_second ? cols : rows); a++) m[a] += times * by[a];
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) t[(int64_t)a * cols + b] -= times * by[is_second ? b : a];
}

void fgi_triples_visit(fgi_triples *s, int64_t i, int goes_back) {
    double *u = s->u + s->at[i], *out = s->line;
    const int32_t n = card(s, (int32_t)i);
    int64_t later = 0, earlier = 0;
    for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
        const int is_second = s->pairs[s->adj[at]].vars[1] == i;
        if (is_second == goes_back) later++;
        else earlier++;
        pair_marginal(s, s->adj[at], is_second, out);
        move(s, s->adj[at], is_second, out, 1.0);
        s->k->add(u, out, n);
    }
    if (later + earlier == 0) return;
    const double share = 1.0 / (double)(later > earlier ? later : earlier);
    for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
        const int is_second = s->pairs[s->adj[at]].vars[1] == i;
        if (is_second == goes_back) move(s, s->adj[at], is_second, u, -share);
    }
    for (int32_t a = 0; a < n; a++) u[a] *= 1 - share * (double)later;
}

int32_t fgi_triples_label(const fgi_triples *s, int64_t i, const int32_t *labels) {
    const int32_t n = card(s, (int32_t)i);
    double *sum = s->line;
    memcpy(sum, s->u + s->at[i], (size_t)n * sizeof *sum);
    for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
        const fgi_pair *pair = &s->pairs[s->adj[at]];
        if (pair->vars[1] != i) continue;
        s->k->add(sum, s->t + pair->begin + (int64_t)labels[pair->vars[0]] * n, n);
    }
    return (int32_t)fgi_argmax_of(sum, n);
}

/* ---- sums made afresh, and what rounding may have taken from them ---------------------------------------------- */

void fgi_triples_resum_node(fgi_triples *s, int64_t i) {
    double *u = s->u + s->at[i];
    const int32_t n = card(s, (int32_t)i);
    memcpy(u, s->theta_node + s->at[i], (size_t)n * sizeof *u);
    for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
        const int32_t e = s->adj[at];
        const double *m = (s->pairs[e].vars[1] == i ? s->high : s->low) + (int64_t)e * s->max_card;
        s->k->add(u, m, n);
    }
}

void fgi_triples_resum_pair(fgi_triples *s, int32_t e) {
    const fgi_pair *pair = &s->pairs[e];
    const int32_t rows = card(s, pair->vars[0]), cols = card(s, pair->vars[1]);
    const double *low = s->low + (int64_t)e * s->max_card, *high = s->high + (int64_t)e * s->max_card;
    const double *theta = s->theta + pair->begin;
    double *t = s->t + pair->begin, *size = s->size + pair->begin;
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) {
            const int64_t x = (int64_t)a * cols + b;
            t[x] = theta[x] - low[a] - high[b];
            size[x] = fabs(theta[x]) + fabs(low[a]) + fabs(high[b]);
        }
}

void fgi_triples_resum_triple(fgi_triples *s, const fgi_triple *q) {
    for (int k = 0; k < 3; k++) {
        const int64_t begin = s->pairs[q->pairs[k]].begin, n = fgi_pair_entries(s, q->pairs[k]);
        double *t = s->t + begin, *size = s->size + begin;
        for (int64_t x = 0; x < n; x++) {
            t[x] -= q->p[k][x];
            size[x] += fabs(q->p[k][x]);
        }
    }
}

double fgi_triples_node_top(const fgi_triples *s, int64_t i) {
    const double *u = s->u + s->at[i], *theta = s->theta_node + s->at[i];
    const double part = rounding_of(s->adj_begin[i + 1] - s->adj_begin[i]);
    double best = -INFINITY;
    for (int32_t a = 0; a < card(s, (int32_t)i); a++) {
        double size = fabs(theta[a]);
        for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
            const int32_t e = s->adj[at];
            size += fabs((s->pairs[e].vars[1] == i ? s->high : s->low)[(int64_t)e * s->max_card + a]);
        }
        best = fgi_larger(best, u[a] + part * size);
    }
    return best;
}

double fgi_triples_pair_top(const fgi_triples *s, int32_t e) {
    const int64_t begin = s->pairs[e].begin, n = fgi_pair_entries(s, e);
    const double part = rounding_of(s->pairs[e].terms);
    double best = -INFINITY;
    for (int64_t x = begin; x < begin + n; x++) best = fgi_larger(best, s->t[x] + part * s->size[x]);
    return best + s->pairs[e].lost;
}

/* Messages are raised by more than what adding three of them may lose. */
double fgi_triples_triple_top(const fgi_triples *s, const fgi_triple *q) {
    double *raised[3];
    const double part = rounding_of(0);
    for (int k = 0; k < 3; k++) {
        raised[k] = s->marginal[k];
        for (int64_t x = 0; x < fgi_pair_entries(s, q->pairs[k]); x++)
            raised[k][x] = q->p[k][x] + part * fabs(q->p[k][x]);
    }
    const int64_t n0 = card(s, q->vars[0]), n1 = card(s, q->vars[1]), n2 = card(s, q->vars[2]);
    double best = -INFINITY;
    for (int64_t a = 0; a < n0; a++) {
        s->k->maxplus_cols(raised[1], n1, n2, 1.0, raised[2] + a * n2, s->line);
        s->k->add(s->line, raised[0] + a * n1, n1);
        best = fgi_larger(best, s->k->max(s->line, n1));
    }
    return best;
}
