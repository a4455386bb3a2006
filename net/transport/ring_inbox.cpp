#include "net/transport/ring_inbox.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace atl {
namespace {

std::pair<OuterStep, Attempt> attempt_of(const RingHello& hello) { return {hello.round, hello.attempt}; }

// Which field differs, for the message; empty when the hello is the expected one.
std::string difference(const RingHello& hello, const RingHello& expected) {
  if (hello.connection_count != expected.connection_count) {
    return fmt::format("{} connections an edge instead of {}", hello.connection_count, expected.connection_count);
  }
  if (hello.wire != expected.wire) return "another wire format";
  if (hello.payload_numel != expected.payload_numel) {
    return fmt::format("a payload of {} values instead of {}", hello.payload_numel, expected.payload_numel);
  }
  if (hello.world_size != expected.world_size || hello.from_rank != expected.from_rank) {
    return fmt::format("rank {} of {} instead of rank {} of {}", hello.from_rank.value, hello.world_size,
                       expected.from_rank.value, expected.world_size);
  }
  return {};
}

}  // namespace

RingInbox::RingInbox() : arrival_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!arrival_) {
    std::perror("atoll: eventfd");
    std::abort();
  }
}

void RingInbox::deliver(RingHello hello, TlsConnection connection) {
  std::vector<Waiting> dropped;  // closed after the lock is released
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(hello), std::move(connection)});
    drop_outdated(dropped);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(arrival_.get(), &one, sizeof one);
}

void RingInbox::drop_outdated(std::vector<Waiting>& dropped) {
  const auto drop_first = [&](auto matches) {
    const auto found = std::ranges::find_if(waiting_, matches);
    if (found == waiting_.end()) return false;
    dropped.push_back(std::move(*found));
    waiting_.erase(found);
    return true;
  };
  while (drop_first([&](const Waiting& w) { return attempt_of(w.hello) < newest_asked_; })) {
  }
  if (waiting_.empty()) return;
  const IslandId latest = waiting_.back().hello.from;
  const auto from_latest = [&](const Waiting& w) { return w.hello.from == latest; };
  while (static_cast<std::size_t>(std::ranges::count_if(waiting_, from_latest)) > kMaxWaitingOfPeer) {
    drop_first(from_latest);
  }
  while (waiting_.size() > kMaxWaiting) drop_first([](const Waiting&) { return true; });
}

RingInbox::Arrived RingInbox::take_arrived(const RingHello& expected, int& arrived) {
  std::vector<Waiting> dropped;
  std::lock_guard lock(mutex_);
  newest_asked_ = std::max(newest_asked_, attempt_of(expected));
  drop_outdated(dropped);
  // The latest connection of each index; an earlier one is of a dialler that began again.
  std::vector<std::optional<std::size_t>> position(static_cast<std::size_t>(expected.connection_count));
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const RingHello& hello = waiting_[i].hello;
    if (hello.from != expected.from || attempt_of(hello) != attempt_of(expected)) continue;
    if (const std::string wrong = difference(hello, expected); !wrong.empty()) {
      return Result<std::vector<TlsConnection>>(
          Error{ErrorCode::kProtocol, fmt::format("{} began the edge with {}", expected.from.value, wrong)});
    }
    position[static_cast<std::size_t>(hello.connection_index)] = i;
  }
  arrived = static_cast<int>(std::ranges::count_if(position, [](const auto& p) { return p.has_value(); }));
  if (arrived < expected.connection_count) return std::nullopt;
  std::vector<TlsConnection> edge;
  for (const auto& p : position) edge.push_back(std::move(waiting_[*p].connection));
  std::erase_if(waiting_, [&](const Waiting& w) {
    return w.hello.from == expected.from && attempt_of(w.hello) == attempt_of(expected);
  });
  return Result<std::vector<TlsConnection>>(std::move(edge));
}

Result<std::vector<TlsConnection>> RingInbox::take(const RingHello& expected, Deadline deadline,
                                                   const AbortSignal& abort) {
  std::array<pollfd, 2> watched{pollfd{arrival_.get(), POLLIN, 0}, pollfd{abort.fd(), POLLIN, 0}};
  const std::string what = fmt::format("waiting for {} to dial this island", expected.from.value);
  for (;;) {
    // Drained before looking, so that a delivery after the look wakes the poll.
    std::uint64_t deliveries = 0;
    [[maybe_unused]] const auto drained = ::read(arrival_.get(), &deliveries, sizeof deliveries);
    if (abort.raised()) return Error{ErrorCode::kAborted, fmt::format("{}: {}", what, abort.reason())};
    int arrived = 0;
    if (Arrived edge = take_arrived(expected, arrived)) return std::move(*edge);
    if (deadline.expired()) {
      return Error{ErrorCode::kTimeout, fmt::format("{}: {} of {} connections came within the time allowed", what,
                                                    arrived, expected.connection_count)};
    }
    (void)::poll(watched.data(), watched.size(), deadline.poll_milliseconds());
  }
}

}  // namespace atl
