/* exact/beliefs_pass.c - sums (or maxima) over all labelings, and over those with each label, in two passes.
 *
 * On the way up bucket p sends the log of the sum over its variable of exp J_p. On the way down, from P(bag) of its
 * message's variables, its own joint probabilities are P(bag) exp(J_p) / sum exp(J_p): a product of conditional
 * probabilities, in which nothing is divided that may vanish. For maxima the sum is a maximum, and losses against the
 * best labeling take the place of log-probabilities. */
#include <string.h>
#include "base/meter.h"
#include "exact/beliefs.h"

enum { STEP_STATES = 1 << 17 };  /* joint states between two looks at the clock */
enum { PROJECT_BLOCK = 512 };    /* joint states whose places in a projection are listed once */
static const double VANISH = 60; /* exp(-60) is lost in a sum of fewer than 2^30 terms about 1 */

static void log_sums(const double *joint, int64_t n, int32_t card, double *out) {
    for (int64_t t = 0; t < n; t++, joint += card) {
        const double top = card == 2 ? fgi_larger(joint[0], joint[1]) : fgi_max_of(joint, card);
        out[t] = top;
        if (top == -INFINITY) continue;
        double rest = 0;
        int skipped = 0; /* one label at the maximum is the 1 of log1p */
        for (int32_t a = 0; a < card; a++) {
            const double below = joint[a] - top;
            if (below == 0 && !skipped) skipped = 1;
            else if (below > -VANISH) rest += exp(below);
        }
        if (rest > 0) out[t] += log1p(rest);
    }
}

static void maxima(const double *joint, int64_t n, int32_t card, double *out) {
    for (int64_t t = 0; t < n; t++) out[t] = fgi_max_of(joint + t * card, card);
}

/* Joint scores become probabilities, those of the bag's states given. */
static void spread_sum(double *joint, int64_t n, int32_t card, const double *bag) {
    for (int64_t t = 0; t < n; t++, joint += card) {
        const double top = fgi_max_of(joint, card);
        if (!(bag[t] > 0) || top == -INFINITY) {
            memset(joint, 0, (size_t)card * sizeof(double));
            continue;
        }
        double total = 0;
        for (int32_t a = 0; a < card; a++) total += joint[a] = joint[a] == top ? 1 : exp(joint[a] - top);
        const double scale = bag[t] / total;
        for (int32_t a = 0; a < card; a++) joint[a] *= scale;
    }
}

static void spread_max(double *joint, int64_t n, int32_t card, const double *bag) {
    for (int64_t t = 0; t < n; t++, joint += card) {
        const double top = fgi_max_of(joint, card);
        for (int32_t a = 0; a < card; a++)
            joint[a] = top == -INFINITY || joint[a] == -INFINITY ? -INFINITY : bag[t] + (joint[a] - top);
    }
}

static int64_t bag_states(const fgi_beliefs *b, int32_t p) {
    fgi_assert(p >= 0);
    const int32_t *bag;
    return belief_bag(b, p, &bag) ? b->e->messages[p].size : 1;
}

/* Bucket p is ready for fgi_bucket_joint. */
static fgi_rc open_bucket(fgi_beliefs *b, int32_t p, int again) {
    fgi_rc rc = fgi_eliminator_collect(b->e, p, again);
    const int32_t *bag, n = belief_bag(b, p, &bag);
    if (!rc && n) rc = fgi_bucket_open(&b->e->bucket, bag, n, b->e->card);
    b->block = 0;
    return rc;
}

static int64_t next_blocks(const fgi_beliefs *b) {
    const fgi_bucket *k = &b->e->bucket;
    const int64_t chunk = STEP_STATES / (k->block * k->card) + 1, left = k->n_blocks - b->block;
    return chunk < left ? chunk : left;
}

