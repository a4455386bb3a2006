#include "tests/fakes/fault_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "net/base/mutex.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr int kPollMilliseconds = 1000;
constexpr std::chrono::seconds kDialTime{5};

void reset_when_closed(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

FaultProxy::FaultProxy(Address target)
    : target_(std::move(target)),
      socket_(listen_tcp({"127.0.0.1", 0}).value()),
      address_{"127.0.0.1", local_port(socket_.get())},
      thread_([this] { run(); }) {}

FaultProxy::~FaultProxy() {
  stop_.raise("the test ends");
  thread_.join();
}

void FaultProxy::break_next(Fault fault) {
  MutexLock lock(mutex_);
  next_.push_back(fault);
}

std::size_t FaultProxy::pending() const {
  MutexLock lock(mutex_);
  return next_.size();
}

void FaultProxy::break_beside_another(Fault fault, int times) {
  MutexLock lock(mutex_);
  beside_ = fault;
  beside_times_ = times;
}

FaultProxy::Passed FaultProxy::passed() const {
  MutexLock lock(mutex_);
  return passed_;
}

std::optional<Fault> FaultProxy::fault_of_next() {
  MutexLock lock(mutex_);
  if (!next_.empty()) {
    const Fault fault = next_.front();
    next_.pop_front();
    return fault;
  }
  const bool another_stands = std::ranges::any_of(pairs_, [](const Pair& pair) { return !pair.to_listener.ended; });
  if (!another_stands || beside_times_ == 0) return std::nullopt;
  --beside_times_;
  return beside_;
}

void FaultProxy::accept() {
  UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) return;
  ++dialled_;
  const std::optional<Fault> fault = fault_of_next();
  auto onward = connect_tcp(target_, Deadline::after(kDialTime), &stop_, "fault proxy");
  if (!onward.ok()) return;  // closed: nobody listens there
  disable_nagle(accepted.get());
  Pair pair{std::move(accepted), std::move(*onward), {}, {}, FaultKind::kCut, false};
  pair.to_listener = {pair.dialler.get(), pair.listener.get(), 0, {}, false};
  pair.to_dialler = {pair.listener.get(), pair.dialler.get(), 0, {}, false};
  if (fault) {
    pair.kind = fault->kind;
    (fault->way == FaultWay::kToListener ? pair.to_listener : pair.to_dialler).break_after = fault->after_bytes;
  }
  pairs_.push_back(std::move(pair));
}

bool FaultProxy::break_now(Pair& pair) {
  ++broken_;
  if (pair.kind == FaultKind::kStall) {
    pair.stalled = true;
    return true;
  }
  if (pair.kind == FaultKind::kReset) {
    reset_when_closed(pair.dialler.get());
    reset_when_closed(pair.listener.get());
  } else {  // what lies unread here would make a reset of the close
    ::shutdown(pair.dialler.get(), SHUT_WR);
    ::shutdown(pair.listener.get(), SHUT_WR);
    std::array<std::byte, 16384> unread;
    while (::recv(pair.dialler.get(), unread.data(), unread.size(), MSG_DONTWAIT) > 0) continue;
    while (::recv(pair.listener.get(), unread.data(), unread.size(), MSG_DONTWAIT) > 0) continue;
  }
  return false;
}

// What is there now.
bool FaultProxy::forward(Pair& pair, Way& way) {
  std::array<std::byte, 65536> buffer;
  for (;;) {
    std::size_t most = buffer.size();
    if (way.break_after) {
      if (way.passed == *way.break_after) return break_now(pair);
      most = std::min<std::uint64_t>(most, *way.break_after - way.passed);
    }
    const ssize_t got = ::recv(way.from, buffer.data(), most, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
      way.ended = true;
      ::shutdown(way.to, SHUT_WR);
      return true;
    }
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t put = ::send(way.to, buffer.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (put < 0 && !wait_ready(way.to, POLLOUT, Deadline::after(kDialTime), &stop_, "fault proxy").ok()) return false;
      sent += std::max<ssize_t>(put, 0);
    }
    way.passed += static_cast<std::uint64_t>(got);
    MutexLock lock(mutex_);
    passed_ = {pair.to_listener.passed, pair.to_dialler.passed};
  }
}

bool FaultProxy::has_ended(const Pair& pair) {
  for (const int fd : {pair.dialler.get(), pair.listener.get()}) {
    pollfd end{fd, POLLRDHUP, 0};
    if (::poll(&end, 1, 0) > 0) return true;
  }
  return false;
}

bool FaultProxy::serve(Pair& pair) {
  if (pair.stalled) return !has_ended(pair);
  if (!pair.to_listener.ended && !forward(pair, pair.to_listener)) return false;
  if (pair.stalled) return true;
  if (!pair.to_dialler.ended && !forward(pair, pair.to_dialler)) return false;
  return !(pair.to_listener.ended && pair.to_dialler.ended);
}

void FaultProxy::run() {
  std::vector<pollfd> watched;
  while (!stop_.raised()) {
    watched.assign({pollfd{stop_.fd(), POLLIN, 0}, pollfd{socket_.get(), POLLIN, 0}});
    for (const Pair& pair : pairs_) {
      const short events = pair.stalled ? POLLRDHUP : POLLIN;
      if (!pair.to_listener.ended) watched.push_back({pair.dialler.get(), events, 0});
      if (!pair.to_dialler.ended) watched.push_back({pair.listener.get(), events, 0});
    }
    (void)::poll(watched.data(), watched.size(), kPollMilliseconds);
    std::erase_if(pairs_, [this](Pair& pair) { return !serve(pair); });
    accept();
  }
}

}  // namespace atl
