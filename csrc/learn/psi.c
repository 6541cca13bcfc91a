/* learn/psi.c - joint features: sums of psi_i(y) = phi_i(truth) - phi_i(y) as sparse vectors, and the loss of an
 * answer. */
#include <string.h>
#include "learn/learn.h"

/* Where the index is in the table, or the free slot where it belongs. */
static inline int64_t slot_for(const fgi_learner *L, int64_t index) {
    int64_t at = (int64_t)(((uint64_t)index * 0x9E3779B97F4A7C15u) >> 20) & (L->slots - 1);
    while (L->slot[at] && L->index[L->slot[at] - 1] != index) at = (at + 1) & (L->slots - 1);
    return at;
}

/* A hash table of twice `capacity` slots at least, with what is in the vector. */
static int grow_table(fgi_learner *L, int64_t capacity) {
    int64_t slots = 1024;
    while (slots < 2 * capacity) slots *= 2;
    if (capacity > INT32_MAX || !fgi_resize(&L->slot_of, capacity, sizeof *L->slot_of) ||
        !fgi_resize(&L->place, capacity, sizeof *L->place))
        return 0;
    int32_t *slot = fgi_calloc(slots, sizeof *slot);
    if (!slot) return 0;
    free(L->slot);
    L->slot = slot, L->slots = slots;
    for (int64_t k = 0; k < L->n_index; k++) {
        L->slot_of[k] = (int32_t)slot_for(L, L->index[k]);
        L->slot[L->slot_of[k]] = (int32_t)k + 1;
    }
    return 1;
}

/* Room for `more` further indices. */
static int reserve(fgi_learner *L, int64_t more) {
    if (L->n_index + more <= L->capacity) return 1;
    int64_t capacity = 2 * (L->n_index + more) + 1024;
    if (!fgi_resize(&L->index, capacity, sizeof *L->index) || !fgi_resize(&L->compact, capacity, sizeof *L->compact) ||
        (L->rows && !grow_table(L, capacity)))
        return 0;
    L->capacity = capacity;
    return 1;
}

/* An index is listed when its value leaves zero; one that returns to zero and leaves again is listed twice, which
 * compress() survives because it clears each value as it reads it. */
static inline void add(fgi_learner *L, int64_t index, double x) {
    if (L->rows) {
        const int64_t at = slot_for(L, index);
        if (!L->slot[at]) {
            L->index[L->n_index] = index;
            L->compact[L->n_index] = 0.0;
            L->slot_of[L->n_index] = (int32_t)at;
            L->slot[at] = (int32_t)++L->n_index;
        }
        L->compact[L->slot[at] - 1] += x;
        return;
    }
    if (L->dense[index] == 0.0) L->index[L->n_index++] = index;
    L->dense[index] += x;
}

static void compress(fgi_learner *L) {
    int64_t n = 0;
    for (int64_t k = 0; k < L->n_index; k++) {
        int64_t j = L->index[k];
        double x = L->rows ? L->compact[k] : L->dense[j];
        if (L->rows) L->slot[L->slot_of[k]] = 0;
        if (x == 0.0) continue;
        if (!L->rows) L->dense[j] = 0.0;
        L->index[n] = j;
        L->compact[n++] = x;
    }
    L->n_index = n;
}

static inline void sum_label(fgi_learner *L, int32_t label, double x, int32_t *n) {
    if (L->label_sum[label] == 0.0) L->label_list[(*n)++] = label;
    L->label_sum[label] += x;
}

/* Adds sum over the listed labels of coefficient * (feature row), column by column, and clears the list. */
static int spread_row(fgi_learner *L, int64_t row, int32_t n) {
    const fgi_learn_data *d = &L->data;
    int64_t b = d->row_begin[row], e = d->row_begin[row + 1], k = d->n_labels;
    if (!reserve(L, (e - b) * n)) return 0;
    for (int32_t c = 0; c < n; c++) {
        int32_t y = L->label_list[c];
        double x = L->label_sum[y];
        L->label_sum[y] = 0.0;
        if (x == 0.0) continue;
        if (d->value)
            for (int64_t j = b; j < e; j++) add(L, d->feature[j] * k + y, x * d->value[j]);
        else
            for (int64_t j = b; j < e; j++) add(L, d->feature[j] * k + y, x);
    }
    return 1;
}

static int add_edge(fgi_learner *L, int64_t edge, int64_t state, double x) {
    const fgi_learn_data *d = &L->data;
    int64_t square = (int64_t)d->n_labels * d->n_labels;
    if (!d->edge_row) {
        if (!reserve(L, 1)) return 0;
        add(L, L->unary + state, x);
        return 1;
    }
    int64_t b = d->edge_row[edge], e = d->edge_row[edge + 1];
    if (!reserve(L, e - b)) return 0;
    for (int64_t j = b; j < e; j++)
        add(L, L->unary + d->edge_feature[j] * square + state, d->edge_value ? x * d->edge_value[j] : x);
    return 1;
}

