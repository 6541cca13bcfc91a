/* gdmm/tables.c - how tables are read. Three ways, of which a run takes what costs least:
 *
 *     sparse messages, sorted lists    Algorithm 8 as published: the oracle skips nearly all of a table (oracle/)
 *     messages on all labels, sliced   sweeps and iterations that read little of a table (gdmm/closer.c)
 *     messages on all labels, whole    the same by plain passes over the table
 *
 * Sliced or whole is a matter of each table: first by what it is expected to cost, then by what has been read. All
 * three are ways of the one oracle: what is decided here goes into its source (gdmm_source). */
#include "gdmm/gdmm.h"
#include "model/marginal.h"

/* Costs, in entries of a table that is read whole (decision 0016). */
static const double SLICING = 20;             /* slicing a table, per entry */
static const double SLICED_LABEL = 100;       /* a product with a sliced table, per label */
static const double PRODUCTS = 10;            /* products of a factor until nine tenths of a run's gain is there */
static const double SPARSE_ITERATION = 50000; /* an iteration of a factor with sparse messages, whatever its size */
/* Slots are dense up to so many labels in all messages, some 50 bytes each (decision 0016). */
static const int64_t DENSE_LABELS = 20000000;
/* The same where variables have few labels, of which a list would hold most anyway. */
static const int64_t DENSE_FEW = 60000000;
enum { FEW_LABELS = 64 }; /* labels of such a variable */
/* Beyond these, messages of no more labels have room for sweeps alone, 8 bytes a label (decision 0019). */
static const int64_t SWEPT_LABELS = 150000000;
/* Then a variable must have as many labels, for the rest of a message not to matter. */
static const int64_t SWEPT_EACH = 16;
/* Entries beyond which products with an even table are listed (oracle/sliced.h, decision 0016). */
static const int64_t FAR = 1 << 25;
enum { SMALL = 64 };  /* entries: below nobody would know the difference */
enum { TRIALS = 12 }; /* products after which a sliced table must have paid */
enum { WORTH = 2 };   /* it has if one part in so many was read, or less */

static int64_t table_states(const gdmm *g, int64_t t) {
    return g->model->s->values_begin[t + 1] - g->model->s->values_begin[t];
}

static int can_be_sliced(const gdmm *g, int64_t t) {
    const fgi_structure *s = g->model->s;
    return s->dims_begin[t + 1] - s->dims_begin[t] == 2 && table_states(g, t) >= SMALL;
}

/* Is a table with so many factors worth slicing? Where it has a reach (fgi_table_facts), products are quicker. */
static int pays(const gdmm *g, int64_t t, double factors) {
    if (g->model->t->facts[t].reach) return 0;
    const int32_t *dims = g->model->s->dims + g->model->s->dims_begin[t];
    const double states = (double)table_states(g, t), labels = 0.5 * ((double)dims[0] + dims[1]);
    return PRODUCTS * factors * (states - SLICED_LABEL * labels) > SLICING * states;
}

static int is_left_to_us(const fgi_settings *settings) {
    return settings->access == FGI_ACCESS_AUTO && settings->sweep == FGI_CHOOSE &&
        settings->formulation == FGI_FORMULATION_AUTO;
}

/* Are messages kept on all labels? Sets sweeps_only. */
static int wants_all_labels(gdmm *g, double states, int64_t slot_labels) {
    const fgi_settings *settings = &g->solver->settings;
    if (settings->access == FGI_ACCESS_DENSE || settings->sweep == FGI_ON) return 1;
    const int64_t most = g->model->s->max_card <= FEW_LABELS ? DENSE_FEW : DENSE_LABELS;
    g->sweeps_only = is_left_to_us(settings) && slot_labels > most && slot_labels <= SWEPT_LABELS &&
        slot_labels >= SWEPT_EACH * g->n_slots;
    if (g->sweeps_only) return 1;
    if (settings->formulation == FGI_FORMULATION_TABLES || slot_labels > most) return 0;
    if (settings->sweep != FGI_OFF) return 1;
    return settings->access == FGI_ACCESS_AUTO && states <= SPARSE_ITERATION * (double)g->model->s->n_factors;
}

/* Trials begin. */
static void count_sliced(gdmm *g) {
    g->on_trial = 0;
    for (int64_t t = 0; t < g->model->s->n_tables; t++) g->on_trial += g->tables[t].sliced;
    g->has_slices = g->on_trial > 0;
    if (g->solver->settings.access == FGI_ACCESS_SORTED) g->on_trial = 0; /* as the caller has asked for */
}

fgi_rc gdmm_choose_access(gdmm *g) {
    const fgi_structure *s = g->model->s;
    const fgi_settings *settings = &g->solver->settings;
    double *factors = fgi_calloc(s->n_tables, sizeof *factors);
    const double states = fgi_model_pass_work(g->model);
    const int64_t slot_labels = fgi_dual_message_size(g->model);
    g->tables = fgi_take_zero(&g->arena, s->n_tables, gdmm_table);
    if (!factors || !g->tables) {
        free(factors);
        return FGI_NO_MEMORY;
    }
    for (int64_t f = 0; f < s->n_factors; f++) factors[s->factor_table[f]]++;
    g->dense = wants_all_labels(g, states, slot_labels);
    for (int64_t t = 0; g->dense && t < s->n_tables; t++)
        if (can_be_sliced(g, t) && settings->access != FGI_ACCESS_DENSE)
            g->tables[t].sliced = settings->access == FGI_ACCESS_SORTED || pays(g, t, factors[t]);
    free(factors);
    gdmm_measure_pass(g);
    g->half_sweep = (double)g->pass_work;
    g->looks = is_left_to_us(settings) && gdmm_is_worth_a_look(g);
    return FGI_OK;
}

