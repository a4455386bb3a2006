// Measures the way to the run's hub and islands. A member asks the hub over HTTPS (net/wire/check.h); who only holds an
// invite may knock, no more. Blocks, within deadlines; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/check/facts.h"
#include "net/tls/identity.h"
#include "net/wire/check.h"

namespace atl {

struct NetworkProbe {
  std::optional<Identity> identity;  // of a member; empty: before joining
  std::vector<Address> hub;          // tried in turn
  bool full = false;
  Address bind{"0.0.0.0", 0};    // the island's inbound port, where the hub is to dial back
  bool trainer_listens = false;  // the trainer serves that port now
};

// What the run asks, from the hub that answers first; `reached` is its address.
Result<CheckAbout> ask_about_run(const NetworkProbe& probe, const AbortSignal& abort, Address& reached);

// `about`: what ask_about_run brought, or its error.
NetFacts probe_network(const NetworkProbe& probe, const Result<CheckAbout>& about, const Address& reached,
                       const AbortSignal& abort);

// Round trip of a TCP connection's opening, the least of three. kUnreachable, kTimeout, kAborted.
Result<double> connect_round_trip(const Address& address, const AbortSignal& abort);

}  // namespace atl
