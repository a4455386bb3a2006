#include "tests/net/mesh/timed_ring.h"

#include <algorithm>

#include "tests/net/mesh/simulated_island.h"
#include "tests/net/mesh/timed_mesh.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kRefused = 50ms, kClosing = 30ms;
constexpr int kStallTimeouts = 3;
constexpr std::uint64_t kChunkBytes = 100'000;

std::string digest_of(OuterStep round, const TimedValues& values, const std::string& alterations) {
  std::string of = "round " + std::to_string(round.value);
  for (const double value : values) of += " " + std::to_string(value);
  return fake_sha256(of + alterations);
}

}  // namespace

TimedRing::TimedRing(TimedMesh& mesh, HubAttempt attempt) : mesh_(mesh), attempt_(std::move(attempt)) {
  for (const AttemptMember& member : attempt_.order) seats_.push_back(Seat{mesh_.find(member.id)});
}

std::optional<std::size_t> TimedRing::seat_of(const IslandId& island) const {
  const auto found = std::ranges::find(attempt_.order, island, &AttemptMember::id);
  if (found == attempt_.order.end()) return std::nullopt;
  return static_cast<std::size_t>(found - attempt_.order.begin());
}

std::optional<IslandId> TimedRing::next_of(const IslandId& island) const {
  const auto seat = seat_of(island);
  return seat && seats_.size() > 1 ? std::optional(attempt_.order[after(*seat)].id) : std::nullopt;
}

std::optional<IslandId> TimedRing::previous_of(const IslandId& island) const {
  const auto seat = seat_of(island);
  return seat && seats_.size() > 1 ? std::optional(attempt_.order[before(*seat)].id) : std::nullopt;
}

std::vector<std::size_t> TimedRing::peers_of(std::size_t seat) const {
  std::vector<std::size_t> peers;
  if (seats_.size() < 2) return peers;
  if (!is_direct()) {
    peers = {after(seat)};
    if (seats_.size() > 2) peers.push_back(before(seat));
    return peers;
  }
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (i != seat) peers.push_back(i);
  }
  return peers;
}

// Round a ring of two each is the other's next and dials it.
bool TimedRing::dials(std::size_t seat, std::size_t peer) const {
  if (is_direct()) return seat < peer;
  if (seats_.size() == 2) return true;
  return peer == after(seat) ? !attempt_.order[peer].dials_previous : attempt_.order[seat].dials_previous;
}

bool TimedRing::has_come(std::size_t seat) const {
  const Seat& its = seats_[seat];
  return its.state != Seat::State::kAway && its.conduct != RingConduct::kSilent;
}

// ---- how it goes

void TimedRing::join(TimedIsland& island) {
  const auto seat = seat_of(island.id());
  if (!seat || seats_[*seat].state != Seat::State::kAway) return;
  Seat& its = seats_[*seat];
  its.island = &island;
  its.state = Seat::State::kIn;
  its.conduct = island.conduct(attempt_);
  its.joined = mesh_.now();
  if (island.honest()) {
    for (const std::size_t peer : peers_of(*seat)) watch(*seat, peer);
  }
  if (its.conduct == RingConduct::kCloses) {
    mesh_.after(mesh_.times().ring / 2, [self = shared_from_this(), seat = *seat] {
      self->broken_ = true;
      self->seats_[seat].state = Seat::State::kFailed;
      self->close(seat);
    });
  }
  complete_when_all_are_in();
}

// What an honest member finds at its edge with that peer, and when.
void TimedRing::watch(std::size_t seat, std::size_t peer) {
  const auto timeout = mesh_.run().dead_after;
  const IslandId& id = attempt_.order[peer].id;
  const auto at = [&](Clock::duration time, auto condition, Failure failure) {
    mesh_.after(time, [self = shared_from_this(), seat, condition, failure = std::move(failure)] {
      if (self->seats_[seat].state == Seat::State::kIn && condition(*self)) self->fail(seat, failure);
    });
  };
  const Port port = seats_[peer].island != nullptr ? seats_[peer].island->port(false) : Port::kSwallows;
  const auto always = [](const TimedRing&) { return true; };
  if (dials(seat, peer) && port == Port::kRefuses) {
    return at(kRefused, always, {id, "cannot connect to " + id.value + ": connection refused", false, {}, true});
  }
  if (dials(seat, peer) && port == Port::kSwallows) {
    return at(timeout, always, {id, "cannot connect to " + id.value + ": timed out", true, {}, true});
  }
  // Whom it sends to takes what the kernel takes: silence is seen by who waits for data.
  const bool waits_for_data = is_direct() || peer == before(seat);
  const bool answers_late = !is_direct() && peer == after(seat) && seats_.size() > 2 && !dials(seat, peer);
  if (waits_for_data || answers_late) {
    at(answers_late ? 2 * timeout : timeout, [peer](const TimedRing& ring) { return !ring.has_come(peer); },
       {id, id.value + " sent nothing for 6.0 s", true, {}, true});
  }
  if (!waits_for_data) return;
  const auto stalls = [peer](const TimedRing& ring) { return ring.seats_[peer].conduct == RingConduct::kStalls; };
  at(kStallTimeouts * timeout, stalls, {id, id.value + " sends keepalives but no data for 18.0 s", false, 0});
}

