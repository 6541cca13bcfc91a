/* exact/speak.c - see exact/speak.h. */
#include "exact/speak.h"
#include <string.h>

static int64_t n_messages(const fgi_problem *p) {
    if (p->n_slots == 0) return 0;
    return p->slot_message[p->n_slots - 1] + p->card[p->slot_var[p->n_slots - 1]];
}

fgi_rc fgi_speaker_begin(fgi_speaker *s, fgi_proof *proof, const fgi_model *m) {
    s->proof = proof;
    s->score = -INFINITY;
    s->label_begin = m->s->unary_begin;
    s->rows = fgi_alloc((int64_t)m->s->max_arity * m->s->max_card + 1, sizeof(double));
    s->fall = fgi_alloc(m->s->unary_begin[m->s->n_vars] + 1, sizeof(double));
    return s->rows && s->fall ? FGI_OK : FGI_NO_MEMORY;
}

void fgi_speaker_free(fgi_speaker *s) {
    free(s->rows);
    free(s->fall);
}

fgi_rc fgi_speech_begin(fgi_speech *x, const fgi_problem *p) {
    x->message = fgi_calloc(n_messages(p) + 1, sizeof(double));
    x->told = fgi_calloc(p->begin[p->n] + 1, 1);
    return x->message && x->told ? FGI_OK : FGI_NO_MEMORY;
}

void fgi_speech_free(fgi_speech *x) {
    free(x->message);
    free(x->told);
}

void fgi_speak_threshold(fgi_speaker *s, const int32_t *labels, int64_t n_vars, double score, double lead) {
    const double shown = ldexp(lead, s->proof->exponent);
    fgi_proof_rule(s->proof, 'K');
    fgi_proof_put(s->proof, &shown, sizeof shown);
    for (int64_t i = 0; i < n_vars; i++) fgi_proof_label(s->proof, (int32_t)(s->label_begin[i] + labels[i]));
    s->score = score;
}

/* Labels that no state of some factor allows have infinite messages until they are gone. */
static void drop_forbidden(fgi_problem *p) {
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t a = 0; a < p->card[i]; a++) {
            int finite = 1;
            for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++)
                finite &= fabs(p->message[p->links[k].mu + a]) < INFINITY;
            if (p->unary[p->begin[i] + a] > -INFINITY && !finite) fgi_problem_remove(p, i, a);
        }
}

/* The largest message of a factor to a variable becomes 0: what is the same for all labels says nothing. */
static void round_messages(fgi_problem *p, double quantum, double reach) {
    for (int32_t s = 0; s < p->n_slots; s++) {
        const int32_t i = p->slot_var[s];
        const double *unary = p->unary + p->begin[i];
        double *message = p->message + p->slot_message[s], largest = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++)
            if (unary[a] > -INFINITY) largest = fgi_larger(largest, message[a]);
        for (int32_t a = 0; a < p->card[i]; a++)
            message[a] = unary[a] > -INFINITY ? rint(fgi_larger(message[a] - largest, -reach) / quantum) * quantum : 0;
    }
}

/* The largest entry of a factor less its messages, and of each row of each variable, one after the other. */
static double scan(const fgi_problem *p, int32_t f, double *rows) {
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

/* Bound and maxima under the messages as they are now, and what the bound falls by for each label. */
static void measure(const fgi_speaker *s, fgi_problem *p) {
    fgi_sum sum = {p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&sum, -p->factor_max[f]);
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
        const double best = scan(p, f, s->rows), *row = s->rows;
        p->factor_max[f] = best;
        p->work += p->states[f];
        fgi_sum_add(&sum, best);
        for (int32_t k = p->slot_begin[f]; k < p->slot_begin[f + 1]; k++) {
            const int32_t i = p->slot_var[k];
            for (int32_t a = 0; best > -INFINITY && a < p->card[i]; a++) s->fall[p->begin[i] + a] += row[a] - best;
            row += p->card[i];
        }
    }
    fgi_problem_set_bound(p, &sum);
}

static int tell_labels(const fgi_speaker *s, fgi_speech *x, const fgi_problem *p) {
    int32_t n = 0;
    int left = 1;
    for (int32_t i = 0; i < p->n; i++) left &= p->alive[i] > 0;
    for (int64_t k = 0; k < p->begin[p->n]; k++) n += p->unary[k] == -INFINITY && !x->told[k];
    if (n == 0) return left;
    fgi_proof_rule(s->proof, 'R');
    fgi_proof_count(s->proof, n);
    for (int32_t i = 0; i < p->n; i++)
        for (int64_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            if (p->unary[k] > -INFINITY || x->told[k]) continue;
            x->told[k] = 1;
            fgi_proof_label(s->proof, (int32_t)(s->label_begin[p->root_var[i]] + p->label[k]));
        }
    return left;
}

int fgi_speak_node(fgi_speaker *s, fgi_speech *x, fgi_problem *p, double cutoff) {
    drop_forbidden(p);
    if (p->bound > -INFINITY) {
        round_messages(p, s->proof->quantum, s->proof->reach);
        measure(s, p);
        fgi_proof_messages(s->proof, p->message, x->message, n_messages(p));
        for (int32_t i = 0; i < p->n && p->bound > cutoff; i++)
            for (int32_t a = 0; a < p->card[i]; a++) {
                const double bound = p->bound + s->fall[p->begin[i] + a];
                if (p->unary[p->begin[i] + a] == -INFINITY || !(bound <= cutoff)) continue;
                p->removed = fgi_larger(p->removed, bound);
                fgi_problem_remove(p, i, a);
            }
    }
    return tell_labels(s, x, p);
}

void fgi_speak_branch(fgi_speaker *s, fgi_speech *x, const fgi_problem *p, int32_t var, int32_t a) {
    fgi_proof_rule(s->proof, 'B');
    fgi_proof_label(s->proof, (int32_t)(s->label_begin[p->root_var[var]] + p->label[p->begin[var] + a]));
    x->told[p->begin[var] + a] = 1;
}

void fgi_speak_end(fgi_speaker *s) { fgi_proof_rule(s->proof, 'E'); }
