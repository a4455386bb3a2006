#include "net/collective/peer_dialler.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace atl {
namespace {

UniqueFd new_arrival() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    std::perror("atoll: eventfd");
    std::abort();
  }
  return event;
}

}  // namespace

PeerDialler::PeerDialler(ConnectionPool& pool) : pool_(pool), arrival_(new_arrival()) {}

PeerDialler::~PeerDialler() {
  stopped_.raise("the attempt has ended");
  threads_.clear();
}

void PeerDialler::deliver(Came came) {
  {
    const MutexLock lock(mutex_);
    came_.push_back(std::move(came));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(arrival_.get(), &one, sizeof one);
}

void PeerDialler::dial(std::size_t rank, const EdgeEnd& end, const Address& address, Deadline deadline) {
  try {
    threads_.emplace_back([this, rank, end, address, deadline] {
      deliver({rank, pool_.take(end, address, 1, deadline, stopped_)});
    });
  } catch (const std::system_error& error) {
    deliver({rank, Error{ErrorCode::kIo, std::string("cannot start a thread that dials: ") + error.what()}});
  }
}

std::optional<PeerDialler::Came> PeerDialler::take() {
  const MutexLock lock(mutex_);
  if (came_.empty()) {
    std::uint64_t arrivals = 0;
    [[maybe_unused]] const auto drained = ::read(arrival_.get(), &arrivals, sizeof arrivals);
    return std::nullopt;
  }
  Came came = std::move(came_.front());
  came_.pop_front();
  return came;
}

}  // namespace atl
