/*
 * fginfer_search.h - maximum inner-product search: the labels with the largest <row_k, x> - message(k).
 *
 * Rows are single precision and change. They lie in clusters around unit vectors; of every row two numbers are kept,
 * its extent along its cluster's direction c and away from it, w = a c + r with |r| = b, so that
 *
 *     <w, x>  <=  a <c, x> + b sqrt(|x|^2 - <c, x>^2)
 *
 * bounds a row in two multiplications, and the extremes of a and b bound a cluster. Exact search visits clusters in the
 * order of their bounds until no bound reaches the result; where these do not help (isotropic rows in many dimensions)
 * it goes over to a scan that many queries share: rows rounded to a byte a column, with a bound on what that leaves
 * out, so that inner products are computed for the few that may matter (see oracle/search_bytes.h). Approximate search
 * visits the clusters that promise most, or ranks all rows by codes of one bit a column, the first ones again by bytes,
 * and computes the inner products of the best: the former is faster where rows are clustered and queries lie near them,
 * the latter helps wherever rows lie.
 *
 * Inner products are sums in one fixed order (see base/kernels_dots.h), whichever way a row is reached, and ties go to
 * the lowest label: exact answers are those of a dense scan bit for bit, and no answer depends on the number of
 * threads. That is so at every scale: where products may underflow or overflow in single precision (longest row by
 * query below (d + 16) * 2^-110 or above 2^120, or one of them outside 2^-100 .. 2^100) bounds are left out, and every
 * row is computed. A sum that overflows both ways is not a number, and its row is not returned.
 */
#ifndef FGINFER_SEARCH_H
#define FGINFER_SEARCH_H
#include "fginfer_oracle.h"

typedef struct fgi_search fgi_search;

typedef struct fgi_search_settings {
    int32_t clusters; /* 0: six for every square root of the number of rows, with 40 rows each at least */
    int32_t rounds;   /* rounds of spherical k-means on a sample */
    int32_t parts;    /* parts that the columns are cut into, as equal as possible, 1 to 8: for fgi_search_parts */
    int32_t threads;
    uint64_t seed;
} fgi_search_settings;
void fgi_search_defaults(fgi_search_settings *settings); /* what NULL settings stand for */

/* Copies n rows of d finite numbers, `stride` apart. Takes O(n * clusters * d) for the assignment; all-zero rows are
 * fine. */
fgi_rc fgi_search_create(int64_t n, int32_t d, int64_t stride, const float *rows, const fgi_search_settings *settings,
    fgi_search **out, fgi_error *err);
void fgi_search_free(fgi_search *index);

/* Row labels[i] becomes rows + i * stride. O(d) a row; O(clusters * d) for one that has moved by more than a quarter of
 * its length since it was last assigned, which then gets the cluster that fits it now. When as many rows have done so
 * as there are, the clusters are made anew. A label may be listed twice: the last one counts. */
fgi_rc fgi_search_set_rows(
    fgi_search *index, int64_t n, const int32_t *labels, int64_t stride, const float *rows, fgi_error *err);
/* The same, with row labels[i] read from all + labels[i] * stride: for a matrix that was changed at some rows. */
fgi_rc fgi_search_refresh(
    fgi_search *index, int64_t n, const int32_t *labels, int64_t stride, const float *all, fgi_error *err);
/* Entry columns[i] of row labels[i] becomes values[i]; the same cost as for the row. */
fgi_rc fgi_search_set_entries(
    fgi_search *index, int64_t n, const int32_t *labels, const int32_t *columns, const float *values, fgi_error *err);
/* Clusters made anew from the rows as they are, for when many have moved. */
fgi_rc fgi_search_rebuild(fgi_search *index, fgi_error *err);
void fgi_search_row(const fgi_search *index, int32_t label, float *row); /* in range, or else */

typedef struct fgi_search_query {
    int64_t n; /* queries of d finite numbers, `stride` apart */
    int64_t stride;
    const float *x;
    int32_t want;   /* labels for each, 1 .. rows */
    int32_t probes; /* clusters to visit, more if these hold fewer than `want` rows; 0: exact; -1: the dense scan */
    /* Query i's message: labels ascending with finite values, from message_begin[i] on; NULL: none. */
    const int64_t *message_begin;
    const int32_t *message_labels;
    const double *message_values;
    /* Labels that query i may not return, ascending; NULL: none. */
    const int64_t *excluded_begin;
    const int32_t *excluded_labels;
    int32_t unordered; /* 1: the best `want` in any order, which saves sorting many */
    /* > 0: an approximate search that does not look at clusters (and `probes`): inner products with all rows are
     * guessed from one-bit codes, those with the most promising `candidates` (at least `want`, up to thrice as
     * many) from bytes, and of these the best are computed, a quarter more than `want`. The first such query makes the
     * codes, O(rows * d log d). */
    int32_t candidates;
} fgi_search_query;

/* labels and values: n x want, best first, -1 and -INFINITY where the labels run out. proven (n; NULL: not wanted): 1
 * where the answer is the exact one. One call at a time per index; updates must not run beside it. */
fgi_rc fgi_search_run(
    fgi_search *index, const fgi_search_query *q, int32_t *labels, double *values, uint8_t *proven, fgi_error *err);

/* Approximate, by parts of the columns (settings.parts), in one pass over their codes: the labels that these rank among
 * the first `want` (or `candidates`) in some part, parts * want at most (and no more than there are rows), those with
 * the largest sums; -1 behind the last. values: the inner product over each part, from bytes, so off by about a
 * hundredth of the row's length by the query's. labels: n x most, values: n x most x parts. No messages. */
fgi_rc fgi_search_parts(fgi_search *index, const fgi_search_query *q, int32_t *labels, float *values, fgi_error *err);
int32_t fgi_search_parts_of(const fgi_search *index);
int64_t fgi_search_parts_most(int32_t parts, int32_t want, int64_t rows);

/* An index under an inner-product source (fginfer_oracle.h), over its weights as they are now, in place of an older
 * one. It follows fgi_products_set and _add; whoever changes dense weights calls it again. probes: clusters visited, 0:
 * exact. The source then answers
 * FGI_BY_SEARCH from it, in double precision; what it cannot prove it scans, unless the question is approximate. */
fgi_rc fgi_products_index(fgi_products *p, const fgi_search_settings *settings, int32_t probes, fgi_error *err);

typedef struct fgi_search_info {
    int64_t rows, memory;
    int32_t d, clusters;
    int64_t queries;      /* since creation, as the following: */
    int64_t rows_touched; /* inner products computed, with centres; bounds are not counted */
    int64_t scanned;      /* exact queries that ended as a dense scan */
    int64_t rows_set;     /* updates, and among them those that found another cluster */
    int64_t rows_moved;
} fgi_search_info;
/* Sizes, and what was done so far. */
void fgi_search_info_get(const fgi_search *index, fgi_search_info *info);

#endif