static int psi_labels(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms) {
    const fgi_learn_data *d = &L->data;
    int64_t first = d->token_begin[i], tokens = fgi_learn_tokens(L, i), k = d->n_labels;
    const int32_t *truth = d->truth + first;
    for (int64_t t = 0; t < tokens; t++) {
        int32_t n = 0;
        for (int32_t c = 0; c < n_terms; c++) {
            int32_t y = terms[c].labels[t];
            if (y == truth[t] || terms[c].weight == 0.0) continue;
            sum_label(L, truth[t], terms[c].weight, &n);
            sum_label(L, y, -terms[c].weight, &n);
            if (n > 2 * d->n_labels) { /* a sum that returned to zero is listed again: flush before the list is full */
                if (!spread_row(L, first + t, n)) return 0;
                n = 0;
            }
        }
        if (n && !spread_row(L, first + t, n)) return 0;
    }
    int64_t base, u, v;
    for (int64_t e = 0, edges = fgi_learn_count_edges(d, i, &base); e < edges; e++) {
        fgi_learn_ends(d, base, e, &u, &v);
        const int64_t right = truth[u] * k + truth[v];
        double moved = 0;
        for (int32_t c = 0; c < n_terms; c++) {
            int64_t state = terms[c].labels[u] * k + terms[c].labels[v];
            if (state == right || terms[c].weight == 0.0) continue;
            if (!add_edge(L, base + e, state, -terms[c].weight)) return 0;
            moved += terms[c].weight;
        }
        if (moved != 0.0 && !add_edge(L, base + e, right, moved)) return 0;
    }
    return 1;
}

static int psi_choices(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms) {
    const fgi_learn_data *d = &L->data;
    int64_t first = d->token_begin[i], tokens = fgi_learn_tokens(L, i);
    for (int64_t t = first; t < first + tokens; t++)
        for (int32_t c = 0; c < n_terms; c++) {
            int32_t y = terms[c].labels[t - first], z = d->truth[t];
            if (y == z || terms[c].weight == 0.0) continue;
            for (int side = 0; side < 2; side++) {
                int64_t row = d->choice_begin[t] + (side ? z : y);
                double x = side ? terms[c].weight : -terms[c].weight;
                if (!reserve(L, d->row_begin[row + 1] - d->row_begin[row])) return 0;
                for (int64_t j = d->row_begin[row]; j < d->row_begin[row + 1]; j++)
                    add(L, d->feature[j], d->value ? x * d->value[j] : x);
            }
        }
    return 1;
}

static int add_pairs(fgi_learner *L, const int32_t *set, int64_t n, double x) {
    if (!reserve(L, n * (n - 1) / 2)) return 0;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b < n; b++) add(L, L->unary + (int64_t)set[a] * L->data.n_labels + set[b], x);
    return 1;
}

static int psi_sets(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms) {
    const fgi_learn_data *d = &L->data;
    const int32_t *truth = d->truth + d->truth_begin[i];
    int64_t size = d->truth_begin[i + 1] - d->truth_begin[i];
    for (int32_t c = 0; c < n_terms; c++) {
        double x = terms[c].weight;
        if (x == 0.0) continue;
        int32_t n = 0;
        for (int64_t a = 0; a < size; a++)
            sum_label(L, truth[a], x, &n);              /* at most K entries, since both lists are sets of labels */
        for (int32_t b = 0; b < terms[c].length; b++) { /* a label in both lists cancels before it is listed twice */
            int32_t y = terms[c].labels[b];
            if (L->label_sum[y] != 0.0) {
                L->label_sum[y] = 0.0;
                continue;
            }
            sum_label(L, y, -x, &n);
        }
        if (n && !spread_row(L, i, n)) return 0;
        if (d->edges != FGI_EDGES_NONE &&
            (!add_pairs(L, truth, size, x) || !add_pairs(L, terms[c].labels, terms[c].length, -x)))
            return 0;
    }
    return 1;
}

fgi_rc fgi_learn_psi(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms) {
    L->n_index = 0;
    int ok = L->data.kind == FGI_LEARN_LABELS ? psi_labels(L, i, terms, n_terms)
        : L->data.kind == FGI_LEARN_CHOICES   ? psi_choices(L, i, terms, n_terms)
                                              : psi_sets(L, i, terms, n_terms);
    compress(L); /* also after a failure: the dense values go back to zero */
    return ok ? FGI_OK : FGI_NO_MEMORY;
}

fgi_rc fgi_learn_psi_own(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms) {
    fgi_rc rc = fgi_learn_psi(L, i, terms, n_terms);
    if (rc || !L->rows) return rc;
    const int32_t labels = L->data.n_labels;
    for (int64_t k = 0; k < L->n_index; k++) /* first all of them: making one moves others */
        if (L->index[k] < L->unary &&
            fgi_rows_place(L->rows, L->index[k] / labels, (int32_t)(L->index[k] % labels)) < 0)
            return FGI_NO_MEMORY;
    for (int64_t k = 0; k < L->n_index; k++)
        L->place[k] =
            L->index[k] < L->unary ? fgi_rows_find(L->rows, L->index[k] / labels, (int32_t)(L->index[k] % labels)) : -1;
    return FGI_OK;
}

