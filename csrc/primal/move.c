/* primal/move.c - how a move of the primal search (primal/search.c) begins: a block or tabu search, of which region,
 * with tables how large, after which kick, among which labels. */
#include "primal/search.h"

/* Decision 0016 has what half and twice of these numbers do. */
enum {
    LEAST_BITS = 6,  /* clique tables of 2^6, 2^10, 2^14, 2^18 */
    MORE_BITS = 4,   /* bits from one size of clique tables to the next */
    LEAST_TABU = 32, /* variables of a tabu search: 32, 128, 512, 2048; the last on dense models: all */
    STALE = 2,       /* steps per variable without a gain end a tabu search */
    DENSE_STALE = 8, /* the same on dense models */
    WARM_UP = 4      /* moves over all variables before the choice is free */
};

/* Work of tabu search per work of blocks, at most: what gained early may not be what gains now. */
static const double MOST_TABU = 1;
static const double MOST_DENSE_TABU = 10; /* the same on dense models */

void fgi_moves_init(fgi_primal *s) {
    const fgi_structure *st = s->model->s;
    for (int64_t size = 4; s->n_regions < FGI_REGION_SIZES - 1 && size < st->n_vars; size *= 4)
        s->region_size[s->n_regions++] = size;
    s->region_size[s->n_regions++] = st->n_vars;
    fgi_bandit_init(&s->blocks, s->n_regions * FGI_TABLE_SIZES, 0);
    fgi_bandit_init(&s->styles, s->swap ? FGI_STYLES : FGI_STYLE_SWAP, 1000);
    fgi_bandit_init(&s->tabus, FGI_TABU_SIZES, 1000);
    fgi_bandit_init(&s->kicks, FGI_KICKS, 1000);
    fgi_bandit_init(&s->shapes, 2, 1000);
    fgi_bandit_init(&s->fusions, st->max_card > 2 ? FGI_FUSIONS : 1, 1000);
    /* Forests need tables of two variables; a whole pass over them must be possible. */
    const double pair = (double)st->max_card * st->max_card, forest = 2 * pair * (double)st->n_vars;
    s->cost_limit = forest > (1 << 24) && forest < (1 << 27) ? (int64_t)forest : 1 << 24;
    s->warm_up = forest < (1 << 27) ? WARM_UP : 0;
    s->warm_up_arm = (s->n_regions - 1) * FGI_TABLE_SIZES;
    while (s->warm_up_arm + 1 < s->blocks.n && exp2(LEAST_BITS + MORE_BITS * (s->warm_up_arm % FGI_TABLE_SIZES)) < pair)
        s->warm_up_arm++;
    for (int32_t k = 0; k < s->blocks.n; k++) /* a guess, until tried */
        s->blocks.cost[k] = 50.0 * (double)(s->region_size[k / FGI_TABLE_SIZES] << (2 * (k % FGI_TABLE_SIZES)));
}

/* Another label for a variable: the k-th best alternative with probability 2^-k, at most `most` places from the best.
 */
static int32_t other_label(fgi_primal *s, int32_t var, int32_t most) {
    const int32_t card = s->model->s->cards[var], now = fgi_labeling_labels(s->local)[var];
    if (card < 3) return card - 1 - now;
    const int32_t *bad;
    const double *x = fgi_labeling_label_scores(s->local, var, &bad);
    int32_t skip = 0, above = -1, above_bad = -1;
    double above_score = INFINITY;
    while (skip < most && fgi_rng_below(&s->rng, 2)) skip++;
    for (int32_t round = 0; round <= skip; round++) { /* the next after `above` by violations, score, label */
        int32_t best = -1;
        for (int32_t a = 0; a < card; a++) {
            const int32_t b = bad ? bad[a] : 0;
            const int after =
                b > above_bad || (b == above_bad && (x[a] < above_score || (x[a] == above_score && a > above)));
            if (a == now || !after) continue;
            if (best < 0 || b < (bad ? bad[best] : 0) || (b == (bad ? bad[best] : 0) && x[a] > x[best])) best = a;
        }
        if (best < 0) break;
        above = best;
        above_score = x[best];
        above_bad = bad ? bad[best] : 0;
    }
    return above < 0 ? now : above;
}