void TimedRing::fail(std::size_t seat, Failure failure) {
  Seat& its = seats_[seat];
  if (its.state != Seat::State::kIn) return;
  its.state = Seat::State::kFailed;
  broken_ = true;
  IslandAttemptFailed report{attempt_.round, attempt_.attempt, std::move(failure.peer), std::move(failure.reason),
                             {false},        failure.silent,   failure.stalled_after};
  report.fragment = attempt_.fragment;
  report.never_met = failure.never_met;
  its.island->average_failed(attempt_, std::move(report));
  close(seat);
}

// The others hear of it: they fail, too.
void TimedRing::close(std::size_t seat) {
  const IslandId& id = attempt_.order[seat].id;
  for (const std::size_t peer : peers_of(seat)) {
    mesh_.after(kClosing, [self = shared_from_this(), peer, id] {
      Seat& its = self->seats_[peer];
      if (its.state != Seat::State::kIn || !its.island->honest()) return;
      self->fail(peer, {id, id.value + " closed every connection before it had sent all"});
    });
  }
}

bool TimedRing::abort(const TimedIsland& island, const std::string& reason) {
  const auto seat = seat_of(island.id());
  if (!seat || seats_[*seat].state != Seat::State::kIn) return false;
  fail(*seat, when_aborted(*seat, reason));
  return true;
}

void TimedRing::leave(const TimedIsland& island) {
  const auto seat = seat_of(island.id());
  if (!seat || seats_[*seat].state != Seat::State::kIn) return;
  seats_[*seat].state = Seat::State::kFailed;
  broken_ = true;
  close(*seat);
}

// For whom it waits, and since when (EdgeMonitor::aborted(), EdgeConnector::failed()).
TimedRing::Failure TimedRing::when_aborted(std::size_t seat, const std::string& reason) const {
  const auto timeout = mesh_.run().dead_after;
  const bool waited_long = mesh_.now() - seats_[seat].joined > timeout / 2;
  std::vector<std::size_t> waited_for = peers_of(seat);
  if (!is_direct()) waited_for = {before(seat)};
  for (const std::size_t peer : waited_for) {
    if (!has_come(peer)) {
      if (!waited_long) continue;
      return {attempt_.order[peer].id, reason, true, bytes_at(seat)};
    }
  }
  for (const std::size_t peer : waited_for) {
    const RingConduct conduct = seats_[peer].conduct;
    const bool owes =
        is_direct() ? conduct == RingConduct::kStalls || conduct == RingConduct::kSlow || conduct == RingConduct::kHalts
                    : has_come(peer);
    if (owes) return {attempt_.order[peer].id, reason, false, bytes_at(seat)};
  }
  return {std::nullopt, reason};
}

// What had come to it: nothing of what waits at one that sends none, a chunk more with each hop after that.
std::uint64_t TimedRing::bytes_at(std::size_t seat) const {
  if (is_direct()) return 0;
  std::uint64_t bytes = 0;
  for (std::size_t at = before(seat), hops = 0; hops < seats_.size(); at = before(at), ++hops) {
    const bool sends = has_come(at) && seats_[at].conduct != RingConduct::kStalls;
    if (!sends) break;
    if (seats_[at].conduct == RingConduct::kSlow) return bytes + 5;
    if (seats_[at].conduct == RingConduct::kHalts) return bytes + static_cast<std::uint64_t>(mesh_.times().numel);
    bytes += kChunkBytes;
  }
  return bytes;
}

