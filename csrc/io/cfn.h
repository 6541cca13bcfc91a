/* io/cfn.h - what the reader of .cfn (cfn_read.c) hands to what makes a model of it (cfn_model.c). */
#ifndef FGI_CFN_H
#define FGI_CFN_H
#include "io/collected.h"
#include "io/formulas.h"
#include "io/names.h"
#include "io/relaxed_json.h"

typedef enum phase {
    NETWORK,
    PROBLEM,
    PROBLEM_OPENS,
    NAME,
    NAME_ITSELF,
    MUST_BE,
    BOUND,
    PROBLEM_CLOSES,
    VARIABLES,
    VARIABLES_OPEN,
    VARIABLE,
    DOMAIN_SIZE,
    SIZE,
    LABEL,
    FUNCTIONS,
    FUNCTIONS_OPEN,
    FUNCTION,
    FUNCTION_OPENS,
    SCOPE,
    SCOPE_OPENS,
    SCOPE_VARIABLE,
    BODY,
    DEFAULT,
    COSTS,
    COSTS_THEMSELVES,
    LISTED,
    TUPLES,
    COSTS_ENDED,
    TYPE,
    PARAMETERS,
    PARAMETERS_OPEN,
    PARAMETER,
    PARAMETERS_CLOSE,
    FUNCTION_CLOSES,
    NETWORK_CLOSES,
    DONE
} phase;

enum { OF_VARIABLES = -1, OF_FUNCTIONS = -2 }; /* owners of names; else the labels of a variable */
/* A function with costs of its own. */
typedef struct function {
    int64_t begin, entries, dims, arity; /* in the values; in table_dims */
    double least, largest;               /* finite costs, in the end of those that do not forbid; 0: there are none */
    int32_t table;                       /* in the end */
    int32_t transposed;
    int twice; /* there is another one of its name */
} function;

/* A factor with the costs of a function, perhaps by name. */
typedef struct factor {
    int64_t scope, arity, line;
    int64_t name, name_length; /* in shared_names; -1: it has the costs itself */
    int32_t function;
} factor;

struct fgi_cfn {
    fgi_relaxed_json json;
    phase now;
    int again; /* the same token is for the next phase */
    int64_t most_variables;
    double allowed, taken, most; /* bytes of tables: without their entries being listed, so far, and of one table */
    double refused;
    int refused_listed;
    double bound; /* on costs; values are minus those when maximising */
    int maximise;
    fgi_names names;
    fgi_collected c;        /* costs are in its tables' values until all are known */
    int named_twice, small; /* the variable being read has the name of another; it has no size */
    fgi_array name;         /* char: name of the variable or function being read */
    fgi_array vars;         /* int32: variables of the function being read */
    int32_t *dims;
    int twice, has_default;
    double default_cost, states;
    int64_t entries, at, column;
    const fgi_formula *formula;
    double parameters[FGI_FORMULA_MOST];
    fgi_array functions, table_dims, factors, scopes, shared_names; /* function, int32, factor, int32, char */
};

/* Names become functions, once all are known. */
fgi_rc fgi_cfn_find_functions(fgi_cfn *r, fgi_error *err);
/* Costs become scores, tables and factors; *cutoff as in fgi_cfn_finish. */
fgi_rc fgi_cfn_build(fgi_cfn *r, double *cutoff, fgi_error *err);

#endif
