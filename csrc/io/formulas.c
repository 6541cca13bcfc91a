/* io/formulas.c - see io/formulas.h. */
#include "io/formulas.h"
#include <math.h>
#include <string.h>

enum { AT_LEAST, ABOVE, AT_MOST, BELOW, EQUAL, DISJUNCTION, SPECIAL_DISJUNCTION };
static const fgi_formula FORMULAS[] = {
    [AT_LEAST] = {">=", 2, 2},
    [ABOVE] = {">", 2, 2},
    [AT_MOST] = {"<=", 2, 2},
    [BELOW] = {"<", 2, 2},
    [EQUAL] = {"=", 2, 2},
    [DISJUNCTION] = {"disj", 3, 2},
    [SPECIAL_DISJUNCTION] = {"sdisj", 6, 4},
};

const fgi_formula *fgi_formula_find(const char *word, int64_t n) {
    for (size_t k = 0; k < sizeof FORMULAS / sizeof FORMULAS[0]; k++)
        if ((int64_t)strlen(FORMULAS[k].keyword) == n && !memcmp(word, FORMULAS[k].keyword, (size_t)n))
            return &FORMULAS[k];
    return NULL;
}

/* x at least y + c, and the like: what is missing is the cost, up to d. */
static double comparison(int64_t kind, const double *p, double x, double y, double top) {
    const double c = p[0], d = p[1];
    double missing = 0;
    switch (kind) {
    case AT_LEAST: missing = y + c - x; break;
    case ABOVE: missing = y + 1 + c - x; break;
    case AT_MOST: missing = x - c - y; break;
    case BELOW: missing = x - c + 1 - y; break;
    case EQUAL: missing = fabs(y + c - x); break;
    default: break; /* other kinds do not compare */
    }
    return !(missing <= d) ? top : missing > 0 ? missing : 0.0;
}

/* Two tasks that begin at x and y and last p[0] and p[1] must not overlap. */
static int apart(const double *p, double x, double y) { return x >= y + p[1] || y >= x + p[0]; }

/* The same, where each may have the label p[2] or p[3], at a cost, for not being done. */
static double special(const double *p, double x, double y, double top) {
    const int inside = x < p[2] && y < p[3];
    if (x > p[2] || y > p[3] || (inside && !apart(p, x, y))) return top;
    return (x == p[2] ? p[4] : 0.0) + (y == p[3] ? p[5] : 0.0);
}

void fgi_formula_expand(
    const fgi_formula *f, const double *parameters, const int32_t *dims, double top, double *costs) {
    const int64_t kind = f - FORMULAS;
    for (int64_t a = 0; a < dims[0]; a++) {
        for (int64_t b = 0; b < dims[1]; b++) {
            const double x = (double)a, y = (double)b;
            double cost;
            if (kind == DISJUNCTION) cost = apart(parameters, x, y) ? 0.0 : parameters[2];
            else if (kind == SPECIAL_DISJUNCTION) cost = special(parameters, x, y, top);
            else cost = comparison(kind, parameters, x, y, top);
            costs[a * dims[1] + b] = cost;
        }
    }
}
