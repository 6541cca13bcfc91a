/* base/sat.c - see base/sat.h. */
#include "base/sat.h"
#include <string.h>
#include "base/array.h"
#include "base/sat_own.h"

enum {
    HEADER = FGI_SAT_HEADER,
    RESTART_UNIT = 100,   /* conflicts; times Luby's sequence */
    KEPT_AT_FIRST = 4000, /* learnt clauses, after which half of them go; grows by a tenth each time */
    ALWAYS_KEPT = 2,      /* clauses over so few levels are never dropped */
    MOST_LOOKS = 10000    /* at variables, for one that is open, between two pauses: some milliseconds */
};
static const double ACTIVITY_GROWTH = 1 / 0.95; /* a conflict raises activities by so many times the one before */

/* ---- memory --------------------------------------------------------------------------------------------------- */

fgi_sat *fgi_sat_create(int32_t n_vars) {
    fgi_sat *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n_vars = n_vars;
    fgi_arena *memory = &s->memory;
    s->value = fgi_take(memory, n_vars, int8_t);
    s->phase = fgi_take_zero(memory, n_vars, uint8_t);
    s->level = fgi_take_zero(memory, n_vars, int32_t);
    s->reason = fgi_take(memory, n_vars, int32_t);
    s->where = fgi_take(memory, n_vars, int32_t);
    s->why = fgi_take(memory, (int64_t)n_vars + 1, int32_t);
    s->trail = fgi_take(memory, n_vars, int32_t);
    s->limit = fgi_take(memory, (int64_t)n_vars + 1, int32_t);
    s->watch = fgi_take_zero(memory, 2 * (int64_t)n_vars, watches);
    s->activity = fgi_take_zero(memory, n_vars, double);
    s->heap = fgi_take(memory, n_vars, int32_t);
    s->place = fgi_take(memory, n_vars, int32_t);
    s->seen = fgi_take_zero(memory, n_vars, uint8_t);
    s->stamp = fgi_take_zero(memory, (int64_t)n_vars + 1, int32_t);
    s->learnt = fgi_take(memory, (int64_t)n_vars + 1, int32_t);
    s->learnt_begin = -1;
    s->most_learnt = KEPT_AT_FIRST;
    s->growth = 1;
    if (memory->failed) {
        fgi_sat_free(s);
        return NULL;
    }
    memset(s->value, -1, (size_t)n_vars);
    for (int32_t v = 0; v < n_vars; v++) s->place[v] = -1;
    return s;
}

void fgi_sat_free(fgi_sat *s) {
    if (!s) return;
    for (int64_t k = 0; s->watch && k < 2 * (int64_t)s->n_vars; k++) free(s->watch[k].at);
    free(s->clauses);
    fgi_sat_free_linear(s);
    fgi_arena_free(&s->memory);
    free(s);
}

int64_t fgi_sat_memory(const fgi_sat *s) {
    return s->memory.bytes + s->room * (int64_t)sizeof *s->clauses + s->watch_room * (int64_t)sizeof(watch) +
        s->use_room * (int64_t)sizeof(use) + s->linear_room * (int64_t)sizeof(linear);
}

static void add_watch(fgi_sat *s, int32_t literal, int32_t clause, int32_t blocker) {
    fgi_assert(literal >= 0 && literal < 2 * s->n_vars && blocker >= 0 && blocker < 2 * s->n_vars);
    fgi_assert(clause >= 0 && clause < s->room);
    watches *w = &s->watch[literal];
    if (w->n == w->room) {
        const int32_t room = w->room ? 2 * w->room : 4;
        if (!fgi_resize(&w->at, room, sizeof *w->at)) {
            s->failed = 1;
            return;
        }
        s->watch_room += room - w->room;
        w->room = room;
    }
    w->at[w->n++] = (watch){clause, blocker};
}

