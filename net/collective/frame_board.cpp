#include "net/collective/frame_board.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace atl {
namespace {

UniqueFd new_event() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    std::perror("atoll: eventfd");
    std::abort();
  }
  return event;
}

void signal(const UniqueFd& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
}

}  // namespace

FrameBoard::FrameBoard(const RingPayload& payload, const EdgeSchedule& outbound, const EdgeSchedule& inbound,
                       std::size_t connections, std::size_t workers)
    : outbound_(outbound),
      inbound_(inbound),
      ended_event_(new_event()),
      sleepers_(workers),
      open_outbound_(connections),
      next_own_(outbound.next_own(0)),
      own_ready_end_(outbound.encodes_own() ? outbound.frames() : 0),
      sent_(outbound.frames()),
      admitted_(inbound.frames()),
      pieces_(payload) {
  for (std::size_t worker = 0; worker < workers; ++worker) wake_events_.push_back(new_event());
  const MutexLock lock(mutex_);
  end_if_complete();
}

void FrameBoard::inbound_joined(std::size_t connections) {
  const MutexLock lock(mutex_);
  open_inbound_ = connections;
  joined_ = true;
  ++version_;
  wake_all();
}

// ---- frames to send
// ----------------------------------------------------------------------------------------------------

bool FrameBoard::own_may_leave() const {
  if (next_own_ >= own_ready_end_) return false;
  return joined_ || outbound_.next_own(next_own_ + 1) < outbound_.frames();
}

bool FrameBoard::something_to_send() const { return !ready_.empty() || own_may_leave(); }

bool FrameBoard::has_to_send() const {
  const MutexLock lock(mutex_);
  return something_to_send();
}

std::optional<std::uint32_t> FrameBoard::take_to_send(std::size_t unsent) {
  const MutexLock lock(mutex_);
  if (!something_to_send() || left_to_another(unsent)) return std::nullopt;
  std::uint32_t sequence = next_own_;
  if (!ready_.empty() && (ready_.top() < next_own_ || !own_may_leave())) {
    sequence = ready_.top();
    ready_.pop();
  } else {
    next_own_ = outbound_.next_own(next_own_ + 1);
  }
  if (something_to_send()) wake_one_to_send();
  return sequence;
}

void FrameBoard::frame_sent(std::uint32_t sequence) {
  const MutexLock lock(mutex_);
  sent_[sequence] = true;
  ++sent_count_;
  if (somebody_early_) {
    somebody_early_ = false;
    ++version_;
    wake_all();
  }
  end_if_complete();
}

bool FrameBoard::all_sent() const {
  const MutexLock lock(mutex_);
  return sent_count_ == outbound_.frames();
}

void FrameBoard::own_in_place(std::uint32_t sequence) {
  const RingSubChunk sub_chunk = outbound_.frame(sequence);
  const MutexLock lock(mutex_);
  own_ready_end_ = sequence + 1;
  count_final(sub_chunk.first_byte, sub_chunk.bytes);
  ++version_;
  wake_one_to_send();
  end_if_complete();
}

// ---- frames that come
// ----------------------------------------------------------------------------------------------------

FrameBoard::Admission FrameBoard::admit(std::uint32_t sequence) {
  const std::optional<std::uint32_t> before = inbound_.replaces(sequence, outbound_);
  const MutexLock lock(mutex_);
  if (admitted_[sequence]) return Admission::kTwice;
  if (before && !sent_[*before]) {
    somebody_early_ = true;
    return Admission::kEarly;
  }
  admitted_[sequence] = true;
  return Admission::kWelcome;
}

void FrameBoard::frame_in_place(std::uint32_t sequence, const RingSubChunk& sub_chunk, bool sends_itself) {
  const std::optional<std::uint32_t> forwarded = inbound_.forwarded(sequence, outbound_);
  const bool makes_final = inbound_.makes_final(sequence);
  const MutexLock lock(mutex_);
  ++received_count_;
  if (forwarded) {
    ready_.push(*forwarded);
    ++version_;
    if (!sends_itself) wake_one_to_send();
  }
  if (makes_final) count_final(sub_chunk.first_byte, sub_chunk.bytes);
  end_if_complete();
}

bool FrameBoard::all_received() const {
  const MutexLock lock(mutex_);
  return received_count_ == inbound_.frames();
}

void FrameBoard::count_final(std::uint64_t first_byte, std::uint64_t bytes) {
  for (std::size_t whole = pieces_.count(first_byte, bytes); whole > 0; --whole) {
    ++version_;
    wake_one_to_hash();
  }
}

// ---- what moves
// ----------------------------------------------------------------------------------------------------

void FrameBoard::count_data(std::size_t bytes) { data_received_ += bytes; }

void FrameBoard::count_contribution(std::size_t bytes) { contributions_ += bytes; }

void FrameBoard::vouch(Clock::time_point until) {
  const MutexLock lock(mutex_);
  vouched_until_ = std::max(vouched_until_, until);
}

Clock::time_point FrameBoard::vouched_until() const {
  const MutexLock lock(mutex_);
  return vouched_until_;
}

// ---- pieces to hash
// ----------------------------------------------------------------------------------------------------

std::optional<std::size_t> FrameBoard::take_to_hash() {
  const MutexLock lock(mutex_);
  return pieces_.take_to_hash();
}

