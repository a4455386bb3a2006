// Serves the outer state over one HTTPS connection: GET /state/manifest and GET /state/<version>/<chunk> with ETag,
// SHA-256 (Repr-Digest), Range and 412; the rounds that this island has logged, GET /rounds/<round>/manifest
// (round_manifest.h) and, in ranges, GET /rounds/<round>/<digest>/average; chunks of the run's data (chunk_answers.h);
// and GET /v1/probe?bytes=N, noise to measure the link with. An HttpHandler of the PeerListener.
#pragma once

#include "net/data/chunk_peers.h"
#include "net/recovery/outer_state.h"
#include "net/recovery/served_rounds.h"
#include "net/recovery/serving_pace.h"
#include "net/transport/http_session.h"
#include "net/transport/https_pace.h"
#include "net/transport/tls_connection.h"

namespace atl {

// What an island serves, and how fast; what it refers to outlives the connection.
struct ServedState {
  const OuterStateSource& state;
  ServedRounds* rounds = nullptr;  // null: it logs none
  ServingPace& pace;               // of all that it serves
  ServedChunks* chunks = nullptr;  // null: it gives none of the run's data
};

// Serves requests until the peer closes, takes longer than `pace` allows, or the session's abort is raised.
void serve_state(TlsConnection connection, const ServedState& served, HttpSession& session,
                 const HttpsPaceLimits& pace = {});

}  // namespace atl
