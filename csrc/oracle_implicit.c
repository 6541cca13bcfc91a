#include "oracle_impl.h"
fgi_rc fgi_implicit_argmax(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    w->touched += (int64_t)q->view.rows * q->view.cols;
    fgi_oracle_scan(q, out);
    return FGI_OK;
}
