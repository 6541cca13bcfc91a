/* learn/extreme/hash_row.h - sparse rows that grow: (label, value) by hashing, one row a feature.
 * Made for v of pd-sparse, which is only ever asked for given labels and added to, never searched. */
#ifndef FGI_HASH_ROW_H
#define FGI_HASH_ROW_H
#include <stdint.h>

typedef struct hash_entry {
    int32_t label; /* -1: free */
    double value;
} hash_entry;

typedef struct hash_row {
    hash_entry *entries; /* 1 << bits of them; NULL while the row is empty */
    int32_t n;
    int8_t bits;
} hash_row;

/* 0 if there is no such entry. */
double hash_row_get(const hash_row *r, int32_t label);
/* The place of a label's value; NULL if there is no such entry. Valid until the next call. */
double *hash_row_find(const hash_row *r, int32_t label);
/* The place of a label's value, 0 at first; NULL: out of memory. Valid until the next call. */
double *hash_row_at(hash_row *r, int32_t label);
void hash_row_free(hash_row *r);

#endif
