/* base/proof.h - a proof under way: bytes of steps, which the caller takes away every slice. docs/proofs.md has the
 * format. Memory that runs short ends the proof, and not the run. */
#ifndef FGI_PROOF_H
#define FGI_PROOF_H
#include <stdint.h>

typedef struct fgi_proof {
    uint8_t *bytes;
    int64_t n, capacity;
    double lead;    /* how far thresholds are above the incumbent, in the unit of the solver's model */
    double quantum; /* a power of two: messages are whole multiples of it, the smallest that is of use */
    double reach;   /* messages to a label are no lower together: a checker has no room for those of penalties */
    int exponent;   /* numbers of the caller are those of the solver times 2^exponent */
    int failed;     /* out of memory, or a number that does not fit: what follows is not kept */
} fgi_proof;

void fgi_proof_put(fgi_proof *p, const void *bytes, int64_t n);
void fgi_proof_rule(fgi_proof *p, char rule);
void fgi_proof_label(fgi_proof *p, int32_t label);
/* A count, the width of the largest number in bytes, and the numbers. */
void fgi_proof_numbers(fgi_proof *p, const int64_t *numbers, int64_t n, int is_signed);
/* Changes of messages, in quanta; `gaps`: how far the place of each is from that of the one before it. */
void fgi_proof_messages(fgi_proof *p, double quantum, const int64_t *gaps, const int64_t *amounts, int64_t n);
void fgi_proof_free(fgi_proof *p);

#endif
