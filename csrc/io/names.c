/* io/names.c - see io/names.h. */
#include "io/names.h"
#include <string.h>
#include "base/util.h"

typedef struct entry {
    int64_t begin, length; /* in the text */
    uint64_t hash;
    int32_t owner, value;
} entry;

static uint64_t hash_of(int32_t owner, const char *name, int64_t n) {
    uint64_t h = 14695981039346656037u ^ (uint32_t)owner; /* FNV-1a, and a last mix for the low bits */
    for (int64_t k = 0; k < n; k++) h = (h ^ (unsigned char)name[k]) * 1099511628211u;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

static int64_t slot_of(const fgi_names *s, uint64_t hash, int32_t owner, const char *name, int64_t n) {
    int64_t at = (int64_t)(hash & (uint64_t)(s->n_slots - 1));
    for (; s->slots[at] >= 0; at = (at + 1) & (s->n_slots - 1)) {
        const entry *e = (const entry *)s->entries.at + s->slots[at];
        if (e->hash == hash && e->owner == owner && e->length == n &&
            (n == 0 || !memcmp((const char *)s->text.at + e->begin, name, (size_t)n)))
            break;
    }
    return at;
}

int32_t fgi_names_find(const fgi_names *s, int32_t owner, const char *name, int64_t n) {
    if (!s->n_slots) return -1;
    const int32_t found = s->slots[slot_of(s, hash_of(owner, name, n), owner, name, n)];
    return found < 0 ? -1 : ((const entry *)s->entries.at)[found].value;
}

static int grow_slots(fgi_names *s) {
    const int64_t n = s->n_slots ? 2 * s->n_slots : 256;
    int32_t *slots = fgi_alloc(n, sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xFF, (size_t)n * sizeof *slots);
    for (int64_t k = 0; k < s->entries.n; k++) {
        int64_t at = (int64_t)(((const entry *)s->entries.at)[k].hash & (uint64_t)(n - 1));
        while (slots[at] >= 0) at = (at + 1) & (n - 1);
        slots[at] = (int32_t)k;
    }
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return 1;
}

int fgi_names_add(fgi_names *s, int32_t owner, const char *name, int64_t n, int32_t value) {
    if (s->entries.n == INT32_MAX) return 0;
    if (2 * (s->entries.n + 1) > s->n_slots && !grow_slots(s)) return 0;
    if (!fgi_array_reserve(&s->text, n + 1, 1) || !fgi_array_reserve(&s->entries, 1, sizeof(entry))) return 0;
    const uint64_t hash = hash_of(owner, name, n);
    s->slots[slot_of(s, hash, owner, name, n)] = (int32_t)s->entries.n;
    ((entry *)s->entries.at)[s->entries.n++] = (entry){s->text.n, n, hash, owner, value};
    if (n) memcpy((char *)s->text.at + s->text.n, name, (size_t)n);
    s->text.n += n;
    return 1;
}

int64_t fgi_names_list(const fgi_names *s, int64_t *begin, int32_t *owner, int32_t *value) {
    for (int64_t k = 0; begin && k < s->entries.n; k++) {
        const entry *e = (const entry *)s->entries.at + k;
        begin[k] = e->begin;
        owner[k] = e->owner;
        value[k] = e->value;
    }
    if (begin) begin[s->entries.n] = s->text.n;
    return s->entries.n;
}

int64_t fgi_names_held(const fgi_names *s) {
    return s->text.capacity + (int64_t)sizeof(entry) * s->entries.capacity + 4 * s->n_slots;
}

void fgi_names_clear(fgi_names *s) {
    free(s->text.at);
    free(s->entries.at);
    free(s->slots);
    *s = (fgi_names){0};
}