/* A clause of at least two literals, the first two of which are watched. Returns its place. */
static int32_t store(fgi_sat *s, const int32_t *literals, int32_t n, int32_t levels) {
    fgi_assert(n >= 2 && n <= s->n_vars && levels >= 0);
    fgi_assert(s->n_clauses >= 0 && s->n_clauses <= s->room);
    if (s->n_clauses + n + HEADER > s->room) {
        int64_t room = 2 * s->room + n + 1024;
        if (room > INT32_MAX) room = INT32_MAX;
        if (s->n_clauses + n + HEADER > room || !fgi_resize(&s->clauses, room, sizeof *s->clauses)) {
            s->failed = 1;
            return 0;
        }
        s->room = room;
    }
    const int32_t at = (int32_t)s->n_clauses;
    s->clauses[at] = n;
    s->clauses[at + 1] = levels;
    memcpy(s->clauses + at + HEADER, literals, (size_t)n * sizeof *literals);
    s->n_clauses += n + HEADER;
    add_watch(s, literals[0], at, literals[1]);
    add_watch(s, literals[1], at, literals[0]);
    return at;
}

/* ---- fixing, propagating, taking back --------------------------------------------------------------------------- */

static void take_back(fgi_sat *s, int32_t levels) {
    fgi_assert(levels >= 0);
    if (s->n_levels <= levels) return;
    while (s->n_trail > s->limit[levels]) {
        const int32_t literal = s->trail[--s->n_trail], var = literal >> 1;
        fgi_assert(s->level[var] > levels && s->value[var] == !(literal & 1));
        s->phase[var] = (uint8_t) !(literal & 1);
        s->value[var] = -1;
        if (s->used && s->n_trail < s->next) fgi_sat_take_back_linear(s, literal);
        fgi_sat_enqueue(s, var);
    }
    if (s->next > s->n_trail) s->next = s->n_trail;
    s->n_levels = levels;
}

/* Finds another literal to watch; returns 0 if all but the first are false. */
static int find_watch(fgi_sat *s, int32_t *clause, int32_t place, int32_t blocker) {
    int32_t *x = clause + HEADER;
    fgi_assert(clause[0] >= 2 && literal_value(s, x[1]) == 0);
    for (int32_t k = 2; k < clause[0]; k++) {
        s->operations++;
        if (literal_value(s, x[k]) == 0) continue;
        const int32_t taken = x[k];
        x[k] = x[1];
        x[1] = taken;
        add_watch(s, taken, place, blocker);
        return 1;
    }
    return 0;
}

/* Returns what is violated, or FGI_SAT_NONE. */
static int32_t propagate(fgi_sat *s) {
    int32_t conflict = s->looked < s->n_linears ? fgi_sat_look_at_new(s) : FGI_SAT_NONE;
    while (conflict == FGI_SAT_NONE && s->next < s->n_trail) {
        const int32_t gone = s->trail[s->next++] ^ 1; /* has become false */
        if (s->used) conflict = fgi_sat_propagate_linear(s, gone ^ 1);
        watches *w = &s->watch[gone];
        int32_t kept = 0, k = 0;
        s->operations += w->n;
        for (; k < w->n && conflict == FGI_SAT_NONE; k++) {
            const watch seen = w->at[k];
            if (literal_value(s, seen.blocker) == 1) {
                w->at[kept++] = seen;
                continue;
            }
            int32_t *clause = s->clauses + seen.clause, *x = clause + HEADER;
            fgi_assert(x[0] == gone || x[1] == gone);
            if (x[0] == gone) {
                x[0] = x[1];
                x[1] = gone;
            }
            const int first = literal_value(s, x[0]);
            if (first != 1 && find_watch(s, clause, seen.clause, x[0])) continue;
            w->at[kept++] = (watch){seen.clause, x[0]};
            if (first == 0) conflict = seen.clause;
            else if (first < 0) fix(s, x[0], seen.clause);
        }
        while (k < w->n) w->at[kept++] = w->at[k++];
        w->n = kept;
    }
    return conflict;
}

