/* base/maxflow.h - maximum flow by augmenting paths from two search trees (Boykov, Kolmogorov 2004), in integers.
 *
 * Integer capacities make the end certain and the certificate exact: the flow found equals the cut found, whatever the
 * order of the augmentations. Callers scale their real numbers so that all terminal capacities sum to less than 2^60.
 */
#ifndef FGI_MAXFLOW_H
#define FGI_MAXFLOW_H
#include "base/util.h"

typedef struct fgi_maxflow fgi_maxflow;

fgi_maxflow *fgi_maxflow_create(int32_t n_nodes, int64_t n_edges); /* NULL when memory is short */
void fgi_maxflow_free(fgi_maxflow *g);
/* Adds capacity from the source to a node (positive) or from it to the sink (negative); opposite amounts are flow at
 * once. */
void fgi_maxflow_add_terminal(fgi_maxflow *g, int32_t node, int64_t capacity);
/* At most n_edges calls; both capacities >= 0. */
void fgi_maxflow_add_edge(fgi_maxflow *g, int32_t i, int32_t j, int64_t forward, int64_t backward);
/* Works for about `steps` arc visits or until the deadline; returns 1 when the flow is maximal. May be called again. */
int fgi_maxflow_run(fgi_maxflow *g, double steps, double deadline);
int64_t fgi_maxflow_value(const fgi_maxflow *g); /* value of the flow so far: a lower bound on every cut */
double fgi_maxflow_steps(const fgi_maxflow *g);
/* After the end: 1 where the source still reaches the node, -1 where the node still reaches the sink, 0 elsewhere. */
int fgi_maxflow_side(const fgi_maxflow *g, int32_t node);

#endif
