/* exact/speak.h - what branch and bound says about its nodes, so that others can check them (docs/proofs.md).
 *
 * A node is said by how its messages have changed, rounded to multiples of a quantum that is as coarse as what is left
 * to close allows: the problem itself takes the rounded ones, so that its bound and its labels are those that a checker
 * finds, up to the rounding of doubles. Labels are removed there by their bounds under these messages, all at once, and
 * not in the middle of a sweep. */
#ifndef FGI_SPEAK_H
#define FGI_SPEAK_H
#include "base/proof.h"
#include "exact/node.h"

/* What has been said about one problem. */
typedef struct fgi_speech {
    double *message; /* as said; only those of labels that are left matter */
    int64_t *place;  /* per message: its number among those of the root; NULL: the same */
    uint8_t *told;   /* per label: said to be gone */
} fgi_speech;

typedef struct fgi_speaker {
    fgi_proof *proof;           /* NULL: nobody listens */
    const int64_t *label_begin; /* labels of the root model's variables */
    double *rows;               /* scratch: what one factor has at best, by label of its variables */
    double *line;               /* scratch: two lines of a table */
    double *fall;               /* scratch: per label */
    double *exact;              /* scratch: messages, the largest of a link 0, before they are rounded */
    int64_t *gaps, *amounts;    /* scratch: per message or label */
    uint8_t *moved;             /* scratch: per factor */
    const int32_t *labels; /* the labeling that the last threshold stands on, of n_vars variables; NULL: a cutoff */
    int64_t n_vars;
    double score, lead; /* its score, and how far the threshold is above it */
} fgi_speaker;

fgi_rc fgi_speaker_begin(fgi_speaker *s, fgi_proof *proof, const fgi_model *m);
void fgi_speaker_free(fgi_speaker *s);
/* The parent of a child in which `var` is fixed, and what was said about it; NULL: p is the root. */
fgi_rc fgi_speech_begin(fgi_speech *x, const fgi_node *p, const fgi_node *parent, const fgi_speech *of, int32_t var);
void fgi_speech_free(fgi_speech *x);
/* A new threshold: the labeling of the root model, and how far above its score; NULL: above a cutoff. */
void fgi_speak_threshold(fgi_speaker *s, const int32_t *labels, int64_t n_vars, double score, double lead);
/* Messages and labels that are gone; those that cannot beat the cutoff go, too (-INFINITY: none). Returns 0 when a
 * variable has none left. */
int fgi_speak_node(fgi_speaker *s, fgi_speech *x, fgi_node *p, double cutoff);
/* A node that is to be closed: none of its labelings is above the cutoff. */
void fgi_speak_close(fgi_speaker *s, fgi_speech *x, fgi_node *p, double cutoff);
/* The child with this label is next. */
void fgi_speak_branch(fgi_speaker *s, fgi_speech *x, const fgi_node *p, int32_t var, int32_t a);
void fgi_speak_end(fgi_speaker *s);

#endif
