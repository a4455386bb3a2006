// What the hub knows of the links between islands: bandwidth and round-trip time of each direction as measured by
// probes and by the last all-reduce, edges found dead, and who can be dialled from outside. Old knowledge fades; what
// nobody measured is taken to be slow, so that a ring is not built on a guess. A hub that restarts knows nothing, and
// probes refill it. Times are passed in. Not thread-safe; owned by MeshLinks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/mesh/ring_order.h"
#include "net/wire/mesh.h"

namespace atl {

struct LinkMeasurement {
  IslandId from;
  IslandId to;
  double bytes_per_second = 0;
  double rtt_seconds = 0;  // 0: not measured
  // The sender waited for more to send: the link is at least so fast. So are all edges of a ring but its slowest.
  bool at_least = false;
  std::optional<double> loss = {};  // of what was sent, the part that had to be sent again; empty: not measured
};

struct KnownLink {
  double bytes_per_second = 0;
  double rtt_seconds = 0;  // 0: not known
  // The lesser of the last two that were measured, of late: a sender's own queue overflows now and then, and a link
  // that loses packets does so always. Empty: not known.
  std::optional<double> loss = {};
};

class LinkMatrix {
 public:
  // Half of what a measurement says is forgotten in favour of the next after so long; all of it, in any case, after
  // kForgottenAfter.
  static constexpr std::chrono::minutes kHalfLife{30};
  static constexpr std::chrono::hours kForgottenAfter{6};
  static constexpr std::chrono::minutes kDeadFor{10};         // then the edge may be tried again
  static constexpr std::chrono::seconds kProbeDeadAfter{10};  // what died just now is worth no probe
  static constexpr std::chrono::minutes kProbeAfter{20};      // a measurement this old is worth a probe
  static constexpr std::chrono::hours kLossForgottenAfter{1};
  static constexpr double kConservative = 0.5;  // of what the ends are known to do with others

  // Ignores what is not finite, not positive, or says nothing.
  void report(const LinkMeasurement& measurement, Clock::time_point now);
  // So much for long, and no more: what was measured before counts no more, and the next measurement alone.
  void carried(const IslandId& from, const IslandId& to, double bytes_per_second, Clock::time_point now);
  // For so long, or until a measurement; `firmly`: whatever its ends say to have measured.
  void declare_dead(const IslandId& a, const IslandId& b, Clock::time_point now, Clock::duration dead_for = kDeadFor,
                    bool firmly = false);
  void revive();  // what is dead may be tried again
  bool is_dead(const IslandId& a, const IslandId& b, Clock::time_point now) const {
    return death(a, b, now) != nullptr;
  }
  void set_dialable(const IslandId& island, bool dialable);  // taken to be until it is said not to be
  bool dialable(const IslandId& island) const { return !undialable_.contains(island); }
  void forget(const IslandId& island);

  // As last measured, and not forgotten yet; empty: nobody did.
  std::optional<KnownLink> known(const IslandId& from, const IslandId& to, Clock::time_point now) const;
  // Bytes went between them, whichever way, and the edge is not dead: two islands of which this is not so may never
  // have met.
  bool have_met(const IslandId& a, const IslandId& b, Clock::time_point now) const;
  // Whether anything that tells one order of these islands from another is known.
  bool knows(const std::vector<IslandId>& islands, Clock::time_point now) const;
  // Tokens are the caller's to fill in.
  RingQuestion question(const std::vector<IslandId>& islands, Clock::time_point now) const;
  // Edges worth a probe: of pairs that never met first, then those never measured this way, then the oldest, then dead
  // ones, which may have come back, but for those that came back and died again; no island twice, for probes of one
  // island would measure each other. (from, to).
  std::vector<std::pair<IslandId, IslandId>> worth_a_probe(const std::vector<IslandId>& islands,
                                                           Clock::time_point now) const;

 private:
  using Edge = std::pair<IslandId, IslandId>;
  struct Entry {
    double bytes_per_second = 0;
    double rtt_seconds = 0;
    bool at_least = false;
    Clock::time_point when;
    std::optional<double> loss, loss_before;  // the last two
    Clock::time_point loss_when;
  };

  struct Death {
    Clock::time_point when;
    Clock::duration lasts;
    bool firmly = false;
    bool over = false;   // it was measured since
    bool again = false;  // it had been measured after another death, not long before this one
  };

  const Entry* find(const IslandId& from, const IslandId& to, Clock::time_point now) const;
  const Death* death(const IslandId& a, const IslandId& b, Clock::time_point now) const;  // of a dead edge

  std::map<Edge, Entry> entries_;
  std::map<Edge, Death> deaths_;  // the last of each; by (smaller, larger) id
  std::set<IslandId> undialable_;
};

}  // namespace atl
