// Holds the sockets of outbound edges to what an EdgePacer finds of the link to their peer, or those of a direct
// exchange to what it finds of the way that all have in common. Attempts of different fragments may have edges to one
// peer at the same time: they share the link, so that what it carries is what all their sockets carry together, and
// each socket has an equal part of its rate.
#pragma once

#include <optional>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/collective/arrivals.h"
#include "net/collective/edge_pacer.h"
#include "net/collective/upload_share.h"
#include "net/transport/socket.h"
#include "net/wire/ring_frame.h"

namespace atl {

// What a link delivers while so much is sent again that its queue must overflow, bytes/s; nothing: it tells of none.
std::optional<double> overflowing_rate(double seconds, double bytes_delivered, double bytes_retransmitted);

// What is known of one link, kept from attempt to attempt, and the sockets of those under way. Thread-safe.
class LinkPacing {
 public:
  // As EdgePacer::link_rate().
  std::optional<double> link_rate() const;
  double fastest() const;  // as EdgePacer::fastest()
  // As EdgePacer::begin_with().
  void begin_with(double bytes_per_second);
  // What the peer says of a socket that joined.
  void came(int socket, const RingReceipt& receipt);

 private:
  friend class EdgePacing;
  struct Socket {
    int fd;
    Clock::time_point restarted;  // its congestion control
  };
  struct Reading {
    std::uint64_t bytes_delivered = 0;
    std::uint64_t bytes_retransmitted = 0;
    bool saturated = false;
    bool under_way = false;
    bool stalled = false;
    double rtt_seconds = 0;
  };
  // The sockets stay open until they leave.
  void join(const std::vector<int>& sockets, Clock::time_point now);
  void leave(const std::vector<int>& sockets, Clock::time_point now);
  // Of those that joined. BBR begins at no more than the limit that a socket has then.
  void begin_anew(const std::vector<int>& sockets) const;
  void look(Clock::time_point now);
  std::optional<double> limit_of_a_socket() const;  // bytes/s

  TcpProgress progress_of(int socket, Clock::time_point now) ATOLL_REQUIRES(mutex_);
  Reading read(Clock::time_point now) ATOLL_REQUIRES(mutex_);
  void begin_interval(Clock::time_point now, const Reading& reading) ATOLL_REQUIRES(mutex_);
  bool leaves_sending_to_bbr() const ATOLL_REQUIRES(mutex_);
  static void begin_anew(Socket& socket, Clock::time_point now);
  void spare_bbr_its_probes(Clock::time_point now) ATOLL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  EdgePacer pacer_ ATOLL_GUARDED_BY(mutex_);
  std::vector<Socket> sockets_ ATOLL_GUARDED_BY(mutex_);
  Arrivals arrivals_ ATOLL_GUARDED_BY(mutex_);
  bool hears_ ATOLL_GUARDED_BY(mutex_) = false;  // of arrivals, in the interval before
  Clock::time_point since_ ATOLL_GUARDED_BY(mutex_);
  Reading before_ ATOLL_GUARDED_BY(mutex_);
  double lossy_share_ ATOLL_GUARDED_BY(mutex_) = 0;  // of the latest intervals, in which something was sent again
  bool saturated_throughout_ ATOLL_GUARDED_BY(mutex_) = false;
  bool under_way_throughout_ ATOLL_GUARDED_BY(mutex_) = false;
  bool stalled_meanwhile_ ATOLL_GUARDED_BY(mutex_) = false;
};

// One attempt's sockets. Owned and used by one thread.
class EdgePacing {
 public:
  // References outlive this; the sockets stay open. Never faster than `upload`, whose limit may come, go and change. Of
  // the link to a peer on this machine nothing is learned where it has none at first.
  EdgePacing(LinkPacing& link, std::vector<int> sockets, const UploadShare& upload);
  ~EdgePacing();
  EdgePacing(const EdgePacing&) = delete;
  EdgePacing& operator=(const EdgePacing&) = delete;

  // One more, which stays open too.
  void add(int socket);
  void remove(int socket);  // it is about to be closed
  // Call it about every kLookEvery. `busy`: how many of the sockets have something to send, which share what all may;
  // 0: all of them.
  void look(Clock::time_point now, std::size_t busy = 0);
  static constexpr std::chrono::milliseconds kLookEvery{50};

 private:
  void join(const std::vector<int>& sockets);  // they are in sockets_
  std::optional<double> limit_of_a_socket(std::size_t busy) const;

  LinkPacing& link_;
  std::vector<int> sockets_;
  const UploadShare& upload_;
  const bool learns_;  // of the link
  std::optional<double> applied_;
};

}  // namespace atl
