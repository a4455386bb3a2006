// Serves the outer state over one HTTPS connection: GET /state/manifest and GET /state/<version>/<chunk> with ETag,
// SHA-256 (Repr-Digest), Range and 412; and GET /v1/probe?bytes=N, noise to measure the link with. An HttpHandler of
// the PeerListener.
#pragma once

#include "net/base/abort_signal.h"
#include "net/recovery/outer_state.h"
#include "net/transport/tls_connection.h"

namespace atl {

// Serves requests until the peer closes, is silent for 30 s, or `abort` is raised. `source` outlives the call.
void serve_state(TlsConnection connection, const OuterStateSource& source, const AbortSignal& abort);

}  // namespace atl
