/* base/proof.c - see base/proof.h. Numbers are little-endian, as on every machine that we build for. */
#include "base/proof.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

void fgi_proof_put(fgi_proof *p, const void *bytes, int64_t n) {
    if (p->failed || !fgi_grow(&p->bytes, &p->capacity, p->n + n, 1)) {
        p->failed = 1;
        return;
    }
    if (n > 0) memcpy(p->bytes + p->n, bytes, (size_t)n);
    p->n += n;
}

void fgi_proof_rule(fgi_proof *p, char rule) { fgi_proof_put(p, &rule, 1); }

void fgi_proof_label(fgi_proof *p, int32_t label) { fgi_proof_put(p, &label, sizeof label); }

static void put_number(uint8_t *to, int64_t x, int width) {
    const int8_t x1 = (int8_t)x;
    const int16_t x2 = (int16_t)x;
    const int32_t x4 = (int32_t)x;
    if (width == 1) memcpy(to, &x1, 1);
    else if (width == 2) memcpy(to, &x2, 2);
    else if (width == 4) memcpy(to, &x4, 4);
    else memcpy(to, &x, 8);
}

void fgi_proof_numbers(fgi_proof *p, const int64_t *numbers, int64_t n, int is_signed) {
    int64_t largest = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t size = numbers[k] < 0 ? -numbers[k] : is_signed ? numbers[k] : numbers[k] / 2;
        largest = size > largest ? size : largest;
    }
    const uint8_t width = largest <= INT8_MAX ? 1 : largest <= INT16_MAX ? 2 : largest <= INT32_MAX ? 4 : 8;
    fgi_proof_put(p, &n, sizeof n);
    fgi_proof_put(p, &width, 1);
    if (p->failed || !fgi_grow(&p->bytes, &p->capacity, p->n + n * width, 1)) {
        p->failed = 1;
        return;
    }
    for (int64_t k = 0; k < n; k++) put_number(p->bytes + p->n + k * width, numbers[k], width);
    p->n += n * width;
}

void fgi_proof_messages(fgi_proof *p, double quantum, const int64_t *gaps, const int64_t *amounts, int64_t n) {
    int exponent;
    frexp(quantum, &exponent);
    const int16_t shown = (int16_t)(exponent - 1 + p->exponent);
    fgi_proof_rule(p, 'M');
    fgi_proof_put(p, &shown, sizeof shown);
    fgi_proof_numbers(p, gaps, n, 0);
    fgi_proof_numbers(p, amounts, n, 1);
}

void fgi_proof_free(fgi_proof *p) {
    if (!p) return;
    free(p->bytes);
    free(p);
}
