// Opens the windows of connections that were dialled ahead, by padding that fills their link: BBR needs some eight
// round trips for that, and what the EdgePacing sees meanwhile is what an attempt begins with. Never waits. Owned and
// used by one thread at a time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

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

  // At least one connection. To each peer at most so many bytes go, and not more than the link is known to have under
  // way twice. References outlive this.
  WindowOpener(std::vector<DialledAhead> connections, LinkPacing& link, const UploadShare& upload,
               std::uint64_t bytes_to_each);

  // Sends what the connections take. False: done.
  bool turn(Clock::time_point now);
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
  bool is_done(Clock::time_point now) const;

  std::vector<One> connections_;
  LinkPacing& link_;
  const UploadShare& upload_;
  const bool knew_link_;
  std::map<IslandId, std::uint64_t> left_;  // bytes
  std::optional<EdgePacing> pacing_;
  const Clock::time_point until_;
  Clock::time_point looked_;
};

}  // namespace atl
