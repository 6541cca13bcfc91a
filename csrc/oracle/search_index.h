/* oracle/search_index.h - what the search_*.c files share; the promises are in fginfer_search.h. */
#ifndef FGI_SEARCH_INDEX_H
#define FGI_SEARCH_INDEX_H
#include "base/kernels.h"
#include "base/pool.h"
#include "fginfer_search.h"
#include "oracle/search_bytes.h"
#include "oracle/search_codes.h"
#include "oracle/top.h"

/* Rows of one cluster, side by side. w = along * direction + rest, |rest| = away. */
typedef struct fgi_cell {
    int32_t n, capacity;
    float *rows; /* capacity x stride, padded with zeros */
    int32_t *labels;
    float *along, *away;
    /* Bounds over the rows; removals leave them too wide until `removed` makes them worth a pass. */
    float along_min, along_max, away_max;
    int32_t removed;
    double along_sum, away_sum;
} fgi_cell;

enum {
    FGI_SEARCH_GROUP = 16, /* queries that share a dense scan: a cluster's rows are read from memory once */
    FGI_SEARCH_SIEVE = 64  /* words of a query's sieve, see search_query.c */
};

/* Working memory of one thread. */
typedef struct fgi_search_scratch {
    float *x;           /* a group of queries, padded */
    float *scores[4];   /* per row of a cell, for four queries */
    float *centre[4];   /* per direction */
    float *bound, *key; /* per cluster */
    int32_t *heap;      /* clusters by descending key */
    uint8_t *visited;
    fgi_top top[FGI_SEARCH_GROUP];
    uint64_t *sieve; /* a group's */
    int8_t *whole;   /* a group of queries in whole numbers */
    int32_t *chosen; /* candidates, and what bytes make of them */
    float *guesses;
    uint32_t *keys; /* sort keys of the guesses, see base/cutoff.h */
    float *parts;   /* the guesses by parts of the columns */
    int64_t touched;
} fgi_search_scratch;

/* What queries need to know of every cell, side by side. An empty one has -INFINITY for `away_max` and `promise`. */
typedef struct fgi_cell_views {
    float *along_min, *along_max, *away_max;
    float *along, *promise; /* means; promise = mean away times the expected largest cosine, see search_query.c */
} fgi_cell_views;

struct fgi_search {
    int64_t rows, stride;
    int32_t d, clusters, threads;
    fgi_search_settings settings;
    const fgi_kernels *kernels;
    fgi_pool *pool;
    float *directions; /* clusters x stride, of unit length */
    fgi_cell *cells;
    fgi_cell_views views;
    int32_t *home, *slot;        /* per label: its cluster, and where in it */
    float *drift;                /* per label: how far it has moved since it was last assigned */
    float *placed;               /* one row, padded */
    double longest;              /* no row is longer */
    double rounding;             /* an inner product is off by at most rounding * |row| * |x| */
    int filling;                 /* a build is under way: views are made at its end */
    int32_t largest_cell;        /* capacity of the largest */
    int32_t hopeless;            /* how many of the last 64 exact queries ended as a scan */
    fgi_search_scratch *scratch; /* one per thread */
    fgi_codes *codes;            /* codes of all rows; NULL until a query wants them */
    fgi_bytes *bytes;            /* likewise */
    int64_t chosen_room;
    int64_t far; /* rows that have looked for another cluster since the last build */
    int64_t queries, touched, scanned, rows_set, rows_moved;
};

/* Clusters from the rows in `all` (rows x stride, padded); the cells are filled. */
fgi_rc fgi_search_cluster(fgi_search *index, const float *all, fgi_error *err);
/* Appends a row (padded) to a cell; 0 when out of memory. */
int fgi_cell_push(fgi_search *index, int32_t cell, int32_t label, const float *row);
void fgi_cell_remove(fgi_search *index, int32_t cell, int32_t at);
void fgi_cell_publish(fgi_search *index, int32_t cell); /* its view */
void fgi_cells_free(fgi_search *index);
/* Scratch that fits the cells as they are; 0 when out of memory. */
int fgi_search_scratch_fit(fgi_search *index);

/* The mean of the rows, to be freed; NULL when out of memory. */
double *fgi_search_mean(const fgi_search *index);

/* Whether bounds hold for a query of this length. All of them allow for errors relative to longest * |x|. Within these
 * limits that covers what single precision loses when it underflows, 2^-149 a column, in products and in what is kept
 * of rows and queries; and neither inner products nor bounds, up to 2^14 times as large in the units of bytes,
 * overflow. Where they do not hold, only a scan of all rows is exact. */
static inline int fgi_search_bounded(const fgi_search *index, double length) {
    const double product = index->longest * length;
    return index->longest > 0x1p-100 && index->longest < 0x1p100 && length > 0x1p-100 && length < 0x1p100 &&
        product > (index->d + 16.0) * 0x1p-110 && product < 0x1p120;
}

static inline const float *fgi_search_at(const fgi_search *index, int32_t label) {
    return index->cells[index->home[label]].rows + (int64_t)index->slot[label] * index->stride;
}

#endif