/* A part of bucket p on the way up; returns the states of it that were summed, or -1: no memory. */
static int64_t send_part(fgi_beliefs *b, int32_t p) {
    fgi_bucket *k = &b->e->bucket;
    const int64_t chunk = next_blocks(b), states = chunk * k->block;
    if (!fgi_grow(&b->joint, &b->joint_capacity, states * k->card, sizeof(double))) return -1;
    fgi_bucket_joint(k, b->block, b->block + chunk, b->joint);
    double *to = b->e->messages[p].values + b->block * k->block;
    (b->kind == FGI_BELIEFS_SUM ? log_sums : maxima)(b->joint, states, k->card, to);
    b->block += chunk;
    return states * k->card;
}

static fgi_rc begin_up(fgi_beliefs *b) {
    fgi_eliminator *e = b->e;
    int64_t total = 0;
    for (int32_t p = 0; p < e->n; p++) total += bag_states(b, p);
    if (!fgi_grow(&e->arena, &e->arena_capacity, total, sizeof(double))) return FGI_NO_MEMORY;
    e->keep = 1;
    e->arena_used = 0;
    for (int32_t p = 0; p < e->n; p++) {
        e->messages[p].values = e->arena + e->arena_used;
        e->arena_used += bag_states(b, p);
    }
    return FGI_OK;
}

fgi_rc fgi_beliefs_up(fgi_beliefs *b, double deadline) {
    fgi_eliminator *e = b->e;
    fgi_meter meter = {STEP_STATES, 0, deadline};
    if (b->p == 0 && b->block < 0 && begin_up(b)) return FGI_NO_MEMORY;
    while (b->p < e->n) {
        const int32_t p = b->p, *bag, n = belief_bag(b, p, &bag);
        int64_t work = 64;
        if (b->block < 0) {
            fgi_rc rc = open_bucket(b, p, 0);
            if (rc) return rc;
        } else if (n) {
            work = send_part(b, p);
            if (work < 0) return FGI_NO_MEMORY;
        }
        if (n == 0) {
            double sum;
            (b->kind == FGI_BELIEFS_SUM ? log_sums : maxima)(e->unary + e->unary_at[p], 1, e->card[p], &sum);
            fgi_sum_add(&b->value, sum);
        }
        if (n == 0 || b->block == e->bucket.n_blocks) {
            fgi_eliminator_send(e, p);
            b->info.done += (double)bag_states(b, p) * e->card[p];
            b->p++;
            b->block = -1;
        }
        if (fgi_meter_spend(&meter, work)) break;
    }
    if (b->p == e->n) b->phase = BELIEFS_SUMMED;
    return FGI_OK;
}

/* ---- down --------------------------------------------------------------------------------------------------- */

/* Where the joint states of bucket p lie in a table over `to` (positions, descending, a part of its own): a list of
 * offsets for a block of the fastest variables, a stride for each of the others. Returns the number of others. */
static int32_t plan_projection(fgi_beliefs *b, int32_t p, const int32_t *to, int32_t n_to, int64_t *block) {
    const int32_t *bag, n = belief_bag(b, p, &bag);
    if (!fgi_grow(&b->steps, &b->step_capacity, n + 1, sizeof(int64_t)) ||
        !fgi_grow(&b->digits, &b->digit_capacity, n + 1, sizeof(int32_t)))
        return -1;
    int64_t stride = 1;
    for (int32_t k = n, l = n_to - 1; k >= 0; k--) { /* slot n is the bucket's own variable, the fastest */
        const int32_t position = k == n ? p : bag[k];
        b->steps[k] = 0;
        if (l < 0 || to[l] != position) continue;
        b->steps[k] = stride;
        stride *= b->e->card[position];
        l--;
    }
    int32_t outer = n;
    *block = 1;
    for (int32_t k = n; k >= 0; k--) {
        const int32_t card = b->e->card[k == n ? p : bag[k]];
        if (k<n && * block * card> PROJECT_BLOCK) break;
        if (!fgi_grow(&b->offsets, &b->offset_capacity, *block * card, sizeof(int64_t))) return -1;
        if (k == n) b->offsets[0] = 0;
        for (int32_t a = 1; a < card; a++)
            for (int64_t t = 0; t < *block; t++) b->offsets[a * *block + t] = b->offsets[t] + a * b->steps[k];
        *block *= card;
        outer = k;
    }
    return outer;
}

