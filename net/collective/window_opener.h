// Opens the windows of connections that were dialled ahead, by padding that fills their link: BBR needs some eight
// round trips for that. A link that is known is held to what it carries. One that is not is filled as BBR likes, until
// that would leave its start, too: an EdgePacer would take the rates of windows that open for the link's. Never waits.
// Owned and used by one thread at a time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/collective/connection_pool.h"
#include "net/collective/edge_pacing.h"

namespace atl {

// One that the peer has answered, and its place in a pool.
struct DialledAhead {
  FragmentId fragment;
  EdgeEnd end;
  Address address;
  TlsConnection connection;
};

class WindowOpener {
 public:
  static constexpr std::chrono::seconds kLongest{10};  // far more than any link needs

  // At least one connection. To each peer at most so many bytes go, and not more than its share of the link is known to
  // have under way twice. References outlive this.
  WindowOpener(std::vector<DialledAhead> connections, LinkPacing& link, const UploadShare& upload,
               std::uint64_t bytes_to_each);

  // Sends what the connections take, until `abort` is raised. False: done.
  bool turn(Clock::time_point now, const AbortSignal* abort = nullptr);
  // What it waits for, at most until the next look.
  void append_polls(std::vector<pollfd>& polls) const;
  // All that stand. Padding of which a part is under way may still wait in them.
  std::vector<DialledAhead> release();

 private:
  struct One {
    DialledAhead dialled;
    bool broken = false;
  };
  void send(One& one);
  bool flush(One& one);
  void limit_what_waits(double link_bytes_per_second);  // 0: not known
  void look(Clock::time_point now);
  void tell_link();  // what was seen of it
  bool is_under_way() const;
  bool is_done(Clock::time_point now) const;

  std::vector<One> connections_;
  LinkPacing& link_;
  const UploadShare& upload_;
  std::map<IslandId, std::uint64_t> left_;  // bytes
  std::uint64_t waits_ = 0;                 // bytes in each socket, at most; and a record
  std::optional<EdgePacing> pacing_;        // of a link that is known
  const Clock::time_point until_;
  Clock::time_point looked_;
  // Of one that is not: the interval under way.
  Clock::time_point since_;
  std::uint64_t delivered_ = 0;  // until then
  bool queued_ = false;          // a queue stood then
  Seconds rtt_{};                // in the interval before
  double fastest_ = 0;           // bytes/s, of all intervals
  double link_rate_ = 0;         // bytes/s, by the latest with a queue; 0: none since more came through
  int in_vain_ = 0;              // intervals since it grew
  bool is_seen_full_ = false;
};

}  // namespace atl
