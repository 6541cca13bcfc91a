/* oracle/search_bytes.c - see oracle/search_bytes.h. */
#include "oracle/search_bytes.h"
#include <float.h>
#include <string.h>
#include "base/util.h"

enum {
    ROW = 127,  /* the largest code of a row */
    QUERY = 63, /* the largest code of a query: two products fit into 16 bits */
    LANES = 4   /* sums side by side: one would wait for itself */
};

/* Single precision is rounded to nearest: a little more than the number is never less than it. */
static float upper(double x) { return (float)(x * (1 + 0x1p-20) + FLT_MIN); }

/* To the nearest whole number, for small ones; nearbyint is a call where the processor may have no rounding. */
static double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

static int64_t blocks_of(int64_t rows) { return (rows + FGI_BYTE_BLOCK - 1) / FGI_BYTE_BLOCK; }

void fgi_bytes_free(fgi_bytes *b) {
    if (!b) return;
    free(b->mean);
    free(b->codes);
    free(b->factor);
    free(b->error);
    free(b->length);
    free(b->errors);
    free(b->lengths);
    free(b);
}

fgi_bytes *fgi_bytes_create(int64_t rows, int32_t d, double *mean) {
    const int64_t blocks = blocks_of(rows), stride = ((int64_t)d + 31) / 32 * 32;
    int64_t size;
    fgi_bytes *b = fgi_calloc(1, sizeof *b);
    if (!b || !fgi_mul(blocks * FGI_BYTE_BLOCK, stride, &size)) {
        free(b);
        free(mean);
        return NULL;
    }
    *b = (fgi_bytes){.rows = rows, .stride = stride, .d = d, .mean = mean};
    b->kernels = fgi_kernels_get();
    b->codes = fgi_alloc(size, 1);
    b->factor = fgi_calloc(blocks * FGI_BYTE_BLOCK, sizeof *b->factor);
    b->error = fgi_calloc(blocks * FGI_BYTE_BLOCK, sizeof *b->error);
    b->length = fgi_calloc(blocks * FGI_BYTE_BLOCK, sizeof *b->length);
    b->errors = fgi_calloc(blocks, sizeof *b->errors);
    b->lengths = fgi_calloc(blocks, sizeof *b->lengths);
    if (!b->mean || !b->codes || !b->factor || !b->error || !b->length || !b->errors || !b->lengths) {
        fgi_bytes_free(b);
        return NULL;
    }
    memset(b->codes, FGI_BYTE_SHIFT, (size_t)size);
    return b;
}

int64_t fgi_bytes_memory(const fgi_bytes *b) {
    const int64_t blocks = blocks_of(b->rows);
    return blocks * (FGI_BYTE_BLOCK * (b->stride + 3 * (int64_t)sizeof(float)) + 2 * (int64_t)sizeof(float)) +
        b->d * (int64_t)sizeof(double);
}

static void measure_block(fgi_bytes *b, int64_t block) {
    float error = 0, length = 0;
    for (int64_t r = block * FGI_BYTE_BLOCK; r < (block + 1) * FGI_BYTE_BLOCK; r++) {
        error = b->error[r] > error ? b->error[r] : error;
        length = b->length[r] > length ? b->length[r] : length;
    }
    b->errors[block] = error;
    b->lengths[block] = length;
}

void fgi_bytes_set(fgi_bytes *b, int32_t label, const float *row) {
    uint8_t *code = b->codes + label * b->stride;
    double largest[LANES] = {0}, error[LANES] = {0}, length[LANES] = {0};
    for (int32_t k = 0; k < b->d; k++) {
        double *most = &largest[k % LANES];
        *most = fgi_larger(*most, fabs(row[k] - b->mean[k]));
    }
    for (int lane = 1; lane < LANES; lane++) largest[0] = fgi_larger(largest[0], largest[lane]);
    const float factor = (float)fgi_smaller(largest[0] / ROW, FLT_MAX);
    const double inverse = factor > 0 ? 1 / (double)factor : 0;
    for (int32_t k = 0; k < b->d; k++) {
        const double w = row[k] - b->mean[k];
        const double c = nearest(fgi_larger(-ROW, fgi_smaller(ROW, w * inverse)));
        const double rest = w - factor * c;
        code[k] = (uint8_t)(FGI_BYTE_SHIFT + (int)c);
        error[k % LANES] += rest * rest;
        length[k % LANES] += c * c;
    }
    for (int lane = 1; lane < LANES; lane++) {
        error[0] += error[lane];
        length[0] += length[lane];
    }
    b->factor[label] = factor;
    b->error[label] = upper(sqrt(error[0]));
    b->length[label] = upper(factor * sqrt(length[0]));
    measure_block(b, label / FGI_BYTE_BLOCK);
}

fgi_byte_x fgi_bytes_query(const fgi_bytes *b, const float *x, int8_t *z) {
    double largest = 0, square = 0, error = 0;
    fgi_byte_x out = {0};
    for (int32_t k = 0; k < b->d; k++) {
        largest = fgi_larger(largest, fabs((double)x[k]));
        square += (double)x[k] * x[k];
        out.shift += b->mean[k] * x[k];
    }
    out.length = sqrt(square);
    out.scale = largest > 0 ? largest / QUERY : 1;
    memset(z, 0, (size_t)b->stride);
    for (int32_t k = 0; k < b->d; k++) {
        z[k] = (int8_t)nearest(x[k] / out.scale);
        const double rest = x[k] - out.scale * z[k];
        error += rest * rest;
        out.offset += FGI_BYTE_SHIFT * z[k];
    }
    out.error = sqrt(error) * (1 + 1e-6);
    return out;
}

void fgi_bytes_floor(const fgi_byte_x *x, double floor, double slack, fgi_byte_query *q) {
    const double low = (floor - x->shift) - slack, unit = 1 / x->scale;
    /* rounded downwards, and the sums that the kernel makes of these by more than its roundings */
    q->floor = (float)fgi_larger(-FLT_MAX, low * unit - 4e-7 * fabs(low * unit));
    q->by_error = upper(x->length * unit);
    q->by_length = upper(x->error * unit);
}
