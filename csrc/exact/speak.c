/* exact/speak.c - see exact/speak.h. */
#include "exact/speak.h"
#include <string.h>
#include "model/marginal.h"

/* Quanta are in what is left to close by each slot (chosen). */
static const double COARSE = 0.25; /* the quantum of a node that goes on */
static const double BOLD = 8;      /* the first one tried to close a node, and what it is then divided by */

static int64_t n_messages(const fgi_node *p) {
    if (p->n_slots == 0) return 0;
    return p->slot_message[p->n_slots - 1] + p->card[p->slot_var[p->n_slots - 1]];
}

fgi_rc fgi_speaker_begin(fgi_speaker *s, fgi_proof *proof, const fgi_model *m) {
    s->proof = proof;
    s->score = -INFINITY;
    s->label_begin = m->s->unary_begin;
    s->rows = fgi_alloc((int64_t)m->s->max_arity * m->s->max_card + 1, sizeof(double));
    s->line = fgi_alloc(2 * (int64_t)m->s->max_card + 1, sizeof(double));
    const int64_t n_labels = m->s->unary_begin[m->s->n_vars], n = fgi_dual_message_size(m);
    s->fall = fgi_alloc(n_labels + 1, sizeof(double));
    s->exact = fgi_alloc(n + 1, sizeof(double));
    s->gaps = fgi_alloc((n > n_labels ? n : n_labels) + n / UINT8_MAX + 1, sizeof(int64_t));
    s->amounts = fgi_alloc(n + n / UINT8_MAX + 1, sizeof(int64_t));
    s->moved = fgi_alloc(m->s->n_factors + 1, 1);
    return s->rows && s->line && s->fall && s->exact && s->gaps && s->amounts && s->moved ? FGI_OK : FGI_NO_MEMORY;
}

void fgi_speaker_free(fgi_speaker *s) {
    free(s->rows);
    free(s->line);
    free(s->fall);
    free(s->exact);
    free(s->gaps);
    free(s->amounts);
    free(s->moved);
}

/* Factors and labels that are left keep their order. */
static void find_places(fgi_speech *x, const fgi_node *p, const fgi_node *parent, const fgi_speech *of, int32_t var) {
    int64_t at = 0;
    for (int32_t f = 0; f < parent->n_factors; f++) {
        int32_t n_free = 0;
        for (int32_t s = parent->slot_begin[f]; s < parent->slot_begin[f + 1]; s++)
            n_free += parent->slot_var[s] != var && parent->alive[parent->slot_var[s]] > 1;
        for (int32_t s = parent->slot_begin[f]; n_free > 1 && s < parent->slot_begin[f + 1]; s++) {
            const int32_t i = parent->slot_var[s];
            if (i == var || parent->alive[i] < 2) continue;
            const int64_t first = parent->slot_message[s];
            for (int32_t a = 0; a < parent->card[i]; a++)
                if (parent->unary[parent->begin[i] + a] > -INFINITY)
                    x->place[at++] = of->place ? of->place[first + a] : first + a;
        }
    }
    fgi_assert(at == n_messages(p));
    (void)p;
}

fgi_rc fgi_speech_begin(fgi_speech *x, const fgi_node *p, const fgi_node *parent, const fgi_speech *of, int32_t var) {
    const int64_t n = n_messages(p);
    x->message = fgi_calloc(n + 1, sizeof(double));
    x->told = fgi_calloc(p->begin[p->n] + 1, 1);
    x->place = parent ? fgi_alloc(n + 1, sizeof(int64_t)) : NULL;
    if (!x->message || !x->told || (parent && !x->place)) return FGI_NO_MEMORY;
    if (parent) find_places(x, p, parent, of, var);
    return FGI_OK;
}

void fgi_speech_free(fgi_speech *x) {
    free(x->message);
    free(x->told);
    free(x->place);
}

void fgi_speak_threshold(fgi_speaker *s, const int32_t *labels, int64_t n_vars, double score, double lead) {
    const double shown = ldexp(labels ? lead : score + lead, s->proof->exponent);
    fgi_proof_rule(s->proof, 'K');
    fgi_proof_put(s->proof, &shown, sizeof shown);
    for (int64_t i = 0; i < n_vars; i++) fgi_proof_label(s->proof, labels ? labels[i] : -1);
    s->lead = s->score + s->lead > score + lead ? s->score + s->lead - score : lead; /* thresholds never fall */
    s->labels = labels;
    s->n_vars = n_vars;
    s->score = score;
}

