/* exact/node.c - dual ascent on a problem, see exact/node.h. */
#include "exact/node.h"
#include <string.h>
#include "model/marginal.h"

enum {
    FEW_STATES = 15, /* pairs of variables with no more states are read directly, see few_marginal */
    FEW_LABELS = 8   /* labels of a variable: as in model/reweight.c */
};

/* The bound is kept in two parts, so that taking maxima out and putting them in again loses nothing. */
void fgi_node_set_bound(fgi_node *p, const fgi_sum *sum) {
    p->bound = fgi_sum_value(sum);
    p->carry = sum->forbidden ? 0 : (sum->sum - p->bound) + sum->carry;
    p->removed = -INFINITY;
}

static void add_to_bound(fgi_node *p, double x) {
    fgi_assert(x < INFINITY && p->bound < INFINITY);
    fgi_sum sum = {p->bound, p->carry, 0};
    fgi_sum_add(&sum, x);
    p->bound = sum.sum + sum.carry;
    p->carry = (sum.sum - p->bound) + sum.carry;
}

double fgi_node_error(const fgi_node *p) {
    const double terms = p->magnitude + (double)p->n_slots * fgi_larger(p->largest[0], p->largest[1]);
    /* The bound itself is the nearest double, and so is its sum with this. */
    const double nearest = 0x1p-52 * (p->bound > -INFINITY ? fabs(p->bound) : 0);
    return p->error + 0x1p-53 * (double)(p->additions + p->sweeps) * terms + nearest;
}

void fgi_node_scratch_take(fgi_node_scratch *scratch, const fgi_model *m, fgi_arena *arena) {
    scratch->nu = fgi_take(arena, m->s->max_card, double);
    scratch->minus = fgi_take(arena, (int64_t)m->s->max_arity * m->s->max_card, double);
    scratch->wide = fgi_take(arena, fgi_marginal_scratch(m), double);
}

int fgi_node_remove(fgi_node *p, int32_t var, int32_t a) {
    fgi_assert(var >= 0 && var < p->n && a >= 0 && a < p->card[var] && p->alive[var] > 0);
    p->unary[p->begin[var] + a] = -INFINITY;
    p->belief[p->begin[var] + a] = -INFINITY;
    for (int32_t k = p->link_begin[var]; k < p->link_begin[var + 1]; k++) p->message[p->links[k].mu + a] = 0;
    return --p->alive[var] > 0;
}

static double minus(double mu, double unary) { return unary == -INFINITY ? -INFINITY : -mu; }

/* A factor of two binary variables: most of a grid, and a call and its loops take three times as long as the work. */
static void binary_marginal(const fgi_node *p, const fgi_link *l, double *nu) {
    const int32_t other = p->slot_begin[l->factor] + 1 - l->position;
    fgi_assert(p->states[l->factor] == 4 && l->position < 2);
    const double *t = p->table[l->factor], *mu = p->message + p->slot_message[other],
                 *unary = p->unary + p->begin[p->slot_var[other]];
    const double h0 = minus(mu[0], unary[0]), h1 = minus(mu[1], unary[1]);
    nu[0] = fgi_larger(t[0] + h0, (l->position ? t[2] : t[1]) + h1);
    nu[1] = fgi_larger((l->position ? t[1] : t[2]) + h0, t[3] + h1);
}

/* Two variables with few labels each: most of what is left deep in the tree. By callgrind on grids, a product of any
 * shape takes 300 instructions for 3 x 3 states, this 140; with 16 states and more the kernels are quicker. */
