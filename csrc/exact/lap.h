/* exact/lap.h - the linear assignment problem: n rows, n columns, each row takes a column of its own at the least cost.
 *
 * Costs are whole numbers of at least 0; FGI_LAP_NEVER and what is above half of it are not taken. */
#ifndef FGI_LAP_H
#define FGI_LAP_H
#include <stdint.h>

#define FGI_LAP_NEVER 0x1000000000000000 /* 2^60: other costs are below 2^55, so that sums of a line do not overflow */

enum { FGI_LAP_MOST = 40 }; /* rows and columns: working memory is on the stack */

/* Returns the least cost and leaves in w what each entry costs beyond the prices of its row and column, which add up to
 * that cost, and in `column` the column of each row; -1: there is no assignment, and w is as it was but for prices of
 * rows or columns. */
int64_t fgi_lap_reduce(int64_t *w, int32_t n, int32_t *column);

static inline int fgi_lap_is_never(int64_t cost) { return cost >= FGI_LAP_NEVER / 2; }

#endif