/* Labels that no state of some factor allows have infinite messages until they are gone. */
static void drop_forbidden(fgi_node *p) {
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t a = 0; a < p->card[i]; a++) {
            int finite = 1;
            for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++)
                finite &= fabs(p->message[p->links[k].mu + a]) < INFINITY;
            if (p->unary[p->begin[i] + a] > -INFINITY && !finite) fgi_node_remove(p, i, a);
        }
}

/* What most of the first few labels have in common: of messages only differences count. */
static double common(const double *steps, const double *unary, int32_t card) {
    enum { LOOKED_AT = 8 }; /* labels */
    double best = 0;
    int most = 0;
    for (int32_t a = 0, seen = 0; a < card && seen < LOOKED_AT; a++) {
        int count = 0;
        if (unary[a] == -INFINITY) continue;
        seen++;
        for (int32_t b = 0; b < card; b++) count += unary[b] > -INFINITY && steps[b] == steps[a];
        if (count > most || (count == most && fabs(steps[a]) < fabs(best))) {
            most = count;
            best = steps[a];
        }
    }
    return best;
}

/* Only differences of messages count: the largest is 0. */
static void subtract_largest(double *message, const double *unary, int32_t card) {
    double largest = -INFINITY;
    for (int32_t a = 0; a < card; a++)
        if (unary[a] > -INFINITY) largest = fgi_larger(largest, message[a]);
    for (int32_t a = 0; a < card; a++)
        if (unary[a] > -INFINITY) message[a] -= largest;
}

/* A checker has room for so much and no more: all messages to a label together are raised to -reach. The largest losses
 * are cut to the same size. */
static void raise_label(double *message, const fgi_link *links, int32_t n, int32_t a, double reach) {
    double size = reach / n, before = 0, sum = 0;
    for (int32_t k = 0; k < n; k++) sum -= message[links[k].mu + a];
    if (!(sum > reach)) return;
    while (size > before) { /* losses up to this size leave more for the others; it ends, as they are fewer each time */
        double left = reach;
        int32_t n_large = 0;
        for (int32_t k = 0; k < n; k++) {
            const int is_large = -message[links[k].mu + a] > size;
            n_large += is_large;
            left += is_large ? 0 : message[links[k].mu + a];
        }
        before = size;
        size = n_large > 0 ? left / n_large : size;
    }
    for (int32_t k = 0; k < n; k++) message[links[k].mu + a] = fgi_larger(message[links[k].mu + a], -before);
}

/* The messages to be said, as exactly as a checker has room for them. */
static void keep_exact(const fgi_speaker *s, const fgi_node *p) {
    memcpy(s->exact, p->message, (size_t)n_messages(p) * sizeof(double));
    for (int32_t k = 0; k < p->n_slots; k++) {
        const int32_t i = p->slot_var[k];
        subtract_largest(s->exact + p->slot_message[k], p->unary + p->begin[i], p->card[i]);
    }
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t n = p->link_begin[i + 1] - p->link_begin[i];
        for (int32_t a = 0; n > 0 && a < p->card[i]; a++)
            if (p->unary[p->begin[i] + a] > -INFINITY)
                raise_label(s->exact, p->links + p->link_begin[i], n, a, s->proof->reach);
    }
}

/* Messages become what was said plus whole multiples of the quantum, near those in `exact`. */
static void round_messages(const fgi_speaker *s, const fgi_speech *x, fgi_node *p, double quantum) {
    for (int32_t f = 0; f < p->n_factors; f++) {
        for (int32_t k = p->slot_begin[f]; k < p->slot_begin[f + 1]; k++) {
            const int32_t i = p->slot_var[k], card = p->card[i];
            const int64_t first = p->slot_message[k];
            const double *unary = p->unary + p->begin[i], *exact = s->exact + first, *said = x->message + first;
            double *message = p->message + first, *steps = s->line;
            for (int32_t a = 0; a < card; a++)
                steps[a] = unary[a] > -INFINITY ? rint((exact[a] - said[a]) / quantum) : 0;
            const double shift = common(steps, unary, card);
            for (int32_t a = 0; a < card; a++) {
                const double now = unary[a] > -INFINITY ? said[a] + (steps[a] - shift) * quantum : 0;
                s->moved[f] |= now != message[a];
                message[a] = now;
            }
        }
    }
}

