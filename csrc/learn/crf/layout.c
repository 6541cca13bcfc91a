/* learn/crf/layout.c - a CRF's life: checked data, its copy by feature, blocks of examples; sets of coordinates sorted
 * by feature. */
#include <string.h>
#include "learn/crf/crf.h"

#define BLOCK_CELLS 32768    /* 256 KB of scores: what a thread sums at once stays in its cache */
#define TYPED_ROOM (1 << 22) /* doubles for exponentials of typed tables; larger ones are made edge by edge */

/* ---- data by feature ------------------------------------------------------------------------------------------- */

static int transpose_rows(fgi_crf *c) {
    const fgi_learn_data *d = &c->data;
    const int64_t entries = d->row_begin[c->tokens];
    c->column_begin = fgi_calloc(d->n_features + 1, sizeof(int64_t));
    c->column_token = fgi_alloc(entries, sizeof(int32_t));
    if (d->value) c->column_value = fgi_alloc(entries, sizeof(double));
    if (!c->column_begin || !c->column_token || (d->value && !c->column_value)) return 0;
    for (int64_t k = 0; k < entries; k++) c->column_begin[d->feature[k] + 1]++;
    for (int64_t f = 0; f < d->n_features; f++) c->column_begin[f + 1] += c->column_begin[f];
    for (int64_t t = 0; t < c->tokens; t++)
        for (int64_t k = d->row_begin[t]; k < d->row_begin[t + 1]; k++) {
            const int64_t at = c->column_begin[d->feature[k]]++; /* becomes the end, which is the next one's begin */
            c->column_token[at] = (int32_t)t;
            if (d->value) c->column_value[at] = d->value[k];
        }
    memmove(c->column_begin + 1, c->column_begin, (size_t)d->n_features * sizeof(int64_t));
    c->column_begin[0] = 0;
    for (int64_t t = 0; t < c->tokens; t++)
        if (d->row_begin[t + 1] - d->row_begin[t] > c->longest_row)
            c->longest_row = d->row_begin[t + 1] - d->row_begin[t];
    return (c->cursor = fgi_alloc(d->n_features, sizeof(int64_t))) != NULL;
}

static int place_candidates(fgi_crf *c) {
    const fgi_learn_data *d = &c->data;
    if (!d->choice_begin) return 1;
    c->cell = d->choice_begin;
    if (!(c->truth_at = fgi_alloc(c->tokens, sizeof(int32_t)))) return 0;
    for (int64_t t = 0; t < c->tokens; t++) {
        const int32_t *list = d->choice + d->choice_begin[t];
        for (c->truth_at[t] = 0; list[c->truth_at[t]] != d->truth[t];) c->truth_at[t]++;
    }
    return 1;
}

