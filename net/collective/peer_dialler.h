// Takes the connections to several peers at once from a pool, which dials those that it lacks: a thread each, for as
// long as that takes. Owned and used by one thread.
#pragma once

#include <deque>
#include <optional>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/collective/connection_pool.h"

namespace atl {

class PeerDialler {
 public:
  // `pool` outlives this.
  explicit PeerDialler(ConnectionPool& pool);
  ~PeerDialler();  // stops those that still dial
  PeerDialler(const PeerDialler&) = delete;
  PeerDialler& operator=(const PeerDialler&) = delete;

  struct Came {
    std::size_t rank;
    Result<ConnectionPool::Edge> edge;
  };
  // One connection. Once for each rank.
  void dial(std::size_t rank, const EdgeEnd& end, const Address& address, Deadline deadline);
  std::optional<Came> take();                // one that came, or failed; none: not yet
  int fd() const { return arrival_.get(); }  // readable when there is one

 private:
  void deliver(Came came);

  ConnectionPool& pool_;
  const UniqueFd arrival_;
  AbortSignal stopped_;
  Mutex mutex_;
  std::deque<Came> came_ ATOLL_GUARDED_BY(mutex_);
  std::deque<std::jthread> threads_;
};

}  // namespace atl
