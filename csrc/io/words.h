/*
 * io/words.h - the words of a text that arrives in pieces of any size and is never kept: what readers of words between
 * blanks share. A reader begins with an fgi_words, and takes one word after the other.
 */
#ifndef FGI_WORDS_H
#define FGI_WORDS_H
#include "fginfer.h"
#include "io/numbers.h"

typedef struct fgi_words fgi_words;

typedef struct fgi_words_ops {
    int64_t longest;    /* bytes of a word; of those over FGI_MAX_TOKEN, `take` is given the beginning */
    const char *format; /* "a UAI model" */
    fgi_rc (*take)(fgi_words *w, const char *word, int64_t n, fgi_error *err); /* the next word, whole */
    /* Takes from the text at *from what it can take faster than word by word, perhaps nothing, and moves *from behind
     * that: never past a word that may go on behind `end`. */
    fgi_rc (*take_many)(fgi_words *w, const char **from, const char *end, fgi_error *err);
    int64_t (*index)(const fgi_words *w); /* number of the factor being read, for errors; -1: none */
} fgi_words_ops;

struct fgi_words {
    const fgi_words_ops *ops;
    int failed;
    int64_t line;
    int line_ended;           /* the text so far ends with a line */
    char tail[FGI_MAX_TOKEN]; /* the word cut off by the end of a piece, or its beginning */
    int64_t tail_length;      /* length of that word */
};

static inline long long fgi_ll(int64_t x) { return x; } /* for %lld */

fgi_rc fgi_words_feed(fgi_words *w, const char *text, int64_t n, fgi_error *err);
/* The end of the text: takes the word it ends with, if it ends with one. */
fgi_rc fgi_words_finish(fgi_words *w, fgi_error *err);

/* Fails at a word: what of it can be printed goes into err->token. */
fgi_rc fgi_words_fail(fgi_words *w, fgi_error *err, const char *word, int64_t n, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;
/* Fails at the end of the file. */
fgi_rc fgi_words_fail_end(fgi_words *w, fgi_error *err, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
fgi_rc fgi_words_no_memory(fgi_words *w, fgi_error *err);

/* Takes a word of any length. */
fgi_rc fgi_words_take(fgi_words *w, const char *word, int64_t n, fgi_error *err);

/* Whether it is the word given in capitals, in capitals or not. */
int fgi_words_same(const char *word, int64_t n, const char *capitals);

/* Label counts as text, (2, 3), as many as there is room for. */
void fgi_words_list(char *text, size_t room, const int32_t *dims, int64_t n);

#endif
