/* io/words.c - see io/words.h. */
#include "io/words.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/assert.h"
#include "base/util.h"

static fgi_rc fail_list(
    fgi_words *w, fgi_error *err, const char *word, int64_t n, const char *format, va_list arguments) {
    w->failed = 1;
    if (!err) return FGI_BAD_FORMAT;
    vsnprintf(err->message, sizeof err->message, format, arguments);
    enum { ROOM = 60 }; /* characters of a word that an error shows */
    int64_t shown = n <= ROOM ? n : ROOM - 3;
    for (int64_t k = 0; k < shown; k++) err->token[k] = (unsigned char)word[k] >= ' ' && word[k] != 127 ? word[k] : '?';
    if (shown < n) {
        memcpy(err->token + shown, "...", 3);
        shown += 3;
    }
    err->token[shown] = '\0';
    err->line = w->line;
    err->index = w->ops->index(w);
    return FGI_BAD_FORMAT;
}

fgi_rc fgi_words_fail(fgi_words *w, fgi_error *err, const char *word, int64_t n, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fgi_rc rc = fail_list(w, err, word, n, format, arguments);
    va_end(arguments);
    return rc;
}

fgi_rc fgi_words_fail_end(fgi_words *w, fgi_error *err, const char *format, ...) {
    static const char end[] = "end of file";
    va_list arguments;
    va_start(arguments, format);
    fgi_rc rc = fail_list(w, err, end, (int64_t)sizeof end - 1, format, arguments);
    va_end(arguments);
    return rc;
}

fgi_rc fgi_words_no_memory(fgi_words *w, fgi_error *err) {
    w->failed = 1;
    return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory after line %lld of the file", fgi_ll(w->line));
}

int fgi_words_same(const char *word, int64_t n, const char *capitals) {
    if (n != (int64_t)strlen(capitals)) return 0;
    for (int64_t k = 0; k < n; k++)
        if ((word[k] & ~0x20) != capitals[k]) return 0;
    return 1;
}

/* The word goes on: its beginning is kept. */
static fgi_rc keep(fgi_words *w, const char *from, int64_t n, fgi_error *err) {
    const int64_t known = w->tail_length, room = FGI_MAX_TOKEN - known;
    fgi_assert(n >= 0 && known >= 0);
    if (room > 0) memcpy(w->tail + known, from, (size_t)(n < room ? n : room));
    w->tail_length = known + n;
    if (w->tail_length <= w->ops->longest) return FGI_OK;
    return fgi_words_fail(w, err, w->tail, w->tail_length < FGI_MAX_TOKEN ? w->tail_length : FGI_MAX_TOKEN,
        "a token of more than %lld bytes; this is not %s", fgi_ll(w->ops->longest), w->ops->format);
}

static fgi_rc take_tail(fgi_words *w, fgi_error *err) {
    const int64_t n = w->tail_length;
    w->tail_length = 0;
    return n ? w->ops->take(w, w->tail, n < FGI_MAX_TOKEN ? n : FGI_MAX_TOKEN, err) : FGI_OK;
}

fgi_rc fgi_words_take(fgi_words *w, const char *word, int64_t n, fgi_error *err) {
    if (n <= FGI_MAX_TOKEN) return w->ops->take(w, word, n, err);
    const fgi_rc rc = keep(w, word, n, err);
    return rc ? rc : take_tail(w, err);
}

static fgi_rc failed_before(fgi_error *err) {
    return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "this reader has failed before");
}

fgi_rc fgi_words_feed(fgi_words *w, const char *text, int64_t n, fgi_error *err) {
    const char *p = text, *end = text + n, *q;
    fgi_rc rc;
    if (w->failed) return failed_before(err);
    if (n) w->line_ended = text[n - 1] == '\n';
    if (w->tail_length) { /* the word that the last piece cut */
        for (q = p; q < end && !fgi_is_space(*q);) q++;
        if ((rc = keep(w, p, q - p, err))) return rc;
        if (q == end) return FGI_OK;
        if ((rc = take_tail(w, err))) return rc;
        p = q;
    }
    for (;;) {
        if ((rc = w->ops->take_many(w, &p, end, err))) return rc;
        for (; p < end && fgi_is_space(*p); p++) w->line += *p == '\n';
        for (q = p; q < end && !fgi_is_space(*q);) q++;
        if (q == end) return q > p ? keep(w, p, q - p, err) : FGI_OK;
        if ((rc = fgi_words_take(w, p, q - p, err))) return rc;
        p = q;
    }
}

fgi_rc fgi_words_finish(fgi_words *w, fgi_error *err) { return w->failed ? failed_before(err) : take_tail(w, err); }

void fgi_words_list(char *text, size_t room, const int32_t *dims, int64_t n) {
    size_t at = (size_t)snprintf(text, room, "(");
    for (int64_t k = 0; k < n && at + 20 < room; k++)
        at += (size_t)snprintf(text + at, room - at, k ? ", %d" : "%d", (int)dims[k]);
    snprintf(text + at, room - at, n == 1 ? ",)" : ")");
}
