/* Losses of batches by every method: those that see all labels agree with the scores themselves, the others with what
 * they claim; with threads, steps that the indexes follow, and scores that are no numbers. */
#include <math.h>
#include <stdlib.h>
#include "base/util.h"
#include "check.h"
#include "fginfer_losses.h"

enum { LABELS = 70, D = 12, N = 9, BLOCKS = 3 };

typedef struct problem {
    float rows[LABELS * D], x[N * D], scores[N * LABELS];
    int64_t begin[N + 1];
    int32_t positives[2 * N];
} problem;

static void score(problem *p) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < LABELS; k++) {
            float sum = 0;
            for (int c = 0; c < D; c++) sum += p->rows[k * D + c] * p->x[i * D + c];
            p->scores[i * LABELS + k] = sum;
        }
}

static void draw(problem *p, fgi_rng *rng, float scale) {
    for (int k = 0; k < LABELS * D; k++) p->rows[k] = scale * (float)(fgi_rng_unit(rng) - 0.5);
    for (int k = 0; k < N * D; k++) p->x[k] = scale * (float)(fgi_rng_unit(rng) - 0.5);
    for (int i = 0; i <= N; i++) p->begin[i] = 2 * i;
    for (int i = 0; i < N; i++) {
        p->positives[2 * i] = (int32_t)fgi_rng_below(rng, LABELS / 2);
        p->positives[2 * i + 1] = LABELS / 2 + (int32_t)fgi_rng_below(rng, LABELS / 2);
    }
    score(p);
}

typedef struct setup {
    fgi_losses *losses;
    fgi_search *indexes[BLOCKS];
    int searches;
    fgi_loss_batch batch;
} setup;

static int make(setup *s, const fgi_loss_settings *set, const problem *p) {
    int32_t cuts[BLOCKS + 1] = {0, D};
    *s = (setup){0};
    s->batch = (fgi_loss_batch){N, LABELS, D, p->rows, p->x, p->begin, p->positives, NULL, NULL, NULL,
        set->method == FGI_LOSS_EXACT ? p->scores : NULL, s->indexes};
    REQUIRE(fgi_losses_create(set, &s->losses, NULL) == FGI_OK);
    if (set->method < FGI_LOSS_SEARCH) return 0;
    fgi_search_settings index = {.clusters = 5, .rounds = 3, .parts = 1, .threads = set->threads};
    s->searches = set->method == FGI_LOSS_DECOMPOSED && !set->together ? set->blocks : 1;
    if (set->together) index.parts = set->blocks;
    if (s->searches > 1) fgi_loss_blocks(D, set->blocks, cuts);
    for (int j = 0; j < s->searches; j++)
        REQUIRE(fgi_search_create(LABELS, cuts[j + 1] - cuts[j], D, p->rows + cuts[j], &index, &s->indexes[j], NULL) ==
            FGI_OK);
    return 0;
}

static void end(setup *s) {
    fgi_losses_free(s->losses);
    for (int j = 0; j < s->searches; j++) fgi_search_free(s->indexes[j]);
}

/* What single precision may make of a sum over all pairs of labels. */
static double rounding(const problem *p, int i) {
    double largest = 1;
    for (int k = 0; k < LABELS; k++) largest = fgi_larger(largest, fabs((double)p->scores[i * LABELS + k]));
    return 2 * LABELS * 1e-6 * largest;
}

/* The loss at all scores of sample i. */
static double truth(const problem *p, const fgi_loss_settings *set, int i) {
    double z[LABELS], value = NAN;
    for (int k = 0; k < LABELS; k++) z[k] = p->scores[i * LABELS + k];
    CHECK(fgi_loss_of_scores(set, LABELS, z, 2, p->positives + 2 * i, NULL, &value, NULL, NULL) == FGI_OK);
    return value;
}

static int claims_hold(problem *p, const fgi_loss_settings *set) {
    setup s;
    double values[N];
    int32_t claims[N], changed[N * LABELS];
    float back[N * D];
    if (make(&s, set, p)) return 1;
    for (int round = 0; round < 3; round++) {
        REQUIRE(fgi_losses_run(s.losses, &s.batch, values, claims, NULL) == FGI_OK);
        for (int i = 0; i < N; i++) {
            const double all = truth(p, set, i), room = rounding(p, i);
            if (claims[i] == FGI_VALUE_EXACT || claims[i] == FGI_VALUE_UPPER) REQUIRE(values[i] >= all - room);
            if (claims[i] == FGI_VALUE_EXACT || claims[i] == FGI_VALUE_LOWER) REQUIRE(values[i] <= all + room);
        }
        const int64_t n = fgi_losses_step(s.losses, &s.batch, p->rows, 0.1, back, changed);
        for (int j = 0; j < s.searches; j++) {
            int32_t cuts[BLOCKS + 1] = {0, D};
            if (s.searches > 1) fgi_loss_blocks(D, set->blocks, cuts);
            REQUIRE(fgi_search_refresh(s.indexes[j], n, changed, D, p->rows + cuts[j], NULL) == FGI_OK);
        }
        score(p);
    }
    end(&s);
    return 0;
}

static int every_way(fgi_rng *rng) {
    static const float scales[] = {1e-3f, 1, 30, 1e8f};
    for (int loss = 0; loss <= FGI_LOSS_TRIPLET; loss++)
        for (int way = 0; way < 64; way++) {
            problem p;
            fgi_loss_settings set;
            fgi_loss_defaults(&set);
            set.loss = loss;
            set.method = way % 4;
            set.want = way & 4 ? LABELS - 2 : 7;
            set.rest = way / 8 % 3;
            set.threads = 1 + (way & 1);
            set.blocks = BLOCKS;
            set.keep = 3;
            set.rounds = 1 + (way & 8) / 8;
            set.joined = !(way & 16);
            set.candidates = way & 32 ? 1 : 0;
            set.together = set.method == FGI_LOSS_DECOMPOSED && set.joined && set.candidates;
            draw(&p, rng, scales[way / 16]);
            if (claims_hold(&p, &set)) return 1;
        }
    return 0;
}

static int overflow_is_told(fgi_rng *rng) {
    for (int method = 0; method <= FGI_LOSS_DECOMPOSED; method++) {
        problem p;
        setup s;
        double values[N];
        int32_t claims[N];
        fgi_error err;
        fgi_loss_settings set;
        fgi_loss_defaults(&set);
        set.loss = FGI_LOSS_MARGIN;
        set.method = method;
        set.want = LABELS - 2;
        set.blocks = BLOCKS;
        draw(&p, rng, 1e30f);
        if (make(&s, &set, &p)) return 1;
        REQUIRE(fgi_losses_run(s.losses, &s.batch, values, claims, &err) == FGI_BAD_MODEL);
        end(&s);
    }
    return 0;
}

int main(void) {
    fgi_rng rng = {11};
    if (every_way(&rng) || overflow_is_told(&rng)) return 1;
    return failed();
}
