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

static int64_t slot_of(const fgi_names *names, uint64_t hash, int32_t owner, const char *name, int64_t n) {
    int64_t at = (int64_t)(hash & (uint64_t)(names->n_slots - 1));
    for (; names->slots[at] >= 0; at = (at + 1) & (names->n_slots - 1)) {
        const entry *e = (const entry *)names->entries.at + names->slots[at];
        if (e->hash == hash && e->owner == owner && e->length == n &&
            (n == 0 || !memcmp((const char *)names->text.at + e->begin, name, (size_t)n)))
            break;
    }
    return at;
}

int32_t fgi_names_find(const fgi_names *names, int32_t owner, const char *name, int64_t n) {
    if (!names->n_slots) return -1;
    const int32_t found = names->slots[slot_of(names, hash_of(owner, name, n), owner, name, n)];
    return found < 0 ? -1 : ((const entry *)names->entries.at)[found].value;
}

static int grow_slots(fgi_names *names) {
    const int64_t n = names->n_slots ? 2 * names->n_slots : 256;
    int32_t *slots = fgi_alloc(n, sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xFF, (size_t)n * sizeof *slots);
    for (int64_t k = 0; k < names->entries.n; k++) {
        int64_t at = (int64_t)(((const entry *)names->entries.at)[k].hash & (uint64_t)(n - 1));
        while (slots[at] >= 0) at = (at + 1) & (n - 1);
        slots[at] = (int32_t)k;
    }
    free(names->slots);
    names->slots = slots;
    names->n_slots = n;
    return 1;
}

int fgi_names_add(fgi_names *names, int32_t owner, const char *name, int64_t n, int32_t value) {
    if (names->entries.n == INT32_MAX) return 0;
    if (2 * (names->entries.n + 1) > names->n_slots && !grow_slots(names)) return 0;
    if (!fgi_array_reserve(&names->text, n + 1, 1) || !fgi_array_reserve(&names->entries, 1, sizeof(entry))) return 0;
    const uint64_t hash = hash_of(owner, name, n);
    names->slots[slot_of(names, hash, owner, name, n)] = (int32_t)names->entries.n;
    ((entry *)names->entries.at)[names->entries.n++] = (entry){names->text.n, n, hash, owner, value};
    if (n) memcpy((char *)names->text.at + names->text.n, name, (size_t)n);
    names->text.n += n;
    return 1;
}

int64_t fgi_names_list(const fgi_names *names, int64_t *begin, int32_t *owner, int32_t *value) {
    for (int64_t k = 0; begin && k < names->entries.n; k++) {
        const entry *e = (const entry *)names->entries.at + k;
        begin[k] = e->begin;
        owner[k] = e->owner;
        value[k] = e->value;
    }
    if (begin) begin[names->entries.n] = names->text.n;
    return names->entries.n;
}

int64_t fgi_names_held(const fgi_names *names) {
    return names->text.capacity + (int64_t)sizeof(entry) * names->entries.capacity + 4 * names->n_slots;
}

void fgi_names_clear(fgi_names *names) {
    free(names->text.at);
    free(names->entries.at);
    free(names->slots);
    *names = (fgi_names){0};
}
