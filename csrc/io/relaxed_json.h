/*
 * io/relaxed_json.h - the tokens of toulbar2's .cfn, pushed in pieces of any size: words, quoted or not, and brackets,
 * of which both kinds are the same; blanks, commas and colons separate, a line that begins with # is a comment.
 */
#ifndef FGI_RELAXED_JSON_H
#define FGI_RELAXED_JSON_H
#include "io/words.h"
#include "base/array.h"

typedef enum fgi_token_kind { FGI_OPENING, FGI_CLOSING, FGI_WORD, FGI_END } fgi_token_kind;
typedef struct fgi_token {
    fgi_token_kind kind;
    int quoted;
    const char *text; /* "[", "]", the word, "end of file" */
    int64_t n;
} fgi_token;

typedef enum fgi_lexing { FGI_BETWEEN, FGI_IN_WORD, FGI_IN_QUOTES, FGI_IN_COMMENT } fgi_lexing;

typedef struct fgi_relaxed_json fgi_relaxed_json;
struct fgi_relaxed_json {
    fgi_words words; /* line, and how errors are told; words are found here otherwise */
    fgi_rc (*take)(fgi_relaxed_json *r, const fgi_token *t, fgi_error *err);
    /* Numbers in a row from *from on, as many as it likes, NULL: nothing is faster than word by word. */
    fgi_rc (*take_many)(fgi_relaxed_json *r, const char **from, const char *end, fgi_error *err);
    fgi_lexing now;
    int begun, line_begins;
    fgi_array text; /* a word that a piece cut, or the beginning of one in quotes */
};

/* Whether a word without quotes ends before this byte. */
int fgi_relaxed_json_ends(char c);
fgi_rc fgi_relaxed_json_feed(fgi_relaxed_json *r, const char *text, int64_t n, fgi_error *err);
fgi_rc fgi_relaxed_json_finish(fgi_relaxed_json *r, fgi_error *err); /* the last words, and the end */

#endif
