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

void fgi_moves_init(fgi_primal *primal) {
    const fgi_structure *s = primal->model->s;
    for (int64_t size = 4; primal->n_regions < FGI_REGION_SIZES - 1 && size < s->n_vars; size *= 4)
        primal->region_size[primal->n_regions++] = size;
    primal->region_size[primal->n_regions++] = s->n_vars;
    fgi_bandit_init(&primal->blocks, primal->n_regions * FGI_TABLE_SIZES, 0);
    fgi_bandit_init(&primal->styles, primal->swap ? FGI_STYLES : FGI_STYLE_SWAP, 1000);
    fgi_bandit_init(&primal->tabus, FGI_TABU_SIZES, 1000);
    fgi_bandit_init(&primal->kicks, FGI_KICKS, 1000);
    fgi_bandit_init(&primal->shapes, 2, 1000);
    fgi_bandit_init(&primal->fusions, s->max_card > 2 ? FGI_FUSIONS : 1, 1000);
    /* Forests need tables of two variables; a whole pass over them must be possible. */
    const double pair = (double)s->max_card * s->max_card, forest = 2 * pair * (double)s->n_vars;
    primal->cost_limit = forest > (1 << 24) && forest < (1 << 27) ? (int64_t)forest : 1 << 24;
    primal->warm_up = forest < (1 << 27) ? WARM_UP : 0;
    primal->warm_up_arm = (primal->n_regions - 1) * FGI_TABLE_SIZES;
    while (primal->warm_up_arm + 1 < primal->blocks.n &&
        exp2(LEAST_BITS + MORE_BITS * (primal->warm_up_arm % FGI_TABLE_SIZES)) < pair)
        primal->warm_up_arm++;
    for (int32_t k = 0; k < primal->blocks.n; k++) /* a guess, until tried */
        primal->blocks.cost[k] =
            50.0 * (double)(primal->region_size[k / FGI_TABLE_SIZES] << (2 * (k % FGI_TABLE_SIZES)));
}

/* Another label for a variable: the k-th best alternative with probability 2^-k, at most `most` places from the best.
 */
