/* oracle_impl.h - what the oracle*.c files share and nobody else sees. */
#ifndef FGI_ORACLE_IMPL_H
#define FGI_ORACLE_IMPL_H
#include "oracle.h"

struct fgi_oracle_scratch {
    int32_t max_card, max_arity;
    double *dense;      /* max_arity blocks of max_card: messages spread out; all zero between calls */
    int64_t touched, calls;
};

#endif