static void few_marginal(const fgi_node *p, const fgi_link *l, double *restrict nu) {
    const int32_t other = p->slot_begin[l->factor] + 1 - l->position, j = p->slot_var[other];
    fgi_assert(l->position < 2 && j >= 0 && j < p->n);
    const int32_t n_from = p->card[j], n_to = p->card[p->slot_var[p->slot_begin[l->factor] + l->position]];
    const double *restrict t = p->table[l->factor], *mu = p->message + p->slot_message[other];
    const double *unary = p->unary + p->begin[j];
    const int32_t step = l->position ? 1 : n_from, next = l->position ? n_to : 1; /* to the next label of each */
    double h = minus(mu[0], unary[0]);
    for (int32_t b = 0; b < n_to; b++) nu[b] = t[b * step] + h;
    for (int32_t a = 1; a < n_from; a++) {
        t += next;
        if (unary[a] == -INFINITY) continue;
        h = -mu[a];
        for (int32_t b = 0; b < n_to; b++) nu[b] = fgi_larger(nu[b], t[b * step] + h);
    }
}

static void pair_marginal(const fgi_node *p, const fgi_link *l, double *nu, double *h) {
    const int32_t first = p->slot_begin[l->factor], other = first + 1 - l->position, j = p->slot_var[other];
    const double *t = p->table[l->factor], *mu = p->message + p->slot_message[other], *unary = p->unary + p->begin[j];
    const int32_t rows = p->card[p->slot_var[first]], cols = p->card[p->slot_var[first + 1]];
    for (int32_t a = 0; a < p->card[j]; a++) h[a] = minus(mu[a], unary[a]);
    (l->position ? p->kernels->maxplus_rows : p->kernels->maxplus_cols)(t, rows, cols, 1, h, nu);
}

/* nu(a) = max over the states with y_k = a of table - messages of the other variables. */
static void marginal(const fgi_node *p, const fgi_link *l, fgi_node_scratch *scratch) {
    const int32_t first = p->slot_begin[l->factor], arity = p->slot_begin[l->factor + 1] - first;
    const int32_t *vars = p->slot_var + first;
    fgi_assert(arity >= 2 && arity <= FGI_NODE_ARITY && l->position < arity);
    if (arity == 2) {
        if (p->card[vars[0]] == 2 && p->card[vars[1]] == 2) binary_marginal(p, l, scratch->nu);
        else if (p->states[l->factor] <= FEW_STATES) few_marginal(p, l, scratch->nu);
        else pair_marginal(p, l, scratch->nu, scratch->minus);
        return;
    }
    const double *g[FGI_NODE_ARITY];
    double *to = scratch->minus;
    for (int32_t q = 0; q < arity; q++) {
        const int32_t n = p->card[vars[q]];
        g[q] = to;
        if (q == l->position) continue;
        const double *mu = p->message + p->slot_message[first + q], *unary = p->unary + p->begin[vars[q]];
        for (int32_t a = 0; a < n; a++) to[a] = minus(mu[a], unary[a]);
        to += n;
    }
    fgi_table_marginal(
        p->kernels, p->table[l->factor], 1, arity, vars, p->card, l->position, g, scratch->nu, scratch->wide);
}

/* Maximum of the reparametrised factor. */
static double factor_maximum(const fgi_node *p, int32_t f, fgi_node_scratch *scratch) {
    fgi_assert(f >= 0 && f < p->n_factors);
    const int32_t first = p->slot_begin[f], i = p->slot_var[first];
    const double *mu = p->message + p->slot_message[first], *unary = p->unary + p->begin[i];
    double best = -INFINITY;
    marginal(p, &(fgi_link){.factor = f}, scratch);
    for (int32_t a = 0; a < p->card[i]; a++)
        if (unary[a] > -INFINITY) best = fgi_larger(best, scratch->nu[a] - mu[a]);
    return best;
}