/* The learner's own weight, or its sum, of entry k of the vector just made. */
static inline double *own_entry(const fgi_learner *L, double *whole, double *unary, int64_t k) {
    if (!L->rows) return whole + L->index[k];
    return L->place[k] < 0 ? whole + (L->index[k] - L->unary) : unary + L->place[k];
}
static inline double *own_weight(const fgi_learner *L, int64_t k) {
    return own_entry(L, L->w, L->rows ? L->rows->w : NULL, k);
}

void fgi_learn_products(const fgi_learner *L, double *dot, double *norm) {
    double d = 0, n = 0;
    for (int64_t k = 0; k < L->n_index; k++) {
        double x = L->compact[k];
        d += x * *own_weight(L, k);
        n += x * x;
    }
    *dot = d;
    *norm = n;
}

double fgi_learn_dot(const fgi_learner *L, const fgi_learn_vector *w) {
    const int64_t labels = L->data.n_labels;
    double dot = 0;
    for (int64_t k = 0; k < L->n_index; k++) {
        const int64_t at = L->index[k];
        double x = 0;
        if (w->dense) x = w->dense[at];
        else if (at >= L->unary) x = w->pairs[at - L->unary];
        else {
            const int32_t label = (int32_t)(at % labels);
            const int64_t end = w->end[at / labels];
            const int64_t place = fgi_lower_bound(w->label, w->begin[at / labels], end, label);
            if (place < end && w->label[place] == label) x = w->value[place];
        }
        dot += x * L->compact[k];
    }
    return dot;
}

void fgi_learn_apply(fgi_learner *L, double step, double factor) {
    for (int64_t k = 0; k < L->n_index; k++) *own_weight(L, k) += step * L->compact[k];
    for (int64_t k = 0; L->tracked && k < L->n_index; k++) {
        int64_t at = L->index[k] - L->unary;
        if (at >= 0 && *own_weight(L, k) > L->row_bound[at / L->data.n_labels])
            L->row_bound[at / L->data.n_labels] = *own_weight(L, k);
    }
    if (factor == 0.0) return;
    for (int64_t k = 0; k < L->n_index; k++)
        *own_entry(L, L->sum, L->rows ? L->rows->sum : NULL, k) += step * factor * L->compact[k];
}

double fgi_learn_loss(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length) {
    const fgi_learn_data *d = &L->data;
    double loss = 0;
    if (d->kind == FGI_LEARN_SETS) { /* labels wrongly on or off: the symmetric difference of two ascending lists */
        int64_t a = d->truth_begin[i], end = d->truth_begin[i + 1];
        int32_t b = 0;
        while (a < end || b < length) {
            if (b == length || (a < end && d->truth[a] < labels[b])) loss += fgi_learn_missed(d, i, d->truth[a++]);
            else if (a == end || labels[b] < d->truth[a]) loss += fgi_learn_spurious(d, i, labels[b++]);
            else a++, b++;
        }
        return loss;
    }
    int64_t first = d->token_begin[i];
    for (int32_t t = 0; t < length; t++) {
        int32_t z = d->truth[first + t], y = labels[t];
        if (y == z) continue;
        double cost = d->cost ? d->cost[(int64_t)z * d->n_labels + y] : 1.0;
        loss += d->token_weight ? cost * d->token_weight[first + t] : cost;
    }
    return loss;
}

int fgi_learn_is_truth(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length) {
    const fgi_learn_data *d = &L->data;
    int64_t b = d->kind == FGI_LEARN_SETS ? d->truth_begin[i] : d->token_begin[i];
    int64_t e = d->kind == FGI_LEARN_SETS ? d->truth_begin[i + 1] : d->token_begin[i + 1];
    return length == e - b && memcmp(labels, d->truth + b, (size_t)length * sizeof *labels) == 0;
}

fgi_rc fgi_learn_check_answer(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length, fgi_error *err) {
    const fgi_learn_data *d = &L->data;
    if (i < 0 || i >= d->n_examples) return fgi_fail(err, FGI_BAD_ARGUMENT, i, "there is no example %d", (int)i);
    if (d->kind != FGI_LEARN_SETS && length != fgi_learn_tokens(L, i))
        return fgi_fail(err, FGI_BAD_ARGUMENT, i, "example %d has %lld tokens, the answer has %d", (int)i,
            (long long)fgi_learn_tokens(L, i), (int)length);
    for (int32_t t = 0; t < length; t++) {
        int64_t token = d->token_begin[i] + t;
        int64_t limit =
            d->kind == FGI_LEARN_CHOICES ? d->choice_begin[token + 1] - d->choice_begin[token] : d->n_labels;
        if (labels[t] < 0 || labels[t] >= limit || (d->kind == FGI_LEARN_SETS && t > 0 && labels[t] <= labels[t - 1]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, t, "the answer to example %d has the label %d at position %d",
                (int)i, (int)labels[t], (int)t);
    }
    return FGI_OK;
}
