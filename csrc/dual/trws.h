/* dual/trws.h - the two halves of method "trws": dual/trws.c for pairwise models, dual/srmp.c for any arity. */
#ifndef FGI_TRWS_H
#define FGI_TRWS_H
#include "solver.h"

extern const fgi_solver_ops fgi_srmp_ops;

#endif
