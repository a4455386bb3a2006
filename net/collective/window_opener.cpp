#include "net/collective/window_opener.h"

#include <algorithm>

#include "net/base/link_window.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr int kRecordsAtOnce = 4;  // fit what a connection gathers, so that none is ever sent in part
constexpr int kTurnsOfOne = 4;     // of each connection, before the next one's

ByteView padding_record() {
  static const Bytes record = ring_padding(kMaxRingPaddingBytes);
  return record;
}

std::vector<int> sockets_of(const std::vector<DialledAhead>& connections) {
  std::vector<int> sockets;
  for (const DialledAhead& one : connections) sockets.push_back(one.connection.fd());
  return sockets;
}

}  // namespace

WindowOpener::WindowOpener(std::vector<DialledAhead> connections, LinkPacing& link, const UploadShare& upload,
                           std::uint64_t bytes_to_each)
    : link_(link),
      upload_(upload),
      knew_link_(link.link_rate().has_value()),
      until_(Clock::now() + kLongest),
      looked_(Clock::now()) {
  const double rtt = least_rtt(connections.front().connection.fd()).count();
  const double twice = 2 * bytes_under_way(link.link_rate().value_or(0), rtt, false);
  const std::uint64_t most = knew_link_ && rtt > 0 ? static_cast<std::uint64_t>(twice) : bytes_to_each;
  for (const DialledAhead& one : connections) left_[one.end.peer] = std::min(most, bytes_to_each);
  pacing_.emplace(link_, sockets_of(connections), upload_);
  for (DialledAhead& one : connections) connections_.push_back({std::move(one)});
}

// True: nothing of it waits here.
bool WindowOpener::flush(One& one) {
  TlsConnection& connection = one.dialled.connection;
  one.broken = one.broken || !connection.try_flush().ok();
  return !one.broken && !connection.has_unsent();
}

void WindowOpener::send(One& one) {
  std::uint64_t& left = left_[one.dialled.end.peer];
  for (int turn = 0; turn < kTurnsOfOne && flush(one); ++turn) {
    for (int i = 0; i < kRecordsAtOnce && left >= padding_record().size(); ++i) {
      const auto written = one.dialled.connection.try_write(padding_record(), /*more_follows=*/true);
      one.broken = !written.ok();
      if (!written.ok()) return;
      left -= *written;
    }
    if (left < padding_record().size()) {
      left = 0;
      (void)flush(one);
      return;
    }
  }
}

bool WindowOpener::is_done(Clock::time_point now) const {
  if (now >= until_ || upload_.most_bytes_per_second()) return true;
  const auto waits = [](const One& one) { return !one.broken && one.dialled.connection.has_unsent(); };
  return std::ranges::all_of(left_, [](const auto& left) { return left.second == 0; }) &&
         std::ranges::none_of(connections_, waits);
}

bool WindowOpener::turn(Clock::time_point now) {
  if (now - looked_ >= EdgePacing::kLookEvery) {
    looked_ = now;
    pacing_->look(now);
    if (!knew_link_ && link_.link_rate()) {  // it was seen full
      for (auto& [peer, left] : left_) left = 0;
    }
  }
  for (One& one : connections_) {
    if (!one.broken) send(one);
  }
  return !is_done(now);
}

void WindowOpener::append_polls(std::vector<pollfd>& polls) const {
  for (const One& one : connections_) {
    const auto left = left_.find(one.dialled.end.peer);
    const bool sends = !one.broken && (left->second > 0 || one.dialled.connection.has_unsent());
    if (sends) polls.push_back({one.dialled.connection.fd(), POLLOUT, 0});
  }
}

std::vector<DialledAhead> WindowOpener::release() {
  pacing_.reset();
  std::vector<DialledAhead> standing;
  for (One& one : connections_) {
    if (!one.broken) standing.push_back(std::move(one.dialled));
  }
  connections_.clear();
  return standing;
}

}  // namespace atl