/* What one pass costs the way that messages are kept now. */
void gdmm_measure_pass(gdmm *g) {
    const fgi_structure *s = g->model->s;
    const double states = fgi_model_pass_work(g->model);
    double work = 0;
    count_sliced(g);
    if (!g->dense) work = 200 * (double)s->n_factors;
    else if (!g->has_slices) work = states;
    for (int64_t f = 0; g->dense && g->has_slices && f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(g->model, f);
        if (g->tables[v.table].sliced) work += 0.5 * SLICED_LABEL * ((double)v.rows + v.cols);
        else work += (double)fgi_view_work(g->model, &v);
    }
    const int sorted = !g->dense || g->has_slices || g->solver->settings.access == FGI_ACCESS_SORTED;
    g->solver->info.access = sorted ? FGI_ACCESS_SORTED : FGI_ACCESS_DENSE;
    const double each = s->n_factors ? work / (double)s->n_factors : 0;
    g->piece = GDMM_BLOCK * (1 + (int64_t)(400000 / (GDMM_BLOCK * (1 + (g->dense ? each : 500)))));
    g->pass_work = (int64_t)work + 4 * (g->dense ? fgi_dual_message_size(g->model) : 8 * g->n_slots);
}

void gdmm_tables_free(gdmm *g) {
    for (int64_t t = 0; g->tables && t < g->model->s->n_tables; t++) fgi_sliced_free(g->tables[t].slices);
}

int64_t gdmm_tables_copied(const gdmm *g) {
    int64_t n = 0;
    for (int64_t t = 0; g->has_slices && t < g->model->s->n_tables; t++)
        if (g->tables[t].slices) n += fgi_sliced_copied(g->tables[t].slices);
    return n;
}

/* Numbers have changed: what was made of the old ones goes. */
void gdmm_tables_reset(gdmm *g) {
    for (int64_t t = 0; t < g->model->s->n_tables; t++) {
        gdmm_table *table = &g->tables[t];
        if (table->slices) g->solver->info.memory -= fgi_sliced_memory(table->slices);
        fgi_sliced_free(table->slices);
        *table = (gdmm_table){.sliced = table->sliced};
    }
    g->n_sliced = 0;
    count_sliced(g);
}

/* Slices the next tables, about `entries` of them; returns 1 when all are. */
int gdmm_tables_step(gdmm *g, int64_t entries) {
    const fgi_structure *s = g->model->s;
    for (; g->n_sliced < s->n_tables; g->n_sliced++) {
        const int64_t t = g->n_sliced;
        gdmm_table *table = &g->tables[t];
        if (!table->sliced) continue;
        if (entries <= 0) return 0;
        const int32_t *dims = s->dims + s->dims_begin[t];
        if (!table->slices) {
            const double *values = g->model->t->values + s->values_begin[t];
            const int is_listed = table_states(g, t) > FAR && fgi_sliced_is_even(values, dims[0], dims[1]);
            table->slices = fgi_sliced_create(values, dims[0], dims[1], is_listed);
            if (!table->slices) {
                g->solver->failure = FGI_NO_MEMORY;
                return 1;
            }
            g->solver->info.memory += fgi_sliced_memory(table->slices);
        }
        if (!fgi_sliced_step(table->slices, entries)) return 0;
        entries -= table_states(g, t);
    }
    return 1;
}

fgi_table_source gdmm_source(const gdmm *g, const fgi_view *v, int32_t *cards) {
    const gdmm_table *table = &g->tables[v->table];
    for (int32_t k = 0; v->arity != 2 && k < v->arity; k++) cards[k] = g->model->s->cards[v->vars[k]];
    return (fgi_table_source){.base = {&fgi_table_ops},
        .view = *v,
        .cards = cards,
        .order = g->order[v->table],
        .slices = table->sliced && v->weight > 0 ? table->slices : NULL,
        .most = &g->model->t->facts[v->table].max};
}

/* Products that a sweep has made read so many entries: where slices do not save at least half of them, the table is
 * read whole from now on, unless the caller has asked for sorted access. The choice is the same in every run: while
 * one is to be made, sweeps have one thread. */
void gdmm_table_note(gdmm *g, const fgi_view *v, int64_t touched, int32_t products) {
    gdmm_table *table = &g->tables[v->table];
    if (!table->sliced || table->products > TRIALS || g->solver->settings.access == FGI_ACCESS_SORTED) return;
    table->touched += (double)touched;
    table->products += products;
    if (table->products <= TRIALS) return;
    g->on_trial--;
    table->sliced = WORTH * table->touched < (double)table->products * (double)v->rows * v->cols;
}
