/* learn/extreme/hash_row.c - see learn/extreme/hash_row.h. */
#include "learn/extreme/hash_row.h"
#include "base/util.h"

enum { FIRST_BITS = 2 }; /* four places at first: most rows of features have few labels */

static uint32_t place_of(const hash_row *r, int32_t label) {
    const uint32_t mask = (1u << r->bits) - 1;
    uint32_t place = ((uint32_t)label * 0x9E3779B1u) >> (32 - r->bits);
    while (r->entries[place].label != label && r->entries[place].label >= 0) place = (place + 1) & mask;
    return place;
}

double hash_row_get(const hash_row *r, int32_t label) {
    if (!r->entries) return 0.0;
    const hash_entry *e = &r->entries[place_of(r, label)];
    return e->label == label ? e->value : 0.0;
}

double *hash_row_find(const hash_row *r, int32_t label) {
    if (!r->entries) return NULL;
    hash_entry *e = &r->entries[place_of(r, label)];
    return e->label == label ? &e->value : NULL;
}

static int rehash(hash_row *r, int bits) {
    hash_row larger = {fgi_alloc((int64_t)1 << bits, sizeof(hash_entry)), r->n, (int8_t)bits};
    if (!larger.entries) return 0;
    for (int64_t k = 0; k < (int64_t)1 << bits; k++) larger.entries[k].label = -1;
    for (int64_t k = 0; r->entries && k < (int64_t)1 << r->bits; k++)
        if (r->entries[k].label >= 0) larger.entries[place_of(&larger, r->entries[k].label)] = r->entries[k];
    free(r->entries);
    *r = larger;
    return 1;
}

double *hash_row_at(hash_row *r, int32_t label) {
    if (!r->entries && !rehash(r, FIRST_BITS)) return NULL;
    hash_entry *e = &r->entries[place_of(r, label)];
    if (e->label == label) return &e->value;
    if (4 * ((int64_t)r->n + 1) > 3 * ((int64_t)1 << r->bits)) { /* three quarters full */
        if (!rehash(r, r->bits + 1)) return NULL;
        e = &r->entries[place_of(r, label)];
    }
    *e = (hash_entry){label, 0.0};
    r->n++;
    return &e->value;
}

void hash_row_free(hash_row *r) {
    free(r->entries);
    *r = (hash_row){0};
}