/* scan() for two variables; `minus` and `line` hold a line of the table each. */
static double scan_pair(const fgi_node *p, int32_t f, double *rows, double *minus, double *line) {
    const int32_t first = p->slot_begin[f], i = p->slot_var[first], j = p->slot_var[first + 1];
    const int32_t cols = p->card[j];
    const double *mi = p->message + p->slot_message[first], *mj = p->message + p->slot_message[first + 1];
    const double *t = p->table[f];
    double *columns = rows + p->card[i], best = -INFINITY;
    for (int32_t b = 0; b < cols; b++) {
        minus[b] = p->unary[p->begin[j] + b] > -INFINITY ? mj[b] : INFINITY;
        columns[b] = -INFINITY;
    }
    for (int32_t a = 0; a < p->card[i]; a++, t += cols) {
        rows[a] = -INFINITY;
        if (p->unary[p->begin[i] + a] == -INFINITY) continue;
        for (int32_t b = 0; b < cols; b++) {
            line[b] = t[b] - mi[a] - minus[b];
            columns[b] = fgi_larger(columns[b], line[b]);
        }
        rows[a] = fgi_max_of(line, cols);
        best = fgi_larger(best, rows[a]);
    }
    return best;
}

/* The largest entry of a factor less its messages, and of each row of each variable, one after the other. */
static double scan(const fgi_node *p, int32_t f, double *rows) {
    const int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first;
    int32_t digit[FGI_NODE_ARITY] = {0};
    const double *unary[FGI_NODE_ARITY], *message[FGI_NODE_ARITY];
    double *row[FGI_NODE_ARITY], best = -INFINITY;
    for (int32_t k = 0, at = 0; k < arity; k++) {
        const int32_t i = p->slot_var[first + k];
        unary[k] = p->unary + p->begin[i];
        message[k] = p->message + p->slot_message[first + k];
        row[k] = rows + at;
        at += p->card[i];
        for (int32_t a = 0; a < p->card[i]; a++) row[k][a] = -INFINITY;
    }
    const int32_t last = arity - 1, cols = p->card[p->slot_var[first + last]];
    for (const double *t = p->table[f];; t += cols) {
        double outer = 0, top = -INFINITY;
        int alive = 1;
        for (int32_t k = 0; k < last; k++) {
            outer += message[k][digit[k]];
            alive &= unary[k][digit[k]] > -INFINITY;
        }
        for (int32_t b = 0; alive && b < cols; b++) {
            const double x = unary[last][b] > -INFINITY ? t[b] - outer - message[last][b] : -INFINITY;
            top = fgi_larger(top, x);
            row[last][b] = fgi_larger(row[last][b], x);
        }
        for (int32_t k = 0; k < last; k++) row[k][digit[k]] = fgi_larger(row[k][digit[k]], top);
        best = fgi_larger(best, top);
        int32_t k = last - 1;
        while (k >= 0 && ++digit[k] == p->card[p->slot_var[first + k]]) digit[k--] = 0;
        if (k < 0) return best;
    }
}

/* Bound and maxima under the messages as they are now; with `falls` also what the bound falls by for each label. */
static void measure(const fgi_speaker *s, fgi_node *p, int falls) {
    fgi_sum sum = {p->bound, p->carry, 0};
    for (int32_t i = 0; i < p->n; i++) {
        double *fall = s->fall + p->begin[i], best = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++) {
            fall[a] = p->unary[p->begin[i] + a];
            for (int32_t k = p->link_begin[i]; fall[a] > -INFINITY && k < p->link_begin[i + 1]; k++)
                fall[a] += p->message[p->links[k].mu + a];
            best = fgi_larger(best, fall[a]);
        }
        fgi_sum_add(&sum, best);
        for (int32_t a = 0; best > -INFINITY && a < p->card[i]; a++) {
            fall[a] -= best;
            p->unary[p->begin[i] + a] -= best;
        }
    }
    for (int32_t f = 0; f < p->n_factors; f++) {
        if (!falls && !s->moved[f]) continue;
        const int is_pair = p->slot_begin[f + 1] - p->slot_begin[f] == 2;
        const double *row = s->rows;
        const double best = is_pair ? scan_pair(p, f, s->rows, s->line, s->line + p->max_card) : scan(p, f, s->rows);
        fgi_sum_add(&sum, -p->factor_max[f]);
        p->factor_max[f] = best;
        p->work += p->states[f];
        fgi_sum_add(&sum, best);
        for (int32_t k = p->slot_begin[f]; falls && k < p->slot_begin[f + 1]; k++) {
            const int32_t i = p->slot_var[k];
            for (int32_t a = 0; best > -INFINITY && a < p->card[i]; a++) s->fall[p->begin[i] + a] += row[a] - best;
            row += p->card[i];
        }
    }
    fgi_node_set_bound(p, &sum);
}

