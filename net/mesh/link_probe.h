// Measures the link from a peer to this island when the hub asks: GET /v1/probe?bytes=N from the peer's HTTPS side,
// whose bytes are noise. The rate is that of the later half, after slow start; the round trip that of a one-byte probe
// on a connection that stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/download_pace.h"
#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/tls/identity.h"

namespace atl {

inline constexpr std::uint64_t kMaxProbeBytes = 16u << 20;
inline constexpr std::string_view kProbeTarget = "/v1/probe?bytes=";

struct LinkProbe {  // from a peer to this island
  IslandId peer;
  Address address;
  std::uint64_t bytes = 0;  // at most kMaxProbeBytes
};

struct MeasuredLink {
  IslandId peer;
  double bytes_per_second = 0;
  double rtt_seconds = 0;
};

// `download`: what the owner lets the island receive, which is then what is measured; null: no limit.
Result<MeasuredLink> measure_link(const Identity& self, const LinkProbe& probe, Deadline deadline,
                                  const AbortSignal& abort, DownloadPace* download = nullptr);

// Probes one after the other, on a thread of its own. A probe that fails is not reported: the hub asks again.
class LinkProber {
 public:
  // `self`, `download` (see measure_link) and what `report` uses outlive this. `report` is called on the prober's
  // thread.
  LinkProber(const Identity& self, std::function<void(const MeasuredLink&)> report, DownloadPace* download = nullptr);
  ~LinkProber();  // ends the probe under way

  // Any thread:
  void probe(LinkProbe probe);  // forgotten while several wait
  void stop_probing();          // ends the probe under way, forgets those that wait

 private:
  struct Wish {
    LinkProbe probe;
    std::uint64_t generation = 0;  // how often stop_probing was called before
  };
  void run();
  // The signal that ends the probe; none when it is not wished for any more.
  std::shared_ptr<AbortSignal> begin(const Wish& wish);

  const Identity& self_;
  const std::function<void(const MeasuredLink&)> report_;
  DownloadPace* const download_;
  Mailbox<Wish> waiting_{4};
  AbortSignal stop_;
  Mutex mutex_;
  std::uint64_t generation_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<AbortSignal> current_ ATOLL_GUARDED_BY(mutex_);  // of the probe under way, which the caller may end
  std::jthread thread_;                                            // last
};

}  // namespace atl
