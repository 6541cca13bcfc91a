/* io/relaxed_json.c - see io/relaxed_json.h. */
#include "io/relaxed_json.h"
#include <string.h>
#include "base/util.h"

/* Bytes of a word: without a limit, a small compressed file could fill the memory with one. */
enum { LONGEST = 1 << 20 };
enum { IN_WORD, BLANK, OPENS, CLOSES, QUOTE };

static int kind_of(char c) {
    switch (c) {
    case ' ':
    case '\t':
    case '\n':
    case '\v':
    case '\f':
    case '\r':
    case ',':
    case ':': return BLANK;
    case 0x1C:
    case 0x1D:
    case 0x1E:
    case 0x1F: return BLANK;
    case '[':
    case '{': return OPENS;
    case ']':
    case '}': return CLOSES;
    case '"': return QUOTE;
    default: return IN_WORD;
    }
}

int fgi_relaxed_json_ends(char c) { return kind_of(c) != IN_WORD; }

static fgi_rc keep(fgi_relaxed_json *r, const char *from, int64_t n, fgi_error *err) {
    if (!fgi_array_reserve(&r->text, n + 1, 1)) return fgi_words_no_memory(&r->words, err);
    if (n) memcpy((char *)r->text.at + r->text.n, from, (size_t)n);
    r->text.n += n;
    if (r->text.n <= LONGEST) return FGI_OK;
    return fgi_words_fail(&r->words, err, r->text.at, r->text.n, "a token of more than %d bytes", (int)LONGEST);
}

static fgi_rc give(fgi_relaxed_json *r, const char *text, int64_t n, int quoted, fgi_error *err) {
    const fgi_token t = {FGI_WORD, quoted, text, n};
    return r->take(r, &t, err);
}

static fgi_rc give_kept(fgi_relaxed_json *r, int quoted, fgi_error *err) {
    const int64_t n = r->text.n;
    r->text.n = 0;
    r->now = FGI_BETWEEN;
    return give(r, n ? r->text.at : "", n, quoted, err);
}

static fgi_rc lex(fgi_relaxed_json *r, const char *p, const char *end, fgi_error *err);

/* A quote without a second one in its line is left out, and what follows it are words like others. */
static fgi_rc without_quote(fgi_relaxed_json *r, fgi_error *err) {
    fgi_array text = r->text;
    r->text = (fgi_array){0};
    r->now = FGI_BETWEEN;
    const char *begin = text.n ? text.at : "";
    fgi_rc rc = lex(r, begin, begin + text.n, err);
    if (!rc && r->now == FGI_IN_WORD) rc = give_kept(r, 0, err);
    free(text.at);
    return rc;
}

/* What goes on from the piece before. *from is left behind it; r->now says whether it goes on. */
static fgi_rc go_on(fgi_relaxed_json *r, const char **from, const char *end, fgi_error *err) {
    const char *p = *from;
    fgi_rc rc = FGI_OK;
    switch (r->now) {
    case FGI_IN_COMMENT:
        while (p < end && *p != '\n') p++;
        if (p < end) r->now = FGI_BETWEEN;
        break;
    case FGI_IN_QUOTES:
        while (p < end && *p != '"' && *p != '\n') p++;
        rc = keep(r, *from, p - *from, err);
        if (rc || p == end) break;
        rc = *p == '"' ? give_kept(r, 1, err) : without_quote(r, err);
        p += *p == '"';
        break;
    case FGI_IN_WORD:
        while (p < end && kind_of(*p) == IN_WORD) p++;
        rc = keep(r, *from, p - *from, err);
        if (!rc && p < end) rc = give_kept(r, 0, err);
        break;
    case FGI_BETWEEN: break;
    }
    *from = p;
    return rc;
}

static fgi_rc lex(fgi_relaxed_json *r, const char *p, const char *end, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    while (p < end && !rc) {
        if (r->now != FGI_BETWEEN) {
            rc = go_on(r, &p, end, err);
            continue;
        }
        const char *from = p;
        if (r->take_many && (rc = r->take_many(r, &p, end, err))) break;
        if (p > from) {
            r->line_begins = p[-1] == '\n';
            continue;
        }
        const int kind = kind_of(*p), comment = *p == '#' && r->line_begins;
        r->line_begins = *p == '\n';
        r->words.line += *p == '\n';
        if (comment) {
            r->now = FGI_IN_COMMENT;
        } else if (kind == OPENS || kind == CLOSES) {
            const fgi_token t = {kind == OPENS ? FGI_OPENING : FGI_CLOSING, 0, kind == OPENS ? "[" : "]", 1};
            rc = r->take(r, &t, err);
            p++;
        } else if (kind == QUOTE) {
            const char *q = ++p;
            while (q < end && *q != '"' && *q != '\n') q++;
            if (q < end && *q == '"') {
                rc = give(r, p, q - p, 1, err);
                p = q + 1;
            } else {
                r->now = FGI_IN_QUOTES;
            }
        } else if (kind == IN_WORD) {
            const char *q = p;
            while (q < end && kind_of(*q) == IN_WORD) q++;
            if (q < end) {
                rc = give(r, p, q - p, 0, err);
                p = q;
            } else {
                r->now = FGI_IN_WORD;
            }
        } else {
            p++;
        }
    }
    return rc;
}

fgi_rc fgi_relaxed_json_feed(fgi_relaxed_json *r, const char *text, int64_t n, fgi_error *err) {
    const char *end = text + n;
    if (r->words.failed) return fgi_words_finish(&r->words, err);
    if (r->begun < 3 && n) { /* a byte order mark, as some editors leave it */
        static const char mark[] = "\xEF\xBB\xBF";
        while (r->begun < 3 && text < end && *text == mark[r->begun]) text++, r->begun++;
        if (text == end && r->begun < 3) return FGI_OK;
        const int seen = r->begun < 3 ? r->begun : 0; /* the beginning of none */
        r->begun = 3;
        r->line_begins = 1;
        const fgi_rc rc = seen ? lex(r, mark, mark + seen, err) : FGI_OK;
        if (rc) return rc;
    }
    return lex(r, text, end, err);
}

fgi_rc fgi_relaxed_json_finish(fgi_relaxed_json *r, fgi_error *err) {
    static const fgi_token end = {FGI_END, 0, "end of file", 11};
    fgi_rc rc = r->words.failed ? fgi_words_finish(&r->words, err) : FGI_OK;
    if (!rc && r->now == FGI_IN_WORD) rc = give_kept(r, 0, err);
    if (!rc && r->now == FGI_IN_QUOTES) rc = without_quote(r, err);
    return rc ? rc : r->take(r, &end, err);
}
