/* learn/extreme/data.c - checks of compressed matrices, and their transposes in parts that fit into memory. */
#include "base/array.h"
#include "base/util.h"
#include "fginfer_extreme.h"

fgi_rc fgi_extreme_check(
    int64_t n_lines, int64_t width, const int64_t *begin, const int32_t *index, const float *value, fgi_error *err) {
    if (begin[0] != 0) return fgi_fail(err, FGI_BAD_ARGUMENT, 0, "the first line does not begin at 0");
    for (int64_t r = 0; r < n_lines; r++) {
        if (begin[r + 1] < begin[r] || begin[r + 1] > begin[n_lines]) /* else entries that are not there are read */
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, r, "line %lld ends before it begins, or after the last one", (long long)r);
        int64_t last = -1;
        for (int64_t p = begin[r]; p < begin[r + 1]; p++) {
            if (index[p] < 0 || index[p] >= width)
                return fgi_fail(err, FGI_BAD_ARGUMENT, r, "line %lld: index %d is not between 0 and %lld", (long long)r,
                    (int)index[p], (long long)width - 1);
            if (index[p] <= last)
                return fgi_fail(err, FGI_BAD_ARGUMENT, r, "line %lld: index %d is there twice, or out of order",
                    (long long)r, (int)index[p]);
            if (value && !isfinite(value[p]))
                return fgi_fail(err, FGI_BAD_ARGUMENT, r, "line %lld: the value of index %d is not finite",
                    (long long)r, (int)index[p]);
            last = index[p];
        }
    }
    return FGI_OK;
}

fgi_rc fgi_extreme_transpose(int64_t n_lines, const int64_t *line_begin, const int32_t *index, const float *value,
    int64_t first, int64_t last, const int64_t *begin, int32_t *out_index, float *out_value, fgi_error *err) {
    int64_t *next = fgi_copy(begin + first, last - first, sizeof *next);
    if (!next) return fgi_no_memory(err);
    for (int64_t r = 0; r < n_lines; r++) {
        const int64_t end = line_begin[r + 1];
        int64_t p = first > 0 ? fgi_lower_bound(index, line_begin[r], end, first) : line_begin[r];
        for (; p < end && index[p] < last; p++) {
            const int64_t place = next[index[p] - first]++ - begin[first];
            out_index[place] = (int32_t)r;
            if (value) out_value[place] = value[p];
        }
    }
    free(next);
    return FGI_OK;
}
