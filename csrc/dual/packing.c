/* dual/packing.c - weights of cycles: see dual/cycles.h.
 *
 * The linear program is  max sum lambda  over lambda >= 0 with load_e = sum of lambda over the cycles of e <= w_e, its
 * other side  min w z  over 0 <= z <= 1 with sum of z >= 1 on every cycle. Both go on at once: primal-dual hybrid
 * gradient steps with diagonal step lengths (Pock, Chambolle 2011), reflected and drawn towards an anchor (Halpern),
 * which is moved as the residual falls (Lu & Yang, "Restarted Halpern PDHG for linear programming", 2024). */
#include <string.h>
#include "base/util.h"
#include "dual/cycles.h"
#include "base/assert.h"

/* The anchor is moved where one of these holds. */
static const double SUFFICIENT = 0.2;  /* the residual has fallen to this part of what it was there */
static const double NECESSARY = 0.8;   /* it has fallen to this part and rises again */
static const double ARTIFICIAL = 0.36; /* this part of all iterations is over since */
/* omega stays within this factor of the mean weight (decision 0016). */
static const double FAR = 0x1p4;
enum { MOST_IDLE = 20 }; /* looks at a cycle without weight before it is dropped */

static int reserve(fgi_packing *p) {
    if (p->n_cycles < p->cycle_capacity) return 1;
    const int64_t n = p->cycle_capacity + p->cycle_capacity / 2 + 1000;
    if (!fgi_resize(&p->lambda, n, sizeof(double)) || !fgi_resize(&p->lambda_anchor, n, sizeof(double)) ||
        !fgi_resize(&p->lambda_next, n, sizeof(double)) || !fgi_resize(&p->polished, n, sizeof(double)) ||
        !fgi_resize(&p->idle, n, 1))
        return 0;
    p->cycle_capacity = n;
    return 1;
}

fgi_rc fgi_packing_init(fgi_packing *p, const fgi_spins *g) {
    const int64_t m = g->m;
    *p = (fgi_packing){0};
    p->z = fgi_take_zero(&p->arena, m, double);
    p->z_anchor = fgi_take_zero(&p->arena, m, double);
    p->z_next = fgi_take_zero(&p->arena, m, double);
    p->load = fgi_take_zero(&p->arena, m, double);
    p->degree = fgi_take_zero(&p->arena, m, int32_t);
    if (p->arena.failed || !reserve(p) || !fgi_array_push_i64(&p->begin, 0)) return FGI_NO_MEMORY;
    double sum = 0;
    for (int64_t e = 0; e < m; e++) sum += g->weight[e];
    p->omega = p->scale = sum > 0 ? sum / (double)m : 1;
    return FGI_OK;
}

void fgi_packing_free(fgi_packing *p) {
    fgi_array_free(&p->edges);
    fgi_array_free(&p->begin);
    free(p->lambda);
    free(p->lambda_anchor);
    free(p->lambda_next);
    free(p->polished);
    free(p->idle);
    fgi_arena_free(&p->arena);
}

int fgi_packing_add(fgi_packing *p, const int32_t *edges, int64_t n) {
    fgi_assert(n > 0 && p->n_cycles <= p->cycle_capacity);
    fgi_assert(p->begin.n == p->n_cycles + 1);
    if (!reserve(p) || !fgi_array_reserve(&p->edges, n, sizeof(int32_t))) return 0;
    memcpy((int32_t *)p->edges.at + p->edges.n, edges, (size_t)n * sizeof *edges);
    p->edges.n += n;
    if (!fgi_array_push_i64(&p->begin, p->edges.n)) {
        p->edges.n -= n;
        return 0;
    }
    const int64_t c = p->n_cycles++;
    p->lambda[c] = p->lambda_anchor[c] = p->lambda_next[c] = p->polished[c] = 0;
    p->idle[c] = 0;
    for (int64_t k = 0; k < n; k++) {
        fgi_assert(edges[k] >= 0);
        p->degree[edges[k]]++;
    }
    return 1;
}

void fgi_packing_anchor(fgi_packing *p) {
    const int64_t n = p->n_cycles;
    memcpy(p->lambda_anchor, p->lambda, (size_t)n * sizeof(double));
    p->since_anchor = 0;
}

static double distance(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (x[k] - y[k]) * (x[k] - y[k]);
    return sqrt(sum);
}

/* From the last step on, with step lengths that balance what has been gone in z and in lambda. */
static void move_anchor(fgi_packing *p, int64_t m) {
    const double dz = distance(p->z_next, p->z_anchor, m), dl = distance(p->lambda_next, p->lambda_anchor, p->n_cycles);
    if (dz > 1e-12 && dl > 1e-12 * p->omega) p->omega = sqrt(p->omega * (dl / dz));
    p->omega = fgi_smaller(fgi_larger(p->omega, p->scale / FAR), p->scale * FAR);
    memcpy(p->z, p->z_next, (size_t)m * sizeof(double));
    memcpy(p->z_anchor, p->z_next, (size_t)m * sizeof(double));
    memcpy(p->lambda, p->lambda_next, (size_t)p->n_cycles * sizeof(double));
    memcpy(p->lambda_anchor, p->lambda_next, (size_t)p->n_cycles * sizeof(double));
    p->since_anchor = 0;
}