static void add_block(
    const fgi_beliefs *b, const double *from, int64_t block, int64_t at, int contiguous, double *out) {
    out += at;
    if (b->kind == FGI_BELIEFS_MAX)
        for (int64_t t = 0; t < block; t++) out[b->offsets[t]] = fgi_larger(out[b->offsets[t]], from[t]);
    else if (contiguous)
        for (int64_t t = 0; t < block; t++) out[t] += from[t];
    else
        for (int64_t t = 0; t < block; t++) out[b->offsets[t]] += from[t];
}

/* Sums (or maxima) of the joint table of bucket p over all but the variables of `to`. */
static int project(fgi_beliefs *b, int32_t p, const int32_t *to, int32_t n_to, double *out) {
    const int32_t *bag, n = belief_bag(b, p, &bag);
    int64_t block, size = 1, at = 0;
    const int32_t outer = plan_projection(b, p, to, n_to, &block);
    if (outer < 0) return 0;
    for (int32_t k = 0; k < n_to; k++) size *= b->e->card[to[k]];
    for (int64_t k = 0; k < size; k++) out[k] = b->kind == FGI_BELIEFS_SUM ? 0 : -INFINITY;
    int contiguous = 1;
    for (int64_t t = 0; t < block; t++) contiguous &= b->offsets[t] == t;
    memset(b->digits, 0, ((size_t)n + 1) * sizeof(int32_t));
    for (const double *from = b->joint;; from += block) {
        add_block(b, from, block, at, contiguous, out);
        int32_t k = outer - 1;
        for (; k >= 0 && b->digits[k] + 1 == b->e->card[bag[k]]; k--) {
            at -= b->digits[k] * b->steps[k];
            b->digits[k] = 0;
        }
        if (k < 0) return 1;
        b->digits[k]++;
        at += b->steps[k];
    }
}

/* The whole joint table of bucket p is there: what its messages' variables and its own are told. */
static fgi_rc tell(fgi_beliefs *b, int32_t p) {
    fgi_eliminator *e = b->e;
    const int64_t states = bag_states(b, p);
    const int32_t *bag, n = belief_bag(b, p, &bag);
    double *own = b->out + b->at[e->var[p]], certain = b->kind == FGI_BELIEFS_SUM ? 1 : 0;
    (b->kind == FGI_BELIEFS_SUM ? spread_sum : spread_max)(
        b->joint, states, e->card[p], n ? e->messages[p].values : &certain);
    if (!project(b, p, &p, 1, own)) return FGI_NO_MEMORY;
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) {
        const int32_t *to, n_to = belief_bag(b, q, &to);
        if (!project(b, p, to, n_to, e->messages[q].values)) return FGI_NO_MEMORY;
    }
    return FGI_OK;
}

fgi_rc fgi_beliefs_down(fgi_beliefs *b, double deadline) {
    fgi_eliminator *e = b->e;
    fgi_meter meter = {STEP_STATES, 0, deadline};
    while (b->p > 0) {
        const int32_t p = b->p - 1, *bag, n = belief_bag(b, p, &bag), card = e->card[p];
        const int64_t states = bag_states(b, p) * card;
        int64_t work = 64;
        if (b->block < 0) {
            fgi_rc rc = open_bucket(b, p, 1);
            if (rc) return rc;
            if (!fgi_grow(&b->joint, &b->joint_capacity, states, sizeof(double))) return FGI_NO_MEMORY;
            if (n == 0) memcpy(b->joint, e->unary + e->unary_at[p], (size_t)card * sizeof(double));
        } else if (n) {
            const int64_t chunk = next_blocks(b);
            fgi_bucket_joint(&e->bucket, b->block, b->block + chunk, b->joint + b->block * e->bucket.block * card);
            b->block += chunk;
            work = chunk * e->bucket.block * card;
        }
        if (n == 0 || b->block == e->bucket.n_blocks) {
            fgi_rc rc = tell(b, p);
            if (rc) return rc;
            work += states;
            b->info.done += (double)states;
            b->p--;
            b->block = -1;
        }
        if (fgi_meter_spend(&meter, work)) break;
    }
    if (b->p == 0) b->phase = BELIEFS_DONE;
    return FGI_OK;
}