static int place_messages(fgi_crf *c) {
    const fgi_learn_data *d = &c->data;
    c->messages = c->tables == CRF_NO_EDGES || c->pseudo ? 0 : c->cells;
    c->children = 1;
    if (!c->forest) return 1;
    int32_t *children = fgi_calloc(c->tokens, sizeof *children);
    if (!children) return 0;
    if (c->cell && !(c->message = fgi_alloc(c->tokens + 1, sizeof(int64_t)))) {
        free(children);
        return 0;
    }
    for (int64_t i = 0; i < d->n_examples; i++)
        for (int64_t p = d->token_begin[i]; p < d->token_begin[i + 1]; p++) {
            const fgi_forest_node node = c->forest[p];
            if (node.parent < 0) continue;
            const int64_t parent = d->token_begin[i] + node.parent;
            if (++children[parent] > c->children) c->children = children[parent];
            if (c->message) c->message[d->token_begin[i] + node.token + 1] = c->cell[parent + 1] - c->cell[parent];
        }
    if (c->message) { /* sizes, until now; roots send nothing */
        c->message[0] = 0;
        for (int64_t i = 0; i < d->n_examples; i++)
            for (int64_t p = d->token_begin[i]; p < d->token_begin[i + 1]; p++)
                if (c->forest[p].parent < 0) c->message[d->token_begin[i] + c->forest[p].token + 1] = 0;
        for (int64_t t = 0; t < c->tokens; t++) c->message[t + 1] += c->message[t];
        c->messages = c->message[c->tokens];
    }
    free(children);
    return 1;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static int64_t example_cells(const fgi_crf *c, int64_t first, int64_t last) { /* cells of examples [first, last) */
    return crf_cell(c, c->data.token_begin[last]) - crf_cell(c, c->data.token_begin[first]);
}
static int64_t example_messages(const fgi_crf *c, int64_t first, int64_t last) {
    return c->messages ? crf_message(c, c->data.token_begin[last]) - crf_message(c, c->data.token_begin[first]) : 0;
}

/* Units of blocks, each with sums of this size. */
void crf_cut_units(fgi_crf *c, int64_t size) {
    int64_t units = size ? CRF_PAIR_ROOM / size : CRF_MAX_UNITS;
    units = units < 1 ? 1 : units > CRF_MAX_UNITS ? CRF_MAX_UNITS : units;
    c->n_units = units < c->n_blocks ? units : c->n_blocks;
    for (int64_t u = 0; u <= c->n_units; u++) c->unit[u] = u * c->n_blocks / c->n_units;
}

static int cut_blocks(fgi_crf *c, int64_t memory) {
    const int64_t n = c->data.n_examples;
    c->block = fgi_alloc(n + 1, sizeof(int64_t));
    c->span = fgi_alloc(n + 1, sizeof(int64_t));
    c->unit = fgi_alloc(CRF_MAX_UNITS + 1, sizeof(int64_t));
    if (!c->block || !c->span || !c->unit) return 0;
    c->block[0] = c->span[0] = c->unit[0] = 0;
    for (int64_t i = 1; i <= n; i++)
        if (i == n || example_cells(c, c->block[c->n_blocks], i + 1) > BLOCK_CELLS) c->block[++c->n_blocks] = i;
    const int64_t most = memory / (int64_t)sizeof(double);
    for (int64_t b = 1; b <= c->n_blocks; b++) {
        const int64_t first = c->block[c->span[c->n_spans]], last = c->block[b < c->n_blocks ? b + 1 : b];
        if (b < c->n_blocks && example_cells(c, first, last) + example_messages(c, first, last) <= most) continue;
        c->span[++c->n_spans] = b;
    }
    for (int64_t s = 0; s < c->n_spans; s++) {
        const int64_t first = c->block[c->span[s]], last = c->block[c->span[s + 1]];
        if (example_cells(c, first, last) > c->span_room) c->span_room = example_cells(c, first, last);
        if (example_messages(c, first, last) > c->span_message_room)
            c->span_message_room = example_messages(c, first, last);
    }
    for (int64_t b = 0; b < c->n_blocks; b++) {
        const int64_t first = c->block[b], last = c->block[b + 1];
        if (example_cells(c, first, last) > c->block_room) c->block_room = example_cells(c, first, last);
        if (example_messages(c, first, last) > c->block_message_room)
            c->block_message_room = example_messages(c, first, last);
    }
    crf_cut_units(c, crf_pair_size(c));
    return 1;
}

static crf_tables choose_tables(const fgi_crf *c) {
    const fgi_learn_data *d = &c->data;
    if (d->edges == FGI_EDGES_NONE) return CRF_NO_EDGES;
    if (!d->edge_row) return CRF_ONE_TABLE;
    if (crf_pair_size(c) > TYPED_ROOM) return CRF_MADE_TABLES;
    const int64_t edges = fgi_learn_edge_begin(d, d->n_examples);
    for (int64_t e = 0; e < edges; e++)
        if (d->edge_row[e + 1] - d->edge_row[e] != 1 || (d->edge_value && d->edge_value[d->edge_row[e]] != 1.0))
            return CRF_MADE_TABLES;
    return CRF_TYPED_TABLES;
}

static int make_workers(fgi_crf *c) {
    const int64_t k = c->data.n_labels;
    const int64_t tables = c->pseudo || c->tables == CRF_NO_EDGES || c->tables == CRF_MADE_TABLES ? 0
        : c->tables == CRF_ONE_TABLE                                                              ? 1
                                     : c->data.n_edge_features;
    if (tables && !(c->table = fgi_calloc(tables, sizeof *c->table))) return 0;
    for (int64_t g = 0; g < tables; g++)
        if (!fgi_sum_table_create(&c->table[g], k)) return 0;
    if (!(c->workers = fgi_calloc(c->threads, sizeof *c->workers))) return 0;
    for (int t = 0; t < c->threads; t++) {
        crf_worker *w = &c->workers[t];
        w->crf = c;
        w->row = fgi_alloc(c->columns + 4, sizeof(double));
        w->active = fgi_alloc(c->longest_row + 1, sizeof(int32_t)); /* one is written before it is looked at */
        w->active_value = fgi_alloc(c->longest_row + 1, sizeof(double));
        if (!w->row || !w->active || !w->active_value) return 0;
        if (c->tables == CRF_MADE_TABLES &&
            (!fgi_sum_table_create(&w->made, k) || !(w->table_scores = fgi_alloc(k * k, sizeof(double)))))
            return 0;
        if (c->prune.mass > 0 && !(w->bound = fgi_alloc(c->columns, sizeof(double)))) return 0;
        if (c->n_spans == 1) continue;
        if (c->prune.mass > 0 && !(w->labels = fgi_alloc(c->block_room, sizeof(int32_t)))) return 0;
        w->cells = fgi_alloc(c->block_room, sizeof(double));
        w->messages = fgi_alloc(c->block_message_room, sizeof(double));
        if (!w->cells || !w->messages) return 0;
    }
    return 1;
}

#ifdef FGI_CHECKED
static void check_blocks(const fgi_crf *c) {
    const int64_t n = c->data.n_examples;
    fgi_assert(c->block[0] == 0 && c->block[c->n_blocks] == n && c->span[c->n_spans] == c->n_blocks);
    for (int64_t b = 0; b < c->n_blocks; b++) fgi_assert(c->block[b] < c->block[b + 1]);
    for (int64_t s = 0; s < c->n_spans; s++) fgi_assert(c->span[s] < c->span[s + 1]);
    fgi_assert(c->n_units <= CRF_MAX_UNITS && c->n_units <= c->n_blocks);
    for (int64_t u = 0; u < c->n_units; u++) fgi_assert(c->unit[u] < c->unit[u + 1]);
    for (int64_t b = 0; b < c->n_blocks; b++)
        fgi_assert(example_cells(c, c->block[b], c->block[b + 1]) <= c->block_room);
}
#endif

static fgi_rc lay_out(fgi_crf *c, int64_t memory, double prune) {
    const fgi_learn_data *d = &c->data;
    c->memory = memory;
    c->tables = choose_tables(c);
    if (!transpose_rows(c) || !place_candidates(c)) return FGI_NO_MEMORY;
    c->cells = crf_cell(c, c->tokens);
    if (!place_messages(c) || !cut_blocks(c, memory) || !crf_prune_create(c, prune) || !make_workers(c) ||
        !crf_touched_create(c) || !crf_bits_create(c) || !crf_kinds_create(c))
        return FGI_NO_MEMORY;
    const int64_t pairs = crf_pair_size(c);
    c->span_cells = fgi_alloc(c->span_room, sizeof(double));
    c->span_messages = fgi_alloc(c->span_message_room, sizeof(double));
    c->logs = fgi_calloc(d->n_examples, 1);
    c->block_loss = fgi_calloc(c->n_blocks, sizeof(double));
    c->pair_truth = fgi_calloc(pairs, sizeof(double));
    if (c->weight && !(c->token_weight = fgi_alloc(c->tokens, sizeof(double)))) return FGI_NO_MEMORY;
    for (int64_t i = 0; c->weight && i < d->n_examples; i++)
        for (int64_t t = d->token_begin[i]; t < d->token_begin[i + 1]; t++) c->token_weight[t] = c->weight[i];
    if (!c->pair_truth) return FGI_NO_MEMORY;
    crf_count_truth(c);
    for (int which = 0; which < 2; which++) {
        crf_pattern *p = which ? &c->wanted : &c->support;
        if (!(p->at = fgi_alloc(d->n_features, sizeof(int32_t)))) return FGI_NO_MEMORY;
        memset(p->at, 0xff, (size_t)d->n_features * sizeof(int32_t));
    }
    fgi_audit(check_blocks(c));
    c->info.kept = c->n_spans == 1;
    c->info.memory = (c->span_room + c->span_message_room) * 8 + d->row_begin[c->tokens] * (d->value ? 12 : 4) +
        (d->n_features + 1) * 16;
    return c->span_cells && c->span_messages && c->logs && c->block_loss ? FGI_OK : FGI_NO_MEMORY;
}

/* ---- sets of coordinates --------------------------------------------------------------------------------------- */

static int pattern_room(crf_pattern *p, int64_t features, int64_t columns) {
    if (features > p->room_features) {
        free(p->features), free(p->begin), free(p->before);
        p->features = fgi_alloc(features, sizeof(int32_t));
        p->begin = fgi_alloc(features + 1, sizeof(int64_t));
        p->before = fgi_alloc(features + 1, sizeof(int64_t));
        p->room_features = p->features && p->begin && p->before ? features : 0;
    }
    if (columns > p->room_columns) {
        free(p->columns);
        p->columns = fgi_alloc(columns, sizeof(int32_t));
        p->room_columns = p->columns ? columns : 0;
    }
    return p->room_features >= features && p->room_columns >= columns;
}

#ifdef FGI_CHECKED
static void check_pattern(const fgi_crf *c, const crf_pattern *p) {
    int64_t used = 0, entries = 0;
    for (int64_t f = 0; f < c->data.n_features; f++) used += p->at[f] >= 0;
    fgi_assert(used == p->n_features && p->n_features <= p->room_features);
    for (int64_t k = 0; k < p->n_features; k++) {
        const int32_t f = p->features[k];
        fgi_assert(f >= 0 && f < c->data.n_features && p->at[f] == k && (k == 0 || p->features[k - 1] < f));
        fgi_assert(p->begin[k] < p->begin[k + 1] && p->before[k] == entries);
        entries += c->column_begin[f + 1] - c->column_begin[f];
        for (int64_t l = p->begin[k]; l < p->begin[k + 1]; l++) {
            fgi_assert(p->columns[l] >= 0 && p->columns[l] < c->columns);
            fgi_assert(l == p->begin[k] || p->columns[l - 1] < p->columns[l]);
        }
    }
    fgi_assert(p->n_features == 0 || p->begin[p->n_features] <= p->room_columns);
}
#endif

/* The unary coordinates of a set, by feature; with w only those that are not zero. set NULL: all coordinates. */
int crf_pattern_set(const fgi_crf *c, crf_pattern *p, const double *w, const int64_t *set, int64_t n) {
    const int64_t width = c->columns;
    for (int64_t k = 0; k < p->n_features; k++) p->at[p->features[k]] = -1;
    p->n_features = 0;
    int64_t features = 0, columns = 0, last = -1, entries = 0;
    if (!set) n = c->unary;
    for (int64_t k = 0; k < n; k++) {
        const int64_t j = set ? set[k] : k;
        if (j >= c->unary) {
            n = k;
            break;
        }
        fgi_assert(j >= 0 && (k == 0 || !set || set[k - 1] < j));
        if (w && w[j] == 0.0) continue;
        features += j / width != last;
        last = j / width;
        columns++;
    }
    p->first_pair = n;
    if (!pattern_room(p, features, columns)) return 0;
    last = -1;
    columns = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t j = set ? set[k] : k;
        if (w && w[j] == 0.0) continue;
        const int64_t f = j / width;
        if (f != last) {
            p->at[f] = (int32_t)p->n_features;
            p->features[p->n_features] = (int32_t)f;
            p->before[p->n_features] = entries;
            p->begin[p->n_features++] = columns;
            entries += c->column_begin[f + 1] - c->column_begin[f];
            last = f;
        }
        p->columns[columns++] = (int32_t)(j - f * width);
    }
    if (p->room_features) p->begin[p->n_features] = columns, p->before[p->n_features] = entries;
    fgi_assert(columns <= p->room_columns && p->n_features == features);
    fgi_audit_rarely(check_pattern(c, p));
    return 1;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static fgi_rc check_settings(const fgi_learn_data *d, const fgi_crf_settings *settings, fgi_error *err) {
    if (settings->threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be at least 1");
    if (settings->memory < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "memory must not be negative");
    if (d->kind != FGI_LEARN_LABELS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "a random field is over tokens with labels");
    for (int64_t i = 0; settings->weight && i < d->n_examples; i++)
        if (!(settings->weight[i] >= 0) || isinf(settings->weight[i]))
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, i, "the weight of example %lld is not a finite number from 0 on", (long long)i);
    if (!(settings->prune >= 0 && settings->prune < 1))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the mass to prune must be from 0 on and below 1");
    if (settings->prune > 0 && (settings->n_inner || settings->pseudo || d->choice_begin || d->edge_row))
        return fgi_fail(err, FGI_UNSUPPORTED, -1,
            "pruning is for chains and forests with one table, without candidate lists and taxonomies");
    if (settings->n_inner < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the number of inner nodes is negative");
    if (settings->n_inner == 0) return FGI_OK;
    if (d->edges != FGI_EDGES_NONE || d->choice_begin)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "labels of a taxonomy have no edges and no candidate lists");
    for (int64_t k = 0; k < (int64_t)settings->n_inner + d->n_labels; k++)
        if (settings->parent[k] < -1 || settings->parent[k] >= settings->n_inner || settings->parent[k] >= k)
            return fgi_fail(err, FGI_BAD_MODEL, k,
                "node %lld of the taxonomy has the parent %d, which is no inner node before it", (long long)k,
                (int)settings->parent[k]);
    return FGI_OK;
}

fgi_rc fgi_crf_create(const fgi_learn_data *data, const fgi_crf_settings *settings, fgi_crf **out, fgi_error *err) {
    *out = NULL;
    fgi_rc rc = fgi_learn_check_data(data, err);
    if (!rc) rc = check_settings(data, settings, err);
    if (rc) return rc;
    fgi_crf *c = fgi_calloc(1, sizeof *c);
    if (!c) return fgi_no_memory(err);
    int64_t k = data->n_labels, pairs = 0;
    c->data = *data;
    c->n_inner = settings->n_inner;
    c->columns = c->n_inner + k;
    c->tokens = data->token_begin[data->n_examples];
    c->pseudo = settings->pseudo && data->edges != FGI_EDGES_NONE;
    c->threads = settings->threads;
    c->deadline = INFINITY;
    c->kernels = fgi_sum_kernels_best();
    rc = c->tokens <= INT32_MAX && fgi_mul(data->n_features, c->columns, &c->unary) && fgi_mul(k, k, &pairs) &&
            fgi_mul(pairs, data->edges == FGI_EDGES_NONE ? 0 : data->n_edge_features, &pairs)
        ? FGI_OK
        : FGI_NO_MEMORY;
    c->dimension = c->unary + pairs;
    int forests = 1;
    if (!rc && data->edges == FGI_EDGES_LIST && !c->pseudo) rc = fgi_learn_build_forests(data, &c->forest, &forests);
    if (!rc && !forests) {
        fgi_crf_free(c);
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "a graph has a cycle: its sums are not computed exactly");
    }
    if (!rc && settings->n_inner && !(c->parent = fgi_copy(settings->parent, c->columns, sizeof(int32_t))))
        rc = FGI_NO_MEMORY;
    if (!rc && settings->weight && !(c->weight = fgi_copy(settings->weight, data->n_examples, sizeof(double))))
        rc = FGI_NO_MEMORY;
    if (!rc) rc = lay_out(c, settings->memory, settings->prune);
    if (!rc && c->threads > 1 && !(c->pool = fgi_pool_create(c->threads))) rc = FGI_NO_MEMORY;
    if (rc) {
        fgi_crf_free(c);
        return fgi_fail(err, rc, -1, "out of memory");
    }
    *out = c;
    return FGI_OK;
}