/* ---- learning --------------------------------------------------------------------------------------------------- */

/* A literal whose reason is made of others in the clause says nothing new. */
static int is_implied(fgi_sat *s, int32_t literal) {
    const int32_t reason = s->reason[literal >> 1];
    if (reason == FGI_SAT_NONE || fgi_sat_is_long(s, reason)) return 0;
    int32_t n;
    const int32_t *x = fgi_sat_why(s, reason, literal ^ 1, &n);
    for (int32_t k = 0; k < n; k++) {
        const int32_t var = x[k] >> 1;
        if (var != literal >> 1 && !s->seen[var] && s->level[var] > 0) return 0;
    }
    return 1;
}

static int32_t count_levels(fgi_sat *s, int32_t n) {
    fgi_assert(n > 0);
    int32_t levels = 0;
    s->stamps++;
    for (int32_t k = 0; k < n; k++) {
        int32_t *stamp = &s->stamp[s->level[s->learnt[k] >> 1]];
        levels += *stamp != s->stamps;
        *stamp = s->stamps;
    }
    return levels;
}

/* Resolves the conflict back to the one literal of this level that implies the rest. The clause is in s->learnt, that
 * literal first, one of the highest other level second; returns its length. */
static int32_t analyse(fgi_sat *s, int32_t conflict) {
    int32_t n = 1, open = 0, at = s->n_trail, reason = conflict, literal = -1, size;
    do {
        const int32_t *x = fgi_sat_why(s, reason, literal, &size);
        s->operations += size;
        for (int32_t k = 0; k < size; k++) {
            const int32_t other = x[k], var = other >> 1;
            if (other == literal || s->seen[var] || s->level[var] == 0) continue;
            s->seen[var] = 1;
            fgi_sat_bump(s, var);
            if (s->level[var] == s->n_levels) open++;
            else s->learnt[n++] = other;
        }
        fgi_assert(open > 0);
        do literal = s->trail[--at];
        while (!s->seen[literal >> 1]);
        fgi_assert(s->level[literal >> 1] == s->n_levels);
        reason = s->reason[literal >> 1];
        s->seen[literal >> 1] = 0;
    } while (--open > 0);
    fgi_assert(n <= s->n_vars && literal_value(s, literal) == 1);
    s->learnt[0] = literal ^ 1;
    int32_t kept = 1;
    for (int32_t k = 1; k < n; k++) { /* marks stay until all have been looked at: those dropped go to the end */
        const int32_t x = s->learnt[k];
        if (is_implied(s, x)) continue;
        s->learnt[k] = s->learnt[kept];
        s->learnt[kept++] = x;
    }
    for (int32_t k = 1; k < n; k++) s->seen[s->learnt[k] >> 1] = 0;
    for (int32_t k = 2; k < kept; k++)
        if (s->level[s->learnt[k] >> 1] > s->level[s->learnt[1] >> 1]) {
            const int32_t x = s->learnt[k];
            s->learnt[k] = s->learnt[1];
            s->learnt[1] = x;
        }
    return kept;
}

static void learn(fgi_sat *s, int32_t conflict) {
    s->since_restart++;
    if (s->n_levels == 0) {
        s->contradiction = 1;
        return;
    }
    const int32_t n = analyse(s, conflict), levels = count_levels(s, n), asserted = s->learnt[0];
    fgi_assert(levels >= 1 && levels <= n);
    take_back(s, n > 1 ? s->level[s->learnt[1] >> 1] : 0);
    int32_t reason = -1;
    if (n > 1) {
        reason = store(s, s->learnt, n, levels);
        s->n_learnt++;
        if (s->failed) return;
    }
    fix(s, asserted, reason);
    s->growth *= ACTIVITY_GROWTH;
}

