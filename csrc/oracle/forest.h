/* oracle/forest.h - a forest of tokens in elimination order, as max-product and sum-product walk over it. */
#ifndef FGI_FOREST_H
#define FGI_FOREST_H
#include <stdint.h>

/* One node of a forest in elimination order: every node comes before its parent. */
typedef struct fgi_forest_node {
    int32_t token;
    int32_t parent;     /* token; -1 for a root */
    int32_t edge;       /* index of the edge to the parent inside the example */
    int32_t transposed; /* the edge is (parent, token): its table is indexed [parent][token] */
} fgi_forest_node;

#endif
