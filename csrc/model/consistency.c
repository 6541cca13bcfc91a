/* model/consistency.c - see model/consistency.h. */
#include "model/consistency.h"
#include <string.h>

static inline int gone(const fgi_domain *d, int32_t label) { return d->scores[label] == -INFINITY; }

static int32_t next_label(const fgi_domain *d, int32_t from) {
    while (from < d->card && gone(d, from)) from++;
    return from;
}

/* States are gone through in rows, the last variable's label fastest. A row is left as soon as it has shown a support
 * and has no more to show: where little is forbidden, that is after one entry. */
int64_t fgi_find_supports(int32_t arity, fgi_domain *domains, const double *values, uint8_t *seen, int64_t *work) {
    const int32_t n = arity - 1;
    int64_t missing = 0, labels = 0; /* labels left of the slower variables that have no support so far */
    for (int32_t k = 0; k < arity; k++) {
        if (k < n) missing += domains[k].live;
        labels += domains[k].card;
        domains[k].at = next_label(&domains[k], 0);
    }
    memset(seen, 0, (size_t)labels);
    const fgi_domain *last = &domains[n];
    uint8_t *seen_last = seen + labels - last->card;
    int64_t missing_last = last->live;
    for (;;) {
        const double *row = values;
        for (int32_t k = 0; k < n; k++) row += domains[k].at * domains[k].stride;
        int any = 0;
        int32_t a = 0;
        for (; a < last->card && !(any && !missing_last); a++) {
            if (row[a * last->stride] == -INFINITY || gone(last, a)) continue;
            any = 1;
            missing_last -= !seen_last[a];
            seen_last[a] = 1;
        }
        *work += a + arity;
        uint8_t *mark = seen;
        for (int32_t k = 0; any && k < n; mark += domains[k++].card) {
            missing -= !mark[domains[k].at];
            mark[domains[k].at] = 1;
        }
        if (missing + missing_last == 0) return 0;
        int32_t k = n - 1;
        for (; k >= 0; k--) {
            domains[k].at = next_label(&domains[k], domains[k].at + 1);
            if (domains[k].at < domains[k].card) break;
            domains[k].at = next_label(&domains[k], 0);
        }
        if (k < 0) return missing + missing_last;
    }
}

int64_t fgi_potts_supports(const fgi_domain domains[2], double equal, double unequal, uint8_t *seen) {
    int64_t missing = 0;
    for (int k = 0; k < 2; k++) {
        const fgi_domain *mine = &domains[k], *other = &domains[1 - k];
        for (int32_t a = 0; a < mine->card; a++, seen++) {
            const int same = a < other->card && !gone(other, a);
            *seen = (equal > -INFINITY && same) || (unequal > -INFINITY && other->live > same);
            missing += !*seen && !gone(mine, a);
        }
    }
    return missing;
}

int64_t fgi_view_supports(const fgi_model *m, const fgi_view *v, fgi_domain *domains, uint8_t *seen, int64_t *work) {
    int64_t stride = 1, labels = 0;
    for (int32_t k = v->arity - 1; k >= 0; k--) {
        domains[k].card = m->s->cards[v->vars[k]];
        domains[k].stride = stride;
        stride *= domains[k].card;
        labels += domains[k].card;
    }
    if (v->kind == FGI_DENSE) {
        if (v->transposed) domains[0].stride = 1, domains[1].stride = v->rows;
        return fgi_find_supports(v->arity, domains, v->values, seen, work);
    }
    *work += labels;
    if (v->kind == FGI_POTTS) return fgi_potts_supports(domains, v->p0, v->p1, seen);
    memset(seen, 1, (size_t)labels); /* differences are finite */
    return 0;
}