void fgi_node_set_messages(fgi_node *p, const double *mu, fgi_node_scratch *scratch) {
    for (int32_t s = 0; s < p->n_slots; s++)
        for (int32_t a = 0, i = p->slot_var[s]; a < p->card[i]; a++, mu++)
            if (p->unary[p->begin[i] + a] > -INFINITY && fabs(*mu) < INFINITY) p->message[p->slot_message[s] + a] = *mu;
    /* The bound is a constant and the maxima of all reparametrised parts: take the old maxima out, put the new ones in.
     */
    fgi_sum sum = {p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&sum, -p->factor_max[f]);
    for (int32_t i = 0; i < p->n; i++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++) {
            double b = p->unary[p->begin[i] + a];
            for (int32_t k = p->link_begin[i]; b > -INFINITY && k < p->link_begin[i + 1]; k++)
                b += p->message[p->links[k].mu + a];
            best = fgi_larger(best, b);
        }
        if (best == -INFINITY) continue; /* the bound is -INFINITY already */
        fgi_sum_add(&sum, best);
        for (int32_t a = 0; a < p->card[i]; a++) p->unary[p->begin[i] + a] -= best;
    }
    for (int32_t f = 0; f < p->n_factors; f++) {
        p->factor_max[f] = factor_maximum(p, f, scratch);
        fgi_sum_add(&sum, p->factor_max[f]);
    }
    fgi_node_set_bound(p, &sum);
    for (int32_t s = 0; s < p->n_slots; s++)
        for (int32_t a = 0; a < p->card[p->slot_var[s]]; a++)
            p->largest[1] = fgi_larger(p->largest[1], fabs(p->message[p->slot_message[s] + a]));
}

/* Messages of the factors that have changed since the sweep before this one collected here; all of them if fresh. */
static void collect(fgi_node *p, int32_t var, int forward, int fresh, fgi_node_scratch *scratch) {
    const double *unary = p->unary + p->begin[var];
    const int32_t n = p->card[var];
    for (int32_t k = p->link_begin[var]; k < p->link_begin[var + 1]; k++) {
        const fgi_link *l = &p->links[k];
        if (!fresh && !fgi_link_has_changed(l, forward)) continue;
        double *mu = p->message + l->mu;
        fgi_assert(p->slot_var[p->slot_begin[l->factor] + l->position] == var);
        marginal(p, l, scratch);
        p->work += p->states[l->factor];
        for (int32_t a = 0; a < n; a++) mu[a] = unary[a] > -INFINITY ? scratch->nu[a] : 0;
        if (p->factor_max[l->factor] != 0) add_to_bound(p, -p->factor_max[l->factor]);
        p->factor_max[l->factor] = 0;
    }
    p->work += (p->link_begin[var + 1] - p->link_begin[var] + 1) * (int64_t)(p->card[var] + 16);
}

/* Labels that cannot beat the cutoff go; the best of all labels, which is in the bound, is taken out of the others. */
static int32_t remove_labels(fgi_node *p, int32_t var, double best, double cutoff) {
    double *unary = p->unary + p->begin[var], *belief = p->belief + p->begin[var];
    int32_t removed = 0;
    fgi_assert(best > -INFINITY && best < INFINITY);
    if (p->keeps_labels) cutoff = -INFINITY;
    for (int32_t a = 0; a < p->card[var]; a++) {
        belief[a] -= best;
        if (unary[a] == -INFINITY) continue;
        if (p->bound + belief[a] <= cutoff) { /* also when belief is -INFINITY: no state of some factor allows it */
            p->removed = fgi_larger(p->removed, p->bound + belief[a]);
            fgi_node_remove(p, var, a);
            removed++;
        } else {
            unary[a] -= best;
        }
    }
    return removed;
}

/* fgi_reweight_share and the largest of what it wrote, in one loop: with few labels a loop costs more than its work. */
static double share_few(double *message, const double *belief, int32_t n, const fgi_link *l, double part, double most) {
    for (int32_t a = 0; a < n; a++) {
        const double mu = message[l->mu + a] - part * (belief[a] > -INFINITY ? belief[a] : 0);
        message[l->mu + a] = mu;
        most = fgi_larger(most, fabs(mu));
    }
    return most;
}

