/* oracle/search_parts.c - queries of a search index by parts of its columns: one pass over the codes of all parts finds
 * the rows that are among the first in some part, and bytes say what each part makes of all of them. */
#include <string.h>
#include "base/cutoff.h"
#include "base/util.h"
#include "oracle/search_query.h"

typedef struct parted {
    fgi_search_batch batch;
    int32_t most; /* labels of a query */
    int32_t *labels;
    float *values;
} parted;

/* What bytes make of the rows in w->chosen, part by part: to[k * parts + part]. w->whole: the query, then a part of
 * it. */
static void part_guesses(const fgi_search *index, const float *x, int64_t n, fgi_search_scratch *w, float *to) {
    const fgi_bytes *b = index->bytes;
    const fgi_codes *c = index->codes;
    const fgi_byte_x whole = fgi_bytes_query(b, x, w->whole);
    int8_t *z = w->whole + b->stride;
    for (int32_t part = 0; part < c->parts; part++) {
        const int32_t begin = c->begin[part], end = c->begin[part + 1], from = begin / 32 * 32;
        const fgi_byte_scan scan = {
            .codes = b->codes + from, .stride = b->stride, .width = (end - from + 31) / 32 * 32, .factor = b->factor};
        fgi_byte_query q = {.x = z};
        double shift = 0;
        memset(z, 0, (size_t)scan.width);
        for (int32_t k = begin; k < end; k++) {
            z[k - from] = w->whole[k];
            q.offset += FGI_BYTE_SHIFT * w->whole[k];
            shift += b->mean[k] * x[k];
        }
        index->kernels->guess_bytes(&scan, &q, n, w->chosen, w->guesses);
        for (int64_t k = 0; k < n; k++) to[k * c->parts + part] = (float)(shift + whole.scale * w->guesses[k]);
    }
}

/* The n labels in w->chosen and their values in `to` become those with the largest sums, `most` of them. */
static int64_t cut_back(const fgi_codes *c, int64_t n, int32_t most, fgi_search_scratch *w, float *to) {
    const int32_t parts = c->parts;
    if (n <= most) return n;
    for (int64_t k = 0; k < n; k++) {
        w->guesses[k] = 0;
        for (int32_t part = 0; part < parts; part++) w->guesses[k] += to[k * parts + part];
        w->keys[k] = fgi_cutoff_key(w->guesses[k]);
    }
    fgi_cutoff cutoff = fgi_cutoff_of(w->keys, n, most);
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        w->chosen[kept] = w->chosen[k];
        for (int32_t part = 0; part < parts; part++) to[kept * parts + part] = to[k * parts + part];
        kept += fgi_cutoff_takes(&cutoff, w->guesses[k]);
    }
    return kept;
}

static void search_parts(void *context, int64_t begin, int64_t end, int worker) {
    const parted *p = context;
    const fgi_search_batch *b = &p->batch;
    const fgi_search *index = b->s;
    fgi_search_scratch *w = &index->scratch[worker];
    fgi_code_group g;
    for (int64_t i = begin; i < end; i += FGI_CODE_QUERIES) {
        fgi_search_scan_group(b, i, end, worker, &g);
        for (int j = 0; j < g.n; j++) {
            const fgi_one_query *o = &g.query[j];
            const fgi_code_list *found = &g.found[j];
            int32_t *labels = p->labels + (i + j) * p->most;
            int64_t many = 0;
            for (int64_t k = 0; k < found->n; k++)
                if (!fgi_search_excludes(o, found->hits[k].row)) w->chosen[many++] = found->hits[k].row;
            part_guesses(index, o->x, many, w, w->parts);
            many = cut_back(index->codes, many, p->most, w, w->parts);
            memcpy(labels, w->chosen, (size_t)many * sizeof *labels);
            memcpy(p->values + (i + j) * p->most * index->codes->parts, w->parts,
                (size_t)(many * index->codes->parts) * sizeof *w->parts);
            for (int64_t k = many; k < p->most; k++) labels[k] = -1;
        }
    }
}

fgi_rc fgi_search_parts(fgi_search *index, const fgi_search_query *q, int32_t *labels, float *values, fgi_error *err) {
    fgi_rc rc = fgi_search_check(index, q, err);
    if (rc) return rc;
    if (q->message_begin) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a search by parts takes no messages");
    parted p = {.batch = {.s = index, .q = q},
        .most = (int32_t)fgi_search_parts_most(index->settings.parts, q->want, index->rows),
        .labels = labels,
        .values = values};
    if (!fgi_search_reserve_codes(&p.batch, p.most)) return fgi_no_memory(err);
    fgi_pool_run(index->pool, q->n, FGI_CODE_QUERIES, search_parts, &p);
    index->queries += q->n;
    return FGI_OK;
}

int32_t fgi_search_parts_of(const fgi_search *index) { return index->settings.parts; }

int64_t fgi_search_parts_most(int32_t parts, int32_t want, int64_t rows) {
    const int64_t all = (int64_t)parts * want;
    return all < rows ? all : rows;
}