void FrameBoard::piece_hashed(std::size_t piece, const PieceHash& hash) {
  const MutexLock lock(mutex_);
  pieces_.hashed(piece, hash);
  end_if_complete();
}

Digest FrameBoard::digest() const {
  const MutexLock lock(mutex_);
  return pieces_.digest();
}

std::vector<bool> FrameBoard::whole_buckets() const {
  const MutexLock lock(mutex_);
  return pieces_.whole_buckets();
}

// ---- keepalives, the end
// ----------------------------------------------------------------------------------------------------

void FrameBoard::ask_for_keepalive(std::chrono::milliseconds patience) {
  const MutexLock lock(mutex_);
  keepalive_overdue_ = keepalive_due_.has_value();
  keepalive_due_ = patience;
  ++version_;
  wake_all();
}

bool FrameBoard::keepalive_due() const {
  const MutexLock lock(mutex_);
  return keepalive_due_.has_value();
}

std::optional<std::chrono::milliseconds> FrameBoard::take_keepalive(bool unacknowledged) {
  const MutexLock lock(mutex_);
  if (unacknowledged && !keepalive_overdue_) return std::nullopt;
  return std::exchange(keepalive_due_, std::nullopt);
}

void FrameBoard::fail(AllReduceFailure failure) {
  const MutexLock lock(mutex_);
  set_failure(std::move(failure));
}

void FrameBoard::outbound_closed(const IslandId& next) {
  const MutexLock lock(mutex_);
  --open_outbound_;
  // A frame may have been left to that one.
  if (something_to_send()) wake_one_to_send();
  if (open_outbound_ > 0 || sent_count_ == outbound_.frames()) return;
  set_failure({{ErrorCode::kPeerLost, next.value + " closed every connection before all was sent to it"}, next, {}});
}

void FrameBoard::inbound_closed(const IslandId& previous) {
  const MutexLock lock(mutex_);
  if (--open_inbound_ > 0 || received_count_ == inbound_.frames()) return;
  set_failure(
      {{ErrorCode::kPeerLost, previous.value + " closed every connection before it had sent all"}, previous, {}});
}

void FrameBoard::set_failure(AllReduceFailure failure) {
  if (complete_ || failure_) return;
  failure_ = std::move(failure);
  ++version_;
  wake_all();
  signal(ended_event_);
}

void FrameBoard::end_if_complete() {
  if (complete_ || failure_ || sent_count_ < outbound_.frames() || received_count_ < inbound_.frames() ||
      !pieces_.all_hashed()) {
    return;
  }
  complete_ = true;
  ++version_;
  wake_all();
  signal(ended_event_);
}

bool FrameBoard::ended() const {
  const MutexLock lock(mutex_);
  return complete_ || failure_.has_value();
}

std::optional<AllReduceFailure> FrameBoard::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

// ---- waiting
// ----------------------------------------------------------------------------------------------------

std::uint64_t FrameBoard::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

bool FrameBoard::may_sleep(std::size_t worker, std::uint64_t version, std::optional<std::size_t> least_unsent) {
  const MutexLock lock(mutex_);
  if (version != version_) return false;
  if (something_to_send()) {
    if (!least_unsent) {
      wake_one_to_send();  // a frame may have been left to this one
    } else if (!left_to_another(*least_unsent)) {
      return false;
    }
  }
  sleepers_[worker].asleep = true;
  sleepers_[worker].least_unsent = least_unsent;
  return true;
}

void FrameBoard::woke(std::size_t worker) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto drained = ::read(wake_events_[worker].get(), &count, sizeof count);
  const MutexLock lock(mutex_);
  sleepers_[worker] = {};
}

void FrameBoard::wake(std::size_t worker) {
  if (!sleepers_[worker].asleep) return;
  sleepers_[worker].asleep = false;
  signal(wake_events_[worker]);
}

void FrameBoard::wake_all() {
  for (std::size_t worker = 0; worker < sleepers_.size(); ++worker) wake(worker);
}

// Of those that would send.
std::optional<std::size_t> FrameBoard::least_laden_sleeper() const {
  std::optional<std::size_t> least;
  for (std::size_t worker = 0; worker < sleepers_.size(); ++worker) {
    const Sleeper& sleeper = sleepers_[worker];
    if (!sleeper.asleep || !sleeper.least_unsent) continue;
    if (!least || *sleeper.least_unsent < *sleepers_[*least].least_unsent) least = worker;
  }
  return least;
}

// To one that sleeps, or that was woken and has not come to it yet. Whoever leaves a frame may sleep: the other looks
// for one before it does.
bool FrameBoard::left_to_another(std::size_t unsent) {
  const auto has_less = [&](const Sleeper& sleeper) { return sleeper.least_unsent && *sleeper.least_unsent < unsent; };
  if (std::ranges::any_of(sleepers_, [&](const Sleeper& one) { return !one.asleep && has_less(one); })) return true;
  const std::optional<std::size_t> worker = least_laden_sleeper();
  if (!worker || !has_less(sleepers_[*worker])) return false;
  wake(*worker);
  return true;
}

void FrameBoard::wake_one_to_send() {
  if (const auto worker = least_laden_sleeper()) wake(*worker);
}

void FrameBoard::wake_one_to_hash() {
  const auto found = std::ranges::find_if(sleepers_, &Sleeper::asleep);
  if (found != sleepers_.end()) wake(static_cast<std::size_t>(found - sleepers_.begin()));
}

}  // namespace atl
