/* methods.c - the table of methods: the one place that knows them all. */
#include "solver.h"

extern const fgi_solver_ops fgi_icm_ops, fgi_gdmm_ops, fgi_trws_ops, fgi_bp_ops, fgi_mplp_ops, fgi_ad3_ops,
    fgi_psdd_ops, fgi_search_ops, fgi_bnb_ops, fgi_slabs_ops, fgi_clauses_ops, fgi_edac_ops, fgi_dolls_ops,
    fgi_cycles_ops;

static const fgi_solver_ops *const methods[] = {
    [FGI_ICM] = &fgi_icm_ops,
    [FGI_SEARCH] = &fgi_search_ops,
    [FGI_TRWS] = &fgi_trws_ops,
    [FGI_BP] = &fgi_bp_ops,
    [FGI_MPLP] = &fgi_mplp_ops,
    [FGI_AD3] = &fgi_ad3_ops,
    [FGI_PSDD] = &fgi_psdd_ops,
    [FGI_GDMM] = &fgi_gdmm_ops,
    [FGI_BNB] = &fgi_bnb_ops,
    [FGI_SLABS] = &fgi_slabs_ops,
    [FGI_CLAUSES] = &fgi_clauses_ops,
    [FGI_EDAC] = &fgi_edac_ops,
    [FGI_DOLLS] = &fgi_dolls_ops,
    [FGI_CYCLES] = &fgi_cycles_ops,
};
enum { N_METHODS = sizeof methods / sizeof methods[0] };

const fgi_solver_ops *fgi_method_ops(int32_t method) {
    return method >= 0 && method < (int32_t)N_METHODS ? methods[method] : NULL;
}

const char *fgi_method_name(int32_t method) {
    const fgi_solver_ops *ops = fgi_method_ops(method);
    return ops ? ops->name : NULL;
}