static int32_t neighbour_label(fgi_primal *s, int32_t var) {
    const fgi_structure *st = s->model->s;
    const int64_t degree = st->adj_begin[var + 1] - st->adj_begin[var];
    if (degree == 0) return -1;
    const int32_t f = st->adj[st->adj_begin[var] + fgi_rng_below(&s->rng, degree)];
    return fgi_labeling_labels(s->local)[fgi_factor_vars(st, f)[fgi_rng_below(&s->rng, fgi_factor_arity(st, f))]];
}

static int32_t alternative(fgi_primal *s, int32_t var) {
    const int32_t now = fgi_labeling_labels(s->local)[var], parameter = s->now.parameter;
    switch ((fgi_primal_fusion)s->now.fusion_arm) {
    case FGI_FUSE_RANDOM: return other_label(s, var, s->model->s->cards[var] - 2);
    case FGI_FUSE_CONSTANT: return parameter;
    case FGI_FUSE_SHIFT: return now + parameter;
    case FGI_FUSE_NEIGHBOUR: return neighbour_label(s, var);
    case FGI_FUSE_ELITE: return s->elites.labels[parameter][var];
    default: return other_label(s, var, 0);
    }
}

static void choose_fusion(fgi_primal *s) {
    fgi_move *v = &s->now;
    v->fusion_arm = fgi_bandit_choose(&s->fusions, &s->rng);
    /* A fresh start would only be drawn to where the others are. */
    if (v->fusion_arm == FGI_FUSE_ELITE && (s->kind <= FGI_PRIMAL_FRESH || s->elites.n == 0))
        v->fusion_arm = FGI_FUSE_SECOND;
    v->options.two_states = v->fusion_arm != FGI_FUSE_NONE;
    switch ((fgi_primal_fusion)v->fusion_arm) {
    case FGI_FUSE_CONSTANT: v->parameter = (int32_t)fgi_rng_below(&s->rng, s->model->s->max_card); break;
    case FGI_FUSE_SHIFT: v->parameter = fgi_rng_below(&s->rng, 2) ? 1 : -1; break;
    case FGI_FUSE_ELITE: v->parameter = (int32_t)fgi_rng_below(&s->rng, s->elites.n); break;
    default: v->parameter = 0;
    }
}

/* One alternative for each variable of the region; those without one leave it. Returns 1 when done. */
int fgi_move_propose(fgi_primal *s, int64_t max_operations) {
    const int32_t *cards = s->model->s->cards;
    int32_t *vars = fgi_region_variables(s->region);
    fgi_move *v = &s->now;
    int64_t spent = fgi_labeling_operations(s->local);
    for (; v->cursor < v->n_region; v->cursor++) {
        if (fgi_labeling_operations(s->local) - spent > max_operations) return 0;
        const int32_t var = vars[v->cursor], to = alternative(s, var);
        spent -= 4;
        if (to == fgi_labeling_labels(s->local)[var] || to < 0 || to >= cards[var]) continue;
        s->alternatives[var] = to;
        vars[v->n_proposed++] = var;
    }
    v->n_region = v->n_proposed;
    return 1;
}

void fgi_move_start_block(fgi_primal *s) {
    const int32_t held = s->now.n_kicked;
    fgi_thin_start(s->thin, fgi_region_variables(s->region) + held, s->now.n_region - held, &s->now.options,
        fgi_rng_next(&s->rng));
    s->stage = FGI_PRIMAL_THIN;
}

static void kick(fgi_primal *s) {
    fgi_move *v = &s->now;
    int64_t wanted = 1 << (v->kick_arm - 1);
    if (wanted > v->n_region / 2) wanted = (v->n_region + 1) / 2;
    v->n_kicked = (int32_t)wanted;
    for (int32_t k = 0; k < v->n_kicked; k++) {
        int32_t var = fgi_region_variables(s->region)[k];
        fgi_labeling_flip(s->local, var, other_label(s, var, s->model->s->cards[var] - 2));
    }
}