static void add_up(const fgi_packing *p, const double *lambda, double *load, int64_t m) {
    const int32_t *edges = p->edges.at;
    const int64_t *begin = p->begin.at;
    memset(load, 0, (size_t)m * sizeof(double));
    for (int64_t c = 0; c < p->n_cycles; c++)
        for (int64_t k = begin[c]; k < begin[c + 1]; k++) load[edges[k]] += lambda[c];
}

/* One step: *_next is where the plain method would go. Returns the residual. */
static double step(fgi_packing *p, const fgi_spins *g) {
    fgi_assert(p->omega > 0 && p->since_anchor >= 0);
    const int32_t *edges = p->edges.at;
    const int64_t *begin = p->begin.at, m = g->m;
    const double keep = (double)(p->since_anchor + 1) / (double)(p->since_anchor + 2), back = 1 - keep;
    double residual = 0;
    add_up(p, p->lambda, p->load, m);
    for (int64_t e = 0; e < m; e++) {
        const double scale = p->omega * (p->degree[e] ? p->degree[e] : 1);
        const double to = p->z[e] - (g->weight[e] - p->load[e]) / scale;
        const double next = to > 0 ? fgi_smaller(to, 1) : 0, gone = next - p->z[e];
        residual += gone * gone * scale;
        fgi_assert(next >= 0 && next <= 1);
        p->z_next[e] = next;
        p->load[e] = next + gone; /* the reflected point, from here on */
    }
    for (int64_t c = 0; c < p->n_cycles; c++) {
        const double scale = p->omega / (double)(begin[c + 1] - begin[c]);
        double sum = 0;
        for (int64_t k = begin[c]; k < begin[c + 1]; k++) sum += p->load[edges[k]];
        const double to = p->lambda[c] + scale * (1 - sum), next = to > 0 ? to : 0, gone = next - p->lambda[c];
        residual += gone * gone / scale;
        fgi_assert(next >= 0 && next < INFINITY);
        p->lambda_next[c] = next;
        p->lambda[c] = keep * (next + gone) + back * p->lambda_anchor[c];
    }
    for (int64_t e = 0; e < m; e++) p->z[e] = keep * p->load[e] + back * p->z_anchor[e];
    return sqrt(residual);
}

#ifdef FGI_CHECKED
static void check(const fgi_packing *p, const fgi_spins *g) {
    const int32_t *edges = p->edges.at;
    const int64_t *begin = p->begin.at;
    int64_t degrees = 0;
    fgi_assert(p->begin.n == p->n_cycles + 1 && begin[0] == 0 && begin[p->n_cycles] == p->edges.n);
    for (int64_t c = 0; c < p->n_cycles; c++) {
        fgi_assert(begin[c] < begin[c + 1]);
        fgi_assert(p->lambda_next[c] >= 0 && p->polished[c] >= 0);
        for (int64_t k = begin[c]; k < begin[c + 1]; k++) {
            fgi_assert(edges[k] >= 0 && edges[k] < g->m);
            for (int64_t l = begin[c]; l < k; l++) fgi_assert(edges[l] != edges[k]);
        }
    }
    for (int32_t e = 0; e < g->m; e++) {
        fgi_assert(p->degree[e] >= 0 && p->degree[e] <= p->n_cycles);
        fgi_assert(g->weight[e] > 0 && p->z_next[e] >= 0 && p->z_next[e] <= 1);
        degrees += p->degree[e];
    }
    fgi_assert(degrees == p->edges.n);
}
#endif

int64_t fgi_packing_step_work(const fgi_packing *p, const fgi_spins *g) {
    return 2 * p->edges.n + 6 * p->n_cycles + 4 * (int64_t)g->m + 1;
}

void fgi_packing_iterate(fgi_packing *p, const fgi_spins *g, int64_t iterations) {
    fgi_audit_rarely(check(p, g));
    for (int64_t k = 0; k < iterations; k++) {
        const double residual = step(p, g);
        p->iterations++;
        if (p->since_anchor++ == 0) p->first_residual = residual;
        else if (residual <= SUFFICIENT * p->first_residual ||
            (residual <= NECESSARY * p->first_residual && residual > p->last_residual) ||
            (double)p->since_anchor >= ARTIFICIAL * (double)p->iterations)
            move_anchor(p, g->m);
        p->last_residual = residual;
    }
}

/* The weights as they are may overload edges, or leave room: each cycle in turn gives what is too much, or takes what
 * there is. Then, whatever rounding has done, what is left over counts against it. */
