/* exact/open_nodes.h - nodes of a search tree that wait for their turn: each is the decisions that lead to it. */
#ifndef FGI_OPEN_NODES_H
#define FGI_OPEN_NODES_H
#include <stdint.h>
#include "fginfer.h"

typedef enum fgi_decision_kind {
    FGI_IS = 0,     /* the variable has the label */
    FGI_IS_NOT = 1, /* it has not */
    FGI_UP_TO = 2,  /* the label or one before it */
    FGI_BEYOND = 3  /* one after it */
} fgi_decision_kind;

typedef struct fgi_decision {
    int32_t var;
    int32_t label;
    int32_t kind; /* fgi_decision_kind; kind ^ 1 is the other branch */
} fgi_decision;

typedef struct fgi_open_node {
    int64_t cost; /* a lower bound */
    int64_t number;
    int32_t depth;
    fgi_decision *path;
} fgi_open_node;

/* A heap: the lowest bound first, then the deepest, then the oldest. */
typedef struct fgi_open_nodes {
    fgi_open_node *heap;
    int64_t count, capacity, numbers;
    int64_t bytes;
} fgi_open_nodes;

/* `depth` decisions of `path` are copied, then the other branch of the last one is taken. */
fgi_rc fgi_open_nodes_add(fgi_open_nodes *o, int64_t cost, const fgi_decision *path, int32_t depth);
/* The best node; its path is the caller's to free. */
fgi_open_node fgi_open_nodes_take(fgi_open_nodes *o);
void fgi_open_nodes_free(fgi_open_nodes *o);

#endif
