/* learn/skipgram.c - see fginfer_skipgram.h. */
#include "base/util.h"
#include "fginfer_skipgram.h"

static float sigmoid(float z) { return z > 30 ? 1.0f : z < -30 ? 0.0f : 1.0f / (1.0f + expf(-z)); }

/* Eight sums side by side: as the compiler may not change their order, it is written so that they fit a register. */
static float product(const float *a, const float *b, int32_t d) {
    float s[8] = {0}, rest = 0;
    int32_t i = 0;
    for (; i + 8 <= d; i += 8)
        for (int l = 0; l < 8; l++) s[l] += a[i + l] * b[i + l];
    for (; i < d; i++) rest += a[i] * b[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])) + rest;
}

/* One word of the window, or one that was drawn: v moves at once, u when all are done. */
static void pull(float *v, const float *u, int32_t d, float target, float step, float *moved) {
    const float g = step * (target - sigmoid(product(u, v, d)));
    for (int32_t i = 0; i < d; i++) {
        moved[i] += g * v[i];
        v[i] += g * u[i];
    }
}

static void pair(const fgi_skipgram *w, int32_t x, int32_t y, float step, fgi_rng *rng) {
    float moved[1024];
    float *u = w->input + (int64_t)x * w->d;
    for (int32_t i = 0; i < w->d; i++) moved[i] = 0;
    pull(w->output + (int64_t)y * w->d, u, w->d, 1, step, moved);
    for (int32_t k = 0; k < w->negatives; k++) {
        const int32_t other = w->drawn[fgi_rng_below(rng, w->n_drawn)];
        if (other != y) pull(w->output + (int64_t)other * w->d, u, w->d, 0, step, moved);
    }
    for (int32_t i = 0; i < w->d; i++) u[i] += moved[i];
}

void fgi_skipgram_pass(const fgi_skipgram *w, int64_t begin, int64_t end, uint64_t *random) {
    fgi_rng rng = {*random};
    for (int64_t t = begin; t < end; t++) {
        const double left = 1 - (double)t / (double)w->n;
        const float step = (float)(w->step * (left > 1e-4 ? left : 1e-4));
        int64_t s = t;
        while (s > 0 && t - s < w->window && w->sentence[s - 1] == w->sentence[t]) s--;
        for (; s < w->n && s - t <= w->window && w->sentence[s] == w->sentence[t]; s++)
            if (s != t) pair(w, w->words[t], w->words[s], step, &rng);
    }
    *random = rng.state;
}