/* At level 0: the learnt clauses over the most levels go, about half of them; what is left moves together. */
static void forget(fgi_sat *s) {
    fgi_assert(s->n_levels == 0 && s->learnt_begin >= 0);
    int64_t count[64] = {0}, quota = s->n_learnt / 2, most = 63, to = s->learnt_begin;
    for (int64_t at = to; at < s->n_clauses; at += s->clauses[at] + HEADER)
        count[s->clauses[at + 1] < 63 ? s->clauses[at + 1] : 63]++;
    while (most > ALWAYS_KEPT && quota >= count[most]) quota -= count[most--]; /* longer ones than `most` go */
    for (int64_t k = 0; k < 2 * (int64_t)s->n_vars; k++) {
        int32_t kept = 0;
        for (int32_t j = 0; j < s->watch[k].n; j++)
            if (s->watch[k].at[j].clause < s->learnt_begin) s->watch[k].at[kept++] = s->watch[k].at[j];
        s->watch[k].n = kept;
    }
    s->n_learnt = 0;
    for (int64_t at = s->learnt_begin, end = s->n_clauses, n; at < end; at += n) {
        n = s->clauses[at] + HEADER;
        s->operations += n;
        if (s->clauses[at + 1] > most) continue;
        memmove(s->clauses + to, s->clauses + at, (size_t)n * sizeof *s->clauses);
        add_watch(s, s->clauses[to + HEADER], (int32_t)to, s->clauses[to + HEADER + 1]);
        add_watch(s, s->clauses[to + HEADER + 1], (int32_t)to, s->clauses[to + HEADER]);
        to += n;
        s->n_learnt++;
    }
    s->n_clauses = to;
    for (int32_t k = 0; k < s->n_trail; k++) s->reason[s->trail[k] >> 1] = -1; /* never asked for at level 0 */
    s->most_learnt += s->most_learnt / 10;
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair and Zuckerman 1993) */
static int64_t luby(int64_t k) {
    int64_t size = 1, value = 1;
    while (size < k + 1) {
        size = 2 * size + 1;
        value *= 2;
    }
    while (size - 1 != k) {
        size = (size - 1) / 2;
        value /= 2;
        k %= size;
    }
    return value;
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

void fgi_sat_add(fgi_sat *s, const int32_t *literals, int32_t n) {
    fgi_assert(s->learnt_begin < 0 && n >= 0);
    for (int32_t k = 0; k < n; k++) fgi_assert(literals[k] >= 0 && literals[k] < 2 * s->n_vars);
    if (n == 0) s->contradiction = 1;
    if (n == 1 && literal_value(s, literals[0]) == 0) s->contradiction = 1;
    if (n == 1 && literal_value(s, literals[0]) < 0) fix(s, literals[0], -1);
    if (n > 1) store(s, literals, n, 0);
}

void fgi_sat_prefer(fgi_sat *s, int32_t var, int value, double activity) {
    fgi_assert(var >= 0 && var < s->n_vars && activity >= 0);
    s->phase[var] = (uint8_t)(value != 0);
    s->activity[var] = activity;
}

void fgi_sat_set_phase(fgi_sat *s, int32_t var, int value) { s->phase[var] = (uint8_t)(value != 0); }

void fgi_sat_go_back(fgi_sat *s) { take_back(s, 0); }

void fgi_sat_assume(fgi_sat *s, const int32_t *literals, int32_t n) {
    fgi_assert(n >= 0 && n <= s->n_vars);
    take_back(s, 0);
    s->assumed = literals;
    s->n_assumed = n;
    s->refuted = 0;
}

int32_t fgi_sat_core(const fgi_sat *s, const int32_t **literals) {
    *literals = s->learnt;
    return s->n_core;
}

/* An assumed literal is false: those assumed before that it follows from are the core, with itself. */
static void refute(fgi_sat *s, int32_t literal) {
    fgi_assert(literal_value(s, literal) == 0);
    s->refuted = 1;
    s->n_core = 0;
    s->learnt[s->n_core++] = literal;
    if (s->n_levels == 0 || s->level[literal >> 1] == 0) return;
    s->seen[literal >> 1] = 1;
    for (int32_t at = s->n_trail; at-- > s->limit[0];) {
        const int32_t var = s->trail[at] >> 1;
        if (!s->seen[var]) continue;
        s->seen[var] = 0;
        if (s->reason[var] == FGI_SAT_NONE) {
            s->learnt[s->n_core++] = s->trail[at];
            continue;
        }
        int32_t n;
        const int32_t *x = fgi_sat_why(s, s->reason[var], s->trail[at], &n);
        s->operations += n;
        for (int32_t k = 0; k < n; k++) {
            const int32_t other = x[k] >> 1;
            if (other != var && s->level[other] > 0) s->seen[other] = 1;
        }
    }
}

/* A level for the next assumed literal, empty if it is true already. */
static void take_assumed(fgi_sat *s) {
    const int32_t literal = s->assumed[s->n_levels];
    fgi_assert(s->n_levels < s->n_assumed && literal >= 0 && literal < 2 * s->n_vars);
    const int value = literal_value(s, literal);
    if (value == 0) {
        refute(s, literal);
        return;
    }
    s->limit[s->n_levels++] = s->n_trail;
    if (value < 0) fix(s, literal, -1);
}

/* Fixes an open variable; returns 0 if there is none, or if so many were looked at in vain that a pause is due. */
static int decide(fgi_sat *s) {
    for (int32_t looks = 0; s->n_heap > 0 && looks < MOST_LOOKS; looks++) {
        const int32_t var = fgi_sat_dequeue(s);
        if (s->value[var] >= 0) continue;
        s->limit[s->n_levels++] = s->n_trail;
        fix(s, 2 * var + !s->phase[var], -1);
        return 1;
    }
    return 0;
}

fgi_sat_state fgi_sat_step(fgi_sat *s, int64_t max_operations) {
    const int64_t end = s->operations + max_operations;
    if (s->learnt_begin < 0) {
        for (int32_t looks = 0; s->queued < s->n_vars; looks++) {
            if (looks == MOST_LOOKS) return FGI_SAT_RUNNING;
            const int32_t v = s->queued++;
            if (s->value[v] < 0) fgi_sat_enqueue(s, v);
        }
        s->learnt_begin = s->n_clauses;
    }
    fgi_audit_rarely(fgi_sat_check(s));
    for (int32_t steps = 0; !s->failed && !s->contradiction; steps++) {
        if (steps == MOST_LOOKS) return FGI_SAT_RUNNING; /* decisions that nothing follows from are no operations */
        const int32_t conflict = propagate(s);
        if (conflict != FGI_SAT_NONE) {
            learn(s, conflict);
        } else if (s->since_restart >= RESTART_UNIT * luby(s->restarts)) {
            s->since_restart = 0;
            s->restarts++;
            take_back(s, 0);
            if (s->n_learnt >= s->most_learnt) forget(s);
        } else if (s->n_levels < s->n_assumed) {
            take_assumed(s);
            if (s->refuted) return FGI_SAT_REFUTED;
        } else if (!decide(s)) {
            return s->n_heap > 0 ? FGI_SAT_RUNNING : FGI_SAT_SATISFIED;
        }
        if (s->operations >= end && !s->contradiction) return s->failed ? FGI_SAT_NO_MEMORY : FGI_SAT_RUNNING;
    }
    return s->failed ? FGI_SAT_NO_MEMORY : FGI_SAT_CONTRADICTION;
}

int fgi_sat_value(const fgi_sat *s, int32_t var) {
    fgi_assert(var >= 0 && var < s->n_vars);
    return s->value[var] == 1;
}
int64_t fgi_sat_operations(const fgi_sat *s) { return s->operations; }