/* The messages of the problem are said. */
static void tell_messages(const fgi_speaker *s, fgi_speech *x, const fgi_node *p, double quantum) {
    int64_t n = 0, before = 0;
    for (int32_t k = 0; k < p->n_slots; k++) {
        const int64_t first = p->slot_message[k];
        const double *unary = p->unary + p->begin[p->slot_var[k]];
        for (int32_t a = 0; a < p->card[p->slot_var[k]]; a++) {
            const double change = p->message[first + a] - x->message[first + a];
            if (unary[a] == -INFINITY || change == 0) continue;
            const int64_t place = x->place ? x->place[first + a] : first + a;
            if (!(fabs(change) < 0x1p52 * quantum)) {
                s->proof->failed = 1;
                return;
            }
            for (; place - before > UINT8_MAX; before += UINT8_MAX) { /* a message of nothing on the way */
                s->gaps[n] = UINT8_MAX;
                s->amounts[n++] = 0;
            }
            s->gaps[n] = place - before;
            s->amounts[n++] = (int64_t)(change / quantum);
            x->message[first + a] = p->message[first + a];
            before = place;
        }
    }
    if (n > 0) fgi_proof_messages(s->proof, quantum, s->gaps, s->amounts, n);
}

static int tell_labels(const fgi_speaker *s, fgi_speech *x, const fgi_node *p) {
    int64_t n = 0;
    int left = 1;
    for (int32_t i = 0; i < p->n; i++) {
        left &= p->alive[i] > 0;
        for (int64_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            if (p->unary[k] > -INFINITY || x->told[k]) continue;
            x->told[k] = 1;
            s->gaps[n++] = s->label_begin[p->root_var[i]] + p->label[k];
        }
    }
    if (n == 0) return left;
    fgi_proof_rule(s->proof, 'R');
    fgi_proof_numbers(s->proof, s->gaps, n, 0);
    return left;
}

/* The largest power of two up to x, but no less than the smallest quantum that is of use. */
static double quantum_of(const fgi_speaker *s, double x) {
    int exponent;
    if (!(x > s->proof->quantum) || x == INFINITY) return s->proof->quantum;
    frexp(x, &exponent);
    return ldexp(1, exponent - 1);
}

int fgi_speak_node(fgi_speaker *s, fgi_speech *x, fgi_node *p, double cutoff) {
    drop_forbidden(p);
    if (p->bound > -INFINITY) {
        const double left = cutoff > -INFINITY ? p->bound - cutoff : fabs(p->bound);
        const double quantum = quantum_of(s, COARSE * left / (p->n_slots + 1));
        keep_exact(s, p);
        round_messages(s, x, p, quantum);
        measure(s, p, 1);
        tell_messages(s, x, p, quantum);
        for (int32_t i = 0; i < p->n && p->bound > cutoff; i++)
            for (int32_t a = 0; a < p->card[i]; a++) {
                const double bound = p->bound + s->fall[p->begin[i] + a];
                if (p->unary[p->begin[i] + a] == -INFINITY || !(bound <= cutoff)) continue;
                p->removed = fgi_larger(p->removed, bound);
                fgi_node_remove(p, i, a);
            }
    }
    return tell_labels(s, x, p);
}

void fgi_speak_close(fgi_speaker *s, fgi_speech *x, fgi_node *p, double cutoff) {
    drop_forbidden(p);
    if (p->bound > -INFINITY) {
        double part = BOLD * (cutoff - p->bound) / (p->n_slots + 1), quantum;
        keep_exact(s, p);
        memset(s->moved, 0, (size_t)p->n_factors);
        do { /* with a quantum of the slack through the slots nothing is lost that is needed */
            quantum = quantum_of(s, part);
            round_messages(s, x, p, quantum);
            measure(s, p, 0);
            part /= BOLD;
        } while (p->bound > cutoff && quantum > s->proof->quantum);
        if (s->score > -INFINITY && p->bound > s->score + s->lead) /* rounding has lost too much: less is proven */
            fgi_speak_threshold(s, s->labels, s->n_vars, s->score, p->bound - s->score + s->proof->lead);
        tell_messages(s, x, p, quantum);
    }
    tell_labels(s, x, p);
}

void fgi_speak_branch(fgi_speaker *s, fgi_speech *x, const fgi_node *p, int32_t var, int32_t a) {
    fgi_proof_rule(s->proof, 'B');
    fgi_proof_label(s->proof, (int32_t)(s->label_begin[p->root_var[var]] + p->label[p->begin[var] + a]));
    x->told[p->begin[var] + a] = 1;
}

void fgi_speak_end(fgi_speaker *s) { fgi_proof_rule(s->proof, 'E'); }
