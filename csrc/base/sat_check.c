/* base/sat_check.c - looks at the invariants of base/sat_own.h. */
#include "base/sat_own.h"

#ifdef FGI_CHECKED
static int says_why(fgi_sat *s, int32_t var) {
    const int32_t own = 2 * var + !s->value[var];
    int32_t n;
    const int32_t *x = fgi_sat_why(s, s->reason[var], own, &n);
    for (int32_t k = 0; k < n; k++)
        if (x[k] != own && (literal_value(s, x[k]) != 0 || s->where[x[k] >> 1] > s->where[var])) return 0;
    return 1;
}

static void check_trail(fgi_sat *s) {
    int32_t level = 0, fixed = 0;
    for (int32_t k = 0; k < s->n_trail; k++) {
        const int32_t var = s->trail[k] >> 1;
        while (level < s->n_levels && s->limit[level] <= k) level++;
        fgi_assert(var >= 0 && var < s->n_vars && literal_value(s, s->trail[k]) == 1);
        fgi_assert(s->level[var] == level && s->where[var] == k);
        if (level > 0 && s->reason[var] != FGI_SAT_NONE) fgi_assert(says_why(s, var));
    }
    for (int32_t v = 0; v < s->n_vars; v++) {
        fixed += s->value[v] >= 0;
        fgi_assert(!s->seen[v]);
        fgi_assert(s->place[v] < 0 || s->heap[s->place[v]] == v);
        if (s->learnt_begin >= 0) fgi_assert(s->value[v] >= 0 || s->place[v] >= 0);
    }
    fgi_assert(fixed == s->n_trail && s->next <= s->n_trail);
}

static void check_clauses(const fgi_sat *s) {
    int64_t n = 0, watched = 0, learnt = 0;
    for (int64_t at = 0; at < s->n_clauses; at += s->clauses[at] + FGI_SAT_HEADER, n++) {
        fgi_assert(s->clauses[at] >= 2 && s->clauses[at] <= s->n_vars);
        learnt += s->learnt_begin >= 0 && at >= s->learnt_begin;
    }
    fgi_assert(learnt == s->n_learnt);
    for (int32_t k = 0; k < 2 * s->n_vars; k++)
        for (int32_t j = 0; j < s->watch[k].n; j++, watched++) {
            const int32_t *x = s->clauses + s->watch[k].at[j].clause + FGI_SAT_HEADER;
            fgi_assert(x[0] == k || x[1] == k);
        }
    fgi_assert(watched == 2 * n);
}

static void check_linears(const fgi_sat *s) {
    for (int64_t c = 0; c < s->n_linears; c++) {
        const linear *a = &s->linears[c];
        int64_t sum = 0;
        for (int32_t k = 0; k < a->n; k++) {
            fgi_assert(a->weights[k] > 0 && (k == 0 || a->weights[k] <= a->weights[k - 1]));
            if (literal_value(s, a->literals[k]) == 1 && s->where[a->literals[k] >> 1] < s->next) sum += a->weights[k];
        }
        fgi_assert(a->one || sum == a->sum);
    }
}

void fgi_sat_check(fgi_sat *s) {
    if (s->failed) return; /* a watch may be missing */
    check_trail(s);
    check_clauses(s);
    check_linears(s);
}
#endif