/* The factors that go on in the direction of the sweep get their shares back. */
static void distribute(fgi_node *p, int32_t var, int forward, double *surplus) {
    const int32_t n = p->card[var];
    const fgi_link *links = p->links + p->link_begin[var];
    const int64_t n_links = p->link_begin[var + 1] - p->link_begin[var];
    const double *belief = p->belief + p->begin[var];
    double largest = p->largest[0];
    if (n <= FEW_LABELS) {
        const double part = fgi_reweight_part(links, n_links, forward);
        for (int64_t e = 0; part > 0 && e < n_links; e++)
            if (fgi_link_goes_on(&links[e], forward))
                largest = share_few(p->message, belief, n, &links[e], part, largest);
    } else {
        for (int32_t a = 0; a < n; a++) surplus[a] = belief[a] > -INFINITY ? belief[a] : 0;
        fgi_reweight_share(p->kernels, surplus, n, p->message, links, n_links, forward);
        for (int64_t e = 0; e < n_links; e++)
            for (int32_t a = 0; fgi_link_goes_on(&links[e], forward) && a < n; a++)
                largest = fgi_larger(largest, fabs(p->message[links[e].mu + a]));
    }
    p->largest[0] = largest;
}

int32_t fgi_node_update(fgi_node *p, int32_t var, int forward, int fresh, double cutoff, fgi_node_scratch *scratch) {
    fgi_assert(var >= 0 && var < p->n && p->bound < INFINITY);
    if (var == (forward ? 0 : p->n - 1)) { /* a sweep begins */
        fgi_audit_rarely(fgi_node_check(p));
        p->largest[1] = p->largest[0];
        p->largest[0] = 0;
        p->sweeps++;
    }
    collect(p, var, forward, fresh, scratch);
    const double best = fgi_reweight_sum(p->kernels, p->unary + p->begin[var], p->card[var], p->message,
        p->links + p->link_begin[var], p->link_begin[var + 1] - p->link_begin[var], p->belief + p->begin[var]);
    if (best == -INFINITY) {
        p->bound = -INFINITY;
        return -1;
    }
    add_to_bound(p, best);
    if (p->bound <= cutoff) { /* the bound has the best of all labels, so the labels may not */
        for (int32_t a = 0; p->keeps_labels && a < p->card[var]; a++) p->unary[p->begin[var] + a] -= best;
        return -1;
    }
    const int32_t removed = remove_labels(p, var, best, cutoff);
    fgi_assert(removed >= 0 && removed <= p->card[var] && p->alive[var] >= 0);
    distribute(p, var, forward, scratch->nu);
    return removed;
}

void fgi_node_decode(const fgi_node *p, int32_t *labels, fgi_node_scratch *scratch) {
    double *score = scratch->nu;
    for (int32_t i = 0; i < p->n; i++) labels[i] = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const double *unary = p->unary + p->begin[i];
        memcpy(score, unary, (size_t)p->card[i] * sizeof *score);
        for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++) {
            const int32_t f = p->links[k].factor, first = p->slot_begin[f];
            int32_t arity = p->slot_begin[f + 1] - first, unknown = 0;
            int64_t at = 0, stride = 1, own = 0;
            for (int32_t q = arity - 1; q >= 0; q--) {
                int32_t j = p->slot_var[first + q];
                if (j == i) own = stride;
                else if (labels[j] < 0) unknown = 1;
                else at += stride * labels[j];
                fgi_assert(j == i || labels[j] < p->card[j]);
                stride *= p->card[j];
            }
            const double *mu = p->message + p->links[k].mu;
            for (int32_t a = 0; a < p->card[i]; a++) {
                if (unary[a] == -INFINITY) continue;
                score[a] += unknown ? mu[a] : p->table[f][at + own * a];
            }
        }
        int32_t best = 0;
        for (int32_t a = 1; a < p->card[i]; a++)
            if (score[a] > score[best]) best = a;
        labels[i] = best;
    }
}