void fgi_crf_free(fgi_crf *c) {
    if (!c) return;
    fgi_pool_free(c->pool);
    for (int t = 0; c->workers && t < c->threads; t++) {
        crf_worker *w = &c->workers[t];
        fgi_sum_table_free(&w->made);
        free(w->table_scores), free(w->row), free(w->bound), free(w->cells), free(w->messages), free(w->labels);
        free(w->active), free(w->active_value);
    }
    const int64_t tables = c->tables == CRF_ONE_TABLE ? 1 : c->data.n_edge_features;
    for (int64_t g = 0; c->table && g < tables; g++) fgi_sum_table_free(&c->table[g]);
    for (int which = 0; which < 2; which++) {
        crf_pattern *p = which ? &c->wanted : &c->support;
        free(p->features), free(p->begin), free(p->columns), free(p->at), free(p->before);
    }
    crf_prune_free(c);
    crf_touched_free(c);
    crf_bits_free(c);
    crf_kinds_free(c);
    free(c->workers), free(c->table), free(c->parent), free(c->weight), free(c->truth_at), free(c->forest);
    free(c->message), free(c->column_begin), free(c->column_token), free(c->column_value), free(c->block);
    free(c->unit), free(c->span), free(c->span_cells), free(c->span_messages), free(c->logs), free(c->block_loss);
    free(c->pair_scaled), free(c->pair_direct), free(c->pair_truth), free(c->token_weight);
    free(c->packed), free(c->cursor), free(c);
}

int64_t fgi_crf_dimension(const fgi_crf *c) { return c->dimension; }
int64_t fgi_crf_cells(const fgi_crf *c) { return c->cells; }
void fgi_crf_get_info(const fgi_crf *c, fgi_crf_info *info) {
    *info = c->info;
    for (int t = 0; t < c->threads; t++) info->touched += c->workers[t].touched;
    crf_prune_info(c, info);
}