static int64_t grow_region(fgi_primal *s, int64_t size) {
    const int64_t n = s->model->s->n_vars;
    if (size >= n) return fgi_region_all(s->region, &s->rng);
    int32_t centre = (int32_t)fgi_rng_below(&s->rng, n);
    if (s->n_focus > 0 && fgi_rng_below(&s->rng, 2)) centre = s->focus[fgi_rng_below(&s->rng, s->n_focus)];
    return fgi_region_grow(s->region, centre, size, (int)fgi_rng_below(&s->rng, 2), &s->rng);
}

static fgi_rc start_tabu(fgi_primal *s) {
    s->now.tabu_arm = fgi_bandit_choose(&s->tabus, &s->rng);
    const int everywhere = s->dense && s->now.tabu_arm == FGI_TABU_SIZES - 1;
    const int64_t n = grow_region(s, everywhere ? s->model->s->n_vars : LEAST_TABU << 2 * s->now.tabu_arm);
    s->overhead += 1000 + 5 * (double)n;
    s->stage = FGI_PRIMAL_TABU;
    return fgi_tabu_start(s->tabu, fgi_region_variables(s->region), n, 20 + (s->dense ? DENSE_STALE : STALE) * n);
}

fgi_rc fgi_move_choose(fgi_primal *s) {
    const int64_t n = s->model->s->n_vars;
    fgi_move *v = &s->now;
    v->begun = v->shown = fgi_primal_work(s);
    fgi_labeling_mark(s->local);
    const int blocks_due = s->warm_up > 0 ||
        s->style_work[FGI_STYLE_TABU] > (s->dense ? MOST_DENSE_TABU : MOST_TABU) * s->style_work[FGI_STYLE_BLOCK];
    v->style_arm = blocks_due ? FGI_STYLE_BLOCK : fgi_bandit_choose(&s->styles, &s->rng);
    if (v->style_arm == FGI_STYLE_TABU) return start_tabu(s);
    if (v->style_arm == FGI_STYLE_SWAP) {
        fgi_swap_start(s->swap);
        s->stage = FGI_PRIMAL_SWAP;
        return FGI_OK;
    }
    v->block_arm = fgi_bandit_choose(&s->blocks, &s->rng);
    v->kick_arm = fgi_bandit_choose(&s->kicks, &s->rng);
    choose_fusion(s);
    int warm_up = 0;
    if (s->warm_up > 0) { /* all variables, all labels, tables just large enough for forests */
        v->block_arm = s->warm_up_arm;
        v->kick_arm = 0;
        v->fusion_arm = FGI_FUSE_NONE;
        v->options.two_states = 0;
        s->warm_up--;
        warm_up = 1;
    }
    v->n_kicked = 0;
    v->cursor = v->n_proposed = 0;
    v->options.log_limit = FGI_LOG_UNIT * (LEAST_BITS + MORE_BITS * (v->block_arm % FGI_TABLE_SIZES));
    v->options.sample = 4 << 2 * fgi_rng_below(&s->rng, 3);
    v->options.last_in_first = (int32_t)fgi_rng_below(&s->rng, 2) * 100;
    v->options.sweep = v->shape_arm = fgi_bandit_choose(&s->shapes, &s->rng);
    if (warm_up) v->options.sweep = v->shape_arm = 0;
    /* Sweeps estimate their cost right, the others several times too high. */
    v->options.cost_limit = v->options.sweep ? 1 << 22 : s->cost_limit;
    const int64_t size = s->region_size[v->block_arm / FGI_TABLE_SIZES];
    v->n_region = grow_region(s, size);
    s->overhead += 1000 + 5 * (double)v->n_region; /* a move that does nothing must not look free */
    if (v->fusion_arm != FGI_FUSE_NONE) {
        s->stage = FGI_PRIMAL_PROPOSE;
        return FGI_OK;
    }
    if (v->kick_arm > 0 && size < n) kick(s);
    fgi_move_start_block(s);
    return FGI_OK;
}
