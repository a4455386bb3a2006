// Serves the outer state over one HTTPS connection: GET /state/manifest and GET /state/<version>/<chunk> with ETag,
// SHA-256 (Repr-Digest), Range and 412; and GET /v1/probe?bytes=N, noise to measure the link with. An HttpHandler of
// the PeerListener.
#pragma once

#include "net/recovery/outer_state.h"
#include "net/transport/http_session.h"
#include "net/transport/https_pace.h"
#include "net/transport/tls_connection.h"

namespace atl {

// Serves requests until the peer closes, takes longer than `pace` allows, or the session's abort is raised. `source`
// outlives the call.
void serve_state(TlsConnection connection, const OuterStateSource& source, HttpSession& session,
                 const HttpsPaceLimits& pace = {});

}  // namespace atl