static int32_t other_label(fgi_primal *primal, int32_t var, int32_t most) {
    const int32_t card = primal->model->s->cards[var], now = fgi_labeling_labels(primal->local)[var];
    if (card < 3) return card - 1 - now;
    const int32_t *bad;
    const double *x = fgi_labeling_label_scores(primal->local, var, &bad);
    int32_t skip = 0, above = -1, above_bad = -1;
    double above_score = INFINITY;
    while (skip < most && fgi_rng_below(&primal->rng, 2)) skip++;
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

static int32_t neighbour_label(fgi_primal *primal, int32_t var) {
    const fgi_structure *s = primal->model->s;
    const int64_t degree = s->adj_begin[var + 1] - s->adj_begin[var];
    if (degree == 0) return -1;
    const int32_t f = s->adj[s->adj_begin[var] + fgi_rng_below(&primal->rng, degree)];
    return fgi_labeling_labels(
        primal->local)[fgi_factor_vars(s, f)[fgi_rng_below(&primal->rng, fgi_factor_arity(s, f))]];
}

static int32_t alternative(fgi_primal *primal, int32_t var) {
    const int32_t now = fgi_labeling_labels(primal->local)[var], parameter = primal->now.parameter;
    switch ((fgi_primal_fusion)primal->now.fusion_arm) {
    case FGI_FUSE_RANDOM: return other_label(primal, var, primal->model->s->cards[var] - 2);
    case FGI_FUSE_CONSTANT: return parameter;
    case FGI_FUSE_SHIFT: return now + parameter;
    case FGI_FUSE_NEIGHBOUR: return neighbour_label(primal, var);
    case FGI_FUSE_ELITE: return primal->elites.labels[parameter][var];
    default: return other_label(primal, var, 0);
    }
}

static void choose_fusion(fgi_primal *primal) {
    fgi_move *v = &primal->now;
    v->fusion_arm = fgi_bandit_choose(&primal->fusions, &primal->rng);
    /* A fresh start would only be drawn to where the others are. */
    if (v->fusion_arm == FGI_FUSE_ELITE && (primal->kind <= FGI_PRIMAL_FRESH || primal->elites.n == 0))
        v->fusion_arm = FGI_FUSE_SECOND;
    v->options.two_states = v->fusion_arm != FGI_FUSE_NONE;
    switch ((fgi_primal_fusion)v->fusion_arm) {
    case FGI_FUSE_CONSTANT: v->parameter = (int32_t)fgi_rng_below(&primal->rng, primal->model->s->max_card); break;
    case FGI_FUSE_SHIFT: v->parameter = fgi_rng_below(&primal->rng, 2) ? 1 : -1; break;
    case FGI_FUSE_ELITE: v->parameter = (int32_t)fgi_rng_below(&primal->rng, primal->elites.n); break;
    default: v->parameter = 0;
    }
}

/* One alternative for each variable of the region; those without one leave it. Returns 1 when done. */
int fgi_move_propose(fgi_primal *primal, int64_t max_operations) {
    const int32_t *cards = primal->model->s->cards;
    int32_t *vars = fgi_region_variables(primal->region);
    fgi_move *v = &primal->now;
    int64_t spent = fgi_labeling_operations(primal->local);
    for (; v->cursor < v->n_region; v->cursor++) {
        if (fgi_labeling_operations(primal->local) - spent > max_operations) return 0;
        const int32_t var = vars[v->cursor], to = alternative(primal, var);
        spent -= 4;
        if (to == fgi_labeling_labels(primal->local)[var] || to < 0 || to >= cards[var]) continue;
        primal->alternatives[var] = to;
        vars[v->n_proposed++] = var;
    }
    v->n_region = v->n_proposed;
    return 1;
}

void fgi_move_start_block(fgi_primal *primal) {
    const int32_t held = primal->now.n_kicked;
    fgi_thin_start(primal->thin, fgi_region_variables(primal->region) + held, primal->now.n_region - held,
        &primal->now.options, fgi_rng_next(&primal->rng));
    primal->stage = FGI_PRIMAL_THIN;
}

static void kick(fgi_primal *primal) {
    fgi_move *v = &primal->now;
    int64_t wanted = 1 << (v->kick_arm - 1);
    if (wanted > v->n_region / 2) wanted = (v->n_region + 1) / 2;
    v->n_kicked = (int32_t)wanted;
    for (int32_t k = 0; k < v->n_kicked; k++) {
        int32_t var = fgi_region_variables(primal->region)[k];
        fgi_labeling_flip(primal->local, var, other_label(primal, var, primal->model->s->cards[var] - 2));
    }
}

static int64_t grow_region(fgi_primal *primal, int64_t size) {
    const int64_t n = primal->model->s->n_vars;
    if (size >= n) return fgi_region_all(primal->region, &primal->rng);
    int32_t centre = (int32_t)fgi_rng_below(&primal->rng, n);
    if (primal->n_focus > 0 && fgi_rng_below(&primal->rng, 2))
        centre = primal->focus[fgi_rng_below(&primal->rng, primal->n_focus)];
    return fgi_region_grow(primal->region, centre, size, (int)fgi_rng_below(&primal->rng, 2), &primal->rng);
}

static fgi_rc start_tabu(fgi_primal *primal) {
    primal->now.tabu_arm = fgi_bandit_choose(&primal->tabus, &primal->rng);
    const int everywhere = primal->dense && primal->now.tabu_arm == FGI_TABU_SIZES - 1;
    const int64_t n =
        grow_region(primal, everywhere ? primal->model->s->n_vars : LEAST_TABU << 2 * primal->now.tabu_arm);
    primal->overhead += 1000 + 5 * (double)n;
    primal->stage = FGI_PRIMAL_TABU;
    return fgi_tabu_start(
        primal->tabu, fgi_region_variables(primal->region), n, 20 + (primal->dense ? DENSE_STALE : STALE) * n);
}

fgi_rc fgi_move_choose(fgi_primal *primal) {
    const int64_t n = primal->model->s->n_vars;
    fgi_move *v = &primal->now;
    v->begun = v->shown = fgi_primal_work(primal);
    fgi_labeling_mark(primal->local);
    const int blocks_due = primal->warm_up > 0 ||
        primal->style_work[FGI_STYLE_TABU] >
            (primal->dense ? MOST_DENSE_TABU : MOST_TABU) * primal->style_work[FGI_STYLE_BLOCK];
    v->style_arm = blocks_due ? FGI_STYLE_BLOCK : fgi_bandit_choose(&primal->styles, &primal->rng);
    if (v->style_arm == FGI_STYLE_TABU) return start_tabu(primal);
    if (v->style_arm == FGI_STYLE_SWAP) {
        fgi_swap_start(primal->swap);
        primal->stage = FGI_PRIMAL_SWAP;
        return FGI_OK;
    }
    v->block_arm = fgi_bandit_choose(&primal->blocks, &primal->rng);
    v->kick_arm = fgi_bandit_choose(&primal->kicks, &primal->rng);
    choose_fusion(primal);
    int warm_up = 0;
    if (primal->warm_up > 0) { /* all variables, all labels, tables just large enough for forests */
        v->block_arm = primal->warm_up_arm;
        v->kick_arm = 0;
        v->fusion_arm = FGI_FUSE_NONE;
        v->options.two_states = 0;
        primal->warm_up--;
        warm_up = 1;
    }
    v->n_kicked = 0;
    v->cursor = v->n_proposed = 0;
    v->options.log_limit = FGI_LOG_UNIT * (LEAST_BITS + MORE_BITS * (v->block_arm % FGI_TABLE_SIZES));
    v->options.sample = 4 << 2 * fgi_rng_below(&primal->rng, 3);
    v->options.last_in_first = (int32_t)fgi_rng_below(&primal->rng, 2) * 100;
    v->options.sweep = v->shape_arm = fgi_bandit_choose(&primal->shapes, &primal->rng);
    if (warm_up) v->options.sweep = v->shape_arm = 0;
    /* Sweeps estimate their cost right, the others several times too high. */
    v->options.cost_limit = v->options.sweep ? 1 << 22 : primal->cost_limit;
    const int64_t size = primal->region_size[v->block_arm / FGI_TABLE_SIZES];
    v->n_region = grow_region(primal, size);
    primal->overhead += 1000 + 5 * (double)v->n_region; /* a move that does nothing must not look free */
    if (v->fusion_arm != FGI_FUSE_NONE) {
        primal->stage = FGI_PRIMAL_PROPOSE;
        return FGI_OK;
    }
    if (v->kick_arm > 0 && size < n) kick(primal);
    fgi_move_start_block(primal);
    return FGI_OK;
}