double fgi_packing_bound(fgi_packing *p, const fgi_spins *g) {
    const int32_t *edges = p->edges.at;
    const int64_t *begin = p->begin.at;
    memcpy(p->polished, p->lambda_next, (size_t)p->n_cycles * sizeof(double));
    add_up(p, p->polished, p->load, g->m);
    for (int64_t c = 0; c < p->n_cycles; c++) {
        double room = INFINITY;
        for (int64_t k = begin[c]; k < begin[c + 1]; k++)
            room = fgi_smaller(room, g->weight[edges[k]] - p->load[edges[k]]);
        const double next = fgi_larger(p->polished[c] + room, 0), change = next - p->polished[c];
        fgi_assert(next >= 0);
        p->polished[c] = next;
        for (int64_t k = begin[c]; change != 0 && k < begin[c + 1]; k++) p->load[edges[k]] += change;
        p->idle[c] = next > 0 || p->lambda_next[c] > 0 ? 0 : (uint8_t)(p->idle[c] + (p->idle[c] < 255));
    }
    add_up(p, p->polished, p->load, g->m);
    fgi_sum sum = {0};
    double magnitude = 0;
    for (int64_t c = 0; c < p->n_cycles; c++) {
        fgi_sum_add(&sum, p->polished[c]);
        magnitude += p->polished[c];
    }
    for (int64_t e = 0; e < g->m; e++) {
        p->load[e] *= 1 + (double)(p->degree[e] + 1) * 0x1p-52;
        const double over = p->load[e] - g->weight[e];
        if (over <= 0) continue;
        fgi_sum_add(&sum, -over * (1 + 0x1p-50));
        magnitude += over;
    }
    const double value = fgi_sum_value(&sum);
    return fgi_larger(value - 0x1p-51 * fabs(value) - fgi_sum_error(p->n_cycles + g->m + 1, 1.01 * magnitude), 0);
}

static void recount(fgi_packing *p, int64_t m) {
    const int32_t *edges = p->edges.at;
    memset(p->degree, 0, (size_t)m * sizeof(int32_t));
    for (int64_t k = 0; k < p->edges.n; k++) p->degree[edges[k]]++;
}

void fgi_packing_drop_idle(fgi_packing *p, int64_t m) {
    int32_t *edges = p->edges.at;
    int64_t *begin = p->begin.at, kept = 0, at = 0;
    for (int64_t c = 0; c < p->n_cycles; c++) {
        const int64_t from = begin[c], n = begin[c + 1] - from;
        if (p->idle[c] >= MOST_IDLE) continue;
        memmove(edges + at, edges + from, (size_t)n * sizeof *edges);
        p->lambda[kept] = p->lambda[c];
        p->lambda_next[kept] = p->lambda_next[c];
        p->idle[kept] = p->idle[c];
        begin[kept++] = at; /* not after where it was read */
        at += n;
    }
    fgi_assert(kept <= p->n_cycles && at <= p->edges.n);
    begin[kept] = at;
    p->edges.n = at;
    p->begin.n = kept + 1;
    p->n_cycles = kept;
    recount(p, m);
}

/* A cycle stays one, the edges that are always satisfied left out; what it goes along twice it need not go. */
static int carry(fgi_packing *p, const int32_t *from, int64_t n, const int32_t *map, uint8_t *twice, int32_t *edges) {
    int64_t kept = 0;
    int lost = 0;
    for (int64_t k = 0; k < n; k++) lost |= map[from[k]] == FGI_SPINS_LOST;
    if (lost) return 1;
    for (int64_t k = 0; k < n; k++)
        if (map[from[k]] >= 0) twice[map[from[k]]] ^= 1;
    for (int64_t k = 0; k < n; k++) {
        const int32_t e = map[from[k]];
        if (e < 0 || !twice[e]) continue;
        twice[e] = 0;
        edges[kept++] = e;
    }
    return kept == 0 || fgi_packing_add(p, edges, kept);
}

fgi_rc fgi_packing_carry_over(
    fgi_packing *p, const fgi_packing *from, const int32_t *map, int32_t n_from, const fgi_spins *g) {
    const int32_t *edges = from->edges.at;
    const int64_t *begin = from->begin.at;
    uint8_t *twice = fgi_calloc(g->m, 1);
    int32_t *kept = fgi_alloc(from->edges.n, sizeof *kept);
    int ok = twice && kept;
    for (int64_t c = 0; ok && c < from->n_cycles; c++) {
        const int64_t before = p->n_cycles;
        ok = carry(p, edges + begin[c], begin[c + 1] - begin[c], map, twice, kept);
        if (p->n_cycles > before) p->lambda[before] = p->lambda_next[before] = from->polished[c];
    }
    for (int64_t e = 0; e < n_from; e++)
        if (map[e] >= 0) p->z_next[map[e]] = fgi_larger(p->z_next[map[e]], from->z_next[e]);
    memcpy(p->z, p->z_next, (size_t)g->m * sizeof(double));
    memcpy(p->z_anchor, p->z_next, (size_t)g->m * sizeof(double));
    free(twice);
    free(kept);
    return ok ? FGI_OK : FGI_NO_MEMORY;
}
