#include "net/collective/ring_worker.h"

#include <algorithm>

#include "net/collective/canonical_digest.h"

namespace atl {
namespace {

// Nothing depends on it: a worker is woken by its sockets and by the board.
constexpr int kLongestSleepMilliseconds = 500;

}  // namespace

bool RingWorker::has_idle_sender() const { return std::ranges::any_of(senders_, &SendLane::idle); }

void RingWorker::join(ReceiveLane& lane) {
  const MutexLock lock(joining_mutex_);
  joining_.push_back(&lane);
}

void RingWorker::take_joined() {
  const MutexLock lock(joining_mutex_);
  receivers_.insert(receivers_.end(), joining_.begin(), joining_.end());
  joining_.clear();
}

bool RingWorker::pump_receivers() {
  bool moved = false;
  for (ReceiveLane* lane : receivers_) {
    if (lane->at_end()) continue;
    const Result<std::size_t> count = lane->pump(has_idle_sender());
    if (!count.ok()) {
      attempt_.board.fail({count.error(), attempt_.previous, {}});
      return false;
    }
    if (lane->closed()) attempt_.board.inbound_closed(attempt_.previous);
    bytes_received_ += *count;
    moved = moved || *count > 0;
  }
  return moved;
}

// A frame that waits behind others in the kernel, for one connection's part of the link's rate, while other connections
// have nothing to send, comes late; and around a ring such delays add up.
void RingWorker::put_least_laden_first() {
  laden_.clear();
  for (SendLane* lane : senders_) laden_.emplace_back(lane->unsent(), lane);
  std::ranges::stable_sort(laden_, {}, &Laden::first);
  std::ranges::transform(laden_, senders_.begin(), &Laden::second);
}

std::optional<std::size_t> RingWorker::least_unsent() const {
  std::optional<std::size_t> least;
  for (const SendLane* lane : senders_) {
    if (!lane->idle()) continue;
    const std::size_t unsent = lane->unsent();
    least = std::min(unsent, least.value_or(unsent));
  }
  return least;
}

bool RingWorker::pump_senders() {
  if (senders_.size() > 1 && has_idle_sender() && attempt_.board.has_to_send()) put_least_laden_first();
  bool moved = false;
  for (SendLane* lane : senders_) {
    const Result<std::size_t> count = lane->pump();
    if (!count.ok()) {
      attempt_.board.fail({count.error(), attempt_.next, {}});
      return false;
    }
    bytes_sent_ += *count;
    moved = moved || *count > 0;
  }
  return moved;
}

bool RingWorker::hash_piece() {
  const std::optional<std::size_t> piece = attempt_.board.take_to_hash();
  if (!piece) return false;
  const PieceHash hash = hash_of_piece(attempt_.canonical, *piece);
  if (attempt_.on_final) {  // before the last one's hash ends the attempt
    const std::size_t offset = *piece * kDigestPieceBytes;
    attempt_.on_final(offset, std::min(kDigestPieceBytes, attempt_.canonical.size() - offset));
  }
  attempt_.board.piece_hashed(*piece, hash);
  return true;
}

// When the owner's limit lets the first of its receivers read on.
Deadline RingWorker::wakes_at(Clock::time_point now) const {
  auto first = now + std::chrono::milliseconds(kLongestSleepMilliseconds);
  for (const ReceiveLane* lane : receivers_) {
    if (!lane->at_end() && lane->held_until() > now) first = std::min(first, lane->held_until());
  }
  return Deadline::at(first);
}

void RingWorker::sleep(std::uint64_t version) {
  const auto now = Clock::now();
  polls_.assign(1, pollfd{attempt_.board.wake_fd(index_), POLLIN, 0});
  for (const SendLane* lane : senders_) polls_.push_back(lane->poll_request());
  for (const ReceiveLane* lane : receivers_) polls_.push_back(lane->poll_request(now));
  if (!attempt_.board.may_sleep(index_, version, least_unsent())) return;
  const int ready = ::poll(polls_.data(), polls_.size(), wakes_at(now).poll_milliseconds(kLongestSleepMilliseconds));
  attempt_.board.woke(index_);
  if (ready <= 0) return;
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    SendLane& lane = *senders_[i];
    if (lane.closed()) continue;
    if (Status status = lane.after_poll(polls_[i + 1].revents); !status.ok()) {
      attempt_.board.fail({status.error(), attempt_.next, {}});
      return;
    }
    if (lane.closed()) attempt_.board.outbound_closed(attempt_.next);
  }
}

void RingWorker::run() {
  while (!attempt_.board.ended()) {
    const std::uint64_t version = attempt_.board.version();
    take_joined();
    const bool received = pump_receivers();
    const bool sent = pump_senders();
    if (received || sent || hash_piece()) continue;
    sleep(version);
  }
}

}  // namespace atl
