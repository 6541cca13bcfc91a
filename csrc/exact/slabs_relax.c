/* exact/slabs_relax.c - see exact/slabs.h. */
#include "exact/slabs.h"
#include <string.h>
#include "model/draft.h"

/* Breadth first from `root`; queue takes the component, `layer` the distances plus `base`. Returns the component's
 * size. */
static int32_t search(const fgi_structure *s, int32_t root, int32_t base, int32_t *layer, int32_t *queue) {
    int32_t n = 0;
    layer[root] = base;
    queue[n++] = root;
    for (int32_t head = 0; head < n; head++) {
        const int32_t i = queue[head];
        for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
            const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
            for (int32_t l = 0; l < fgi_factor_arity(s, s->adj[k]); l++)
                if (layer[vars[l]] < 0) {
                    layer[vars[l]] = layer[i] + 1;
                    queue[n++] = vars[l];
                }
        }
    }
    return n;
}

fgi_rc fgi_layers_find(const fgi_model *m, fgi_layers *out) {
    const fgi_structure *s = m->s;
    int32_t *layer = fgi_alloc(s->n_vars, sizeof(int32_t)), *queue = fgi_alloc(s->n_vars, sizeof(int32_t)), base = 0;
    if (!layer || !queue) {
        free(layer);
        free(queue);
        return FGI_NO_MEMORY;
    }
    for (int64_t i = 0; i < s->n_vars; i++) layer[i] = -1;
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (layer[i] >= 0) continue;
        int32_t root = (int32_t)i, n = 0;
        for (int pass = 0; pass < 3; pass++) { /* twice to a farthest vertex, then the layers from there */
            n = search(s, root, base, layer, queue);
            root = queue[n - 1];
            if (pass == 2) break;
            for (int32_t k = 0; k < n; k++) layer[queue[k]] = -1;
        }
        base = layer[root] + 1;
    }
    free(queue);
    *out = (fgi_layers){base, layer};
    return FGI_OK;
}

static int32_t slab_of(int32_t layer, int32_t thickness) { return layer <= 0 ? 0 : (layer - 1) / thickness; }

/* The slab of a factor: that of its highest layer. */
static int32_t slab_of_factor(const fgi_structure *s, int64_t f, const int32_t *layer, int32_t thickness) {
    int32_t top = 0;
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
        if (layer[fgi_factor_vars(s, f)[k]] > top) top = layer[fgi_factor_vars(s, f)[k]];
    return slab_of(top, thickness);
}

void fgi_relaxed_free(fgi_relaxed *r) {
    fgi_model_free(r->model);
    free(r->first);
    free(r->second);
    memset(r, 0, sizeof *r);
}

/* Numbers the copies: `first` is the one in the variable's own slab, `second` the one in the slab above. */
static void number_copies(const fgi_structure *s, const int32_t *layer, int32_t thickness, fgi_relaxed *r) {
    for (int64_t i = 0; i < s->n_vars; i++) r->first[i] = r->second[i] = -1;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t slab = slab_of_factor(s, f, layer, thickness), *vars = fgi_factor_vars(s, f);
        for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
            *(slab == slab_of(layer[vars[k]], thickness) ? &r->first[vars[k]] : &r->second[vars[k]]) = 0;
    }
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (r->first[i] < 0 && r->second[i] < 0) r->first[i] = 0;
        if (r->first[i] >= 0) r->first[i] = r->n_copies++;
        if (r->second[i] >= 0) r->second[i] = r->n_copies++;
    }
}

fgi_rc fgi_relaxed_create(
    const fgi_model *m, const fgi_layers *layers, int32_t thickness, fgi_relaxed *r, fgi_error *err) {
    const fgi_structure *s = m->s;
    const int32_t *layer = layers->layer;
    memset(r, 0, sizeof *r);
    r->first = fgi_alloc(s->n_vars, sizeof(int32_t));
    r->second = fgi_alloc(s->n_vars, sizeof(int32_t));
    if (!r->first || !r->second) {
        fgi_relaxed_free(r);
        return fgi_no_memory(err);
    }
    number_copies(s, layer, thickness, r);
    int32_t *copies = fgi_alloc(s->max_arity, sizeof *copies); /* the variables of a copied factor */
    fgi_draft d;
    fgi_draft_begin(&d, m);
    for (int64_t i = 0; i < s->n_vars; i++) {
        const int both = r->first[i] >= 0 && r->second[i] >= 0;
        for (int c = 0; c < 1 + both; c++) {
            const int32_t copy = fgi_draft_variable(&d, s->cards[i], fgi_unary(m, i));
            for (int32_t a = 0; both && copy >= 0 && a < s->cards[i]; a++) fgi_draft_unary(&d, copy)[a] *= 0.5;
        }
    }
    for (int64_t f = 0; copies && f < s->n_factors; f++) {
        const int32_t slab = slab_of_factor(s, f, layer, thickness), *of = fgi_factor_vars(s, f);
        const int32_t arity = fgi_factor_arity(s, f);
        for (int32_t k = 0; k < arity; k++)
            copies[k] = slab == slab_of(layer[of[k]], thickness) ? r->first[of[k]] : r->second[of[k]];
        fgi_draft_factor(&d, fgi_draft_shared(&d, s->factor_table[f]), fgi_factor_weight(s, f),
            s->factor_transposed ? s->factor_transposed[f] : 0, arity, copies, NULL);
    }
    fgi_rc rc = copies ? fgi_draft_finish(&d, s->constant, &r->model, err) : fgi_no_memory(err);
    fgi_draft_free(&d);
    free(copies);
    if (rc) fgi_relaxed_free(r);
    return rc;
}
