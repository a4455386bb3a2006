// Throughput and round-trip time between two machines, as TCP and as TLS, in both directions. One end listens, the
// other dials; the protocol is in net/wire/link_bench.h. No run and no identity is needed: the listener makes a
// throw-away authority for the TLS part, and nothing but noise travels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/wire/link_bench.h"

namespace atl {

struct LinkTransfer {
  bool tls = false;
  bool from_here = false;  // the dialling end sent
  LinkReceiverReport received;
  LinkSenderReport sent;

  double bytes_per_second() const;  // after slow start
};

struct LinkBenchResult {
  double rtt_seconds = 0;  // least of the echoes: a byte there and back
  std::vector<LinkTransfer> transfers;
};

// Serves one client, whoever comes first, until it says that it is done or `deadline`. `listening` is told the port.
Status serve_link_bench(const Address& bind, Deadline deadline, const AbortSignal& interrupt,
                        const std::function<void(std::uint16_t port)>& listening);

// `each`: how long each of the four transfers sends.
Result<LinkBenchResult> run_link_bench(const Address& listener, std::chrono::milliseconds each,
                                       const AbortSignal& interrupt);

}  // namespace atl