void TimedRing::complete_when_all_are_in() {
  const auto takes_part = [](const Seat& seat) {
    return seat.state == Seat::State::kIn &&
           (seat.conduct == RingConduct::kTakesPart || seat.conduct == RingConduct::kAlters ||
            seat.conduct == RingConduct::kCuts || seat.conduct == RingConduct::kStarves ||
            seat.conduct == RingConduct::kStarvesNext);
  };
  if (completes_ || broken_ || !std::ranges::all_of(seats_, takes_part)) return;
  completes_ = true;
  const bool travels = attempt_.final_buckets.empty() || !attempt_.final_buckets[0];
  mesh_.after(travels ? mesh_.times().ring : mesh_.times().message, [self = shared_from_this()] { self->complete(); });
}

void TimedRing::complete() {
  if (broken_) return;
  TimedValues average{};
  double tokens = 0;
  for (const AttemptMember& member : attempt_.order) tokens += static_cast<double>(member.tokens);
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    const auto weight = static_cast<double>(attempt_.order[seat].tokens);
    if (weight > 0) add(average, seats_[seat].island->gradient(), weight / tokens);
  }
  const bool stays = !attempt_.final_buckets.empty() && attempt_.final_buckets[0];
  const std::vector<bool> starve = starved();
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    Seat& its = seats_[seat];
    if (its.conduct == RingConduct::kTakesPart && seats_[before(seat)].conduct == RingConduct::kCuts &&
        its.island->honest()) {
      const IslandId& id = attempt_.order[before(seat)].id;
      mesh_.after(kClosing, [self = shared_from_this(), seat, id] {
        self->fail(seat, {id, id.value + " closed every connection before it had sent all"});
      });
      continue;
    }
    if (starve[seat]) continue;  // it waits
    its.state = Seat::State::kDone;
    if (stays && its.island->average()) {
      const TimedIsland::Average kept = *its.island->average();
      its.island->averaged(attempt_, kept.values, digest_of(attempt_.round, kept.values, ""));
      continue;
    }
    std::string altered;
    for (std::size_t chunk = 0; chunk < seats_.size(); ++chunk) altered += alterations(chunk, seat);
    its.island->averaged(attempt_, average, digest_of(attempt_.round, average, altered));
  }
}

// Of the chunk that has so far to go from the one that starves them; more than half of the trainers have all.
std::vector<bool> TimedRing::starved() const {
  std::vector<bool> starve(seats_.size(), false);
  std::size_t trainers = 0;
  for (const AttemptMember& member : attempt_.order) trainers += member.tokens > 0 ? 1 : 0;
  std::size_t have = trainers;
  for (std::size_t liar = 0; liar < seats_.size(); ++liar) {
    const bool next_only = seats_[liar].conduct == RingConduct::kStarvesNext;
    if (!next_only && seats_[liar].conduct != RingConduct::kStarves) continue;
    for (std::size_t at = after(liar); at != liar; at = after(at)) {
      if (starve[at] || !seats_[at].island->honest()) continue;
      const std::size_t left = have - (attempt_.order[at].tokens > 0 ? 1 : 0);
      if (2 * left <= trainers) break;
      have = left;
      starve[at] = true;
      if (next_only) break;
    }
  }
  return starve;
}

// Chunk c is owned by rank c - 1, and everybody between its owner and an island passed it on; directly its owner sends
// it to each.
std::string TimedRing::alterations(std::size_t chunk, std::size_t seat) const {
  std::string text;
  const std::size_t owner = (chunk + seats_.size() - 1) % seats_.size();
  for (std::size_t rank = owner; rank != seat; rank = after(rank)) {
    const bool alters = seats_[rank].conduct == RingConduct::kAlters && (is_direct() ? rank == owner : rank != owner);
    if (alters) text += " altered by " + attempt_.order[rank].id.value;
    if (is_direct()) break;
  }
  return text;
}

std::vector<std::string> TimedRing::chunks_of(const IslandId& island) const {
  const auto seat = seat_of(island);
  std::vector<std::string> chunks;
  if (!seat || seats_[*seat].state != Seat::State::kDone) return chunks;
  for (std::size_t chunk = 0; chunk < seats_.size(); ++chunk) {
    chunks.push_back(fake_sha256("chunk " + std::to_string(chunk) + alterations(chunk, *seat)));
  }
  return chunks;
}

}  // namespace atl
