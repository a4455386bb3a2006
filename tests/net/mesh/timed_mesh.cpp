#include "tests/net/mesh/timed_mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/net/mesh/simulated_island.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kDialTakes{100};

std::string text_of(const RoundBegan& news) { return fmt::format("round {} begins", news.round.value); }
std::string text_of(const RoundCommitted& news) {
  std::string members;
  for (const AttemptMember& member : news.commit.members) {
    members += fmt::format(" {}{}", member.id.value, member.tokens > 0 ? "" : "(0)");
  }
  return fmt::format("round {} attempt {} committed:{}{}", news.commit.round.value, news.commit.attempt.value, members,
                     news.directly ? " directly" : "");
}
std::string text_of(const StateHashesCompared& news) {
  return fmt::format("hashes of {} compared: {}", news.outer_step.value, news.equal);
}
std::string text_of(const AttemptFailed& news) {
  return fmt::format("round {} attempt {} failed: {}", news.round.value, news.attempt.value, news.reason);
}
std::string text_of(const IslandJoined& news) { return news.island.value + " joined"; }
std::string text_of(const IslandGone& news) { return news.island.value + " gone: " + news.reason; }
std::string text_of(const IslandPaused& news) { return news.island.value + " paused"; }
std::string text_of(const IslandValidated& news) {
  return fmt::format("{} validated {}: {:.2f}", news.island.value, news.outer_step.value, news.loss_nats);
}
std::string text_of(const StandstillChanged& news) {
  return "standstill: " + (news.standstill ? news.standstill->text : "none");
}
std::string text_of(const RolledBack& news) {
  return fmt::format("back to {} from {}: {}", news.to.value, news.from.value, news.reason);
}
std::string text_of(const WorkLeftOut& news) {
  return fmt::format("left out of round {}: {}: {}", news.round.value, news.island.value, news.reason);
}
std::string text_of(const ValidationDoubted& news) {
  return fmt::format("{} doubted: {:.2f}", news.island.value, news.loss_nats);
}
template <class Other>
std::string text_of(const Other&) {
  return "other news";
}

}  // namespace

std::string told(const CoordinatorNews& news) {
  return std::visit([](const auto& its) { return text_of(its); }, news);
}

TimedMesh::TimedMesh(RunConfig run, TimedTimes times, unsigned seed)
    : run_(std::move(run)), times_(times), random_(seed) {
  models_.push_back(TimedModel::initial());
  hashes_.push_back(fake_sha256("initial"));
  CoordinatorMemory memory;
  memory.agreed_hash = hashes_[0];
  memory.state_hashes[OuterStep{0}] = hashes_[0];
  hub_.emplace(
      run_, memory, [](const HubCommit&) { return std::string("signed"); }, std::vector<std::int64_t>{times_.numel});
  tick();
}

TimedIsland* TimedMesh::find(const IslandId& id) {
  const auto found = islands_.find(id);
  return found == islands_.end() ? nullptr : found->second.get();
}

void TimedMesh::violate(const std::string& what) {
  if (violation_.empty()) violation_ = what;
  if (tell) tell("VIOLATION: " + what);
}

// ---- time

void TimedMesh::after(Clock::duration time, std::function<void()> act) {
  events_.push(Event{now_ + time, next_event_++, std::move(act)});
}

void TimedMesh::pass(Clock::duration time) {
  const auto until = now_ + time;
  while (!events_.empty() && events_.top().at <= until) {
    auto act = std::move(const_cast<Event&>(events_.top()).act);  // NOLINT: it is taken out at once
    now_ = events_.top().at;
    events_.pop();
    act();
  }
  now_ = until;
}

void TimedMesh::tick() {
  for (const auto& [id, island] : islands_) island->ticks();
  hub_hears(Tick{});
  after(times_.tick, [this] { tick(); });
}

// ---- what the hub does

void TimedMesh::hub_hears(const CoordinatorEvent& event) {
  for (const CoordinatorAction& action : hub_->next(event, now_)) {
    std::visit([this](const auto& its) { carry_out(its); }, action);
  }
}

std::shared_ptr<TimedRing> TimedMesh::ring(const HubAttempt& attempt) {
  const auto number = [](const HubAttempt& its) { return std::pair(its.round, its.attempt); };
  if (ring_ && number(ring_->attempt()) > number(attempt)) return nullptr;
  if (!ring_ || number(ring_->attempt()) < number(attempt)) ring_ = std::make_shared<TimedRing>(*this, attempt);
  return ring_;
}

void TimedMesh::carry_out(const SendTo& send) {
  TimedIsland* island = find(send.island);
  if (island == nullptr || !island->linked()) return;
  if (const auto* goodbye = std::get_if<HubGoodbye>(&send.message)) {
    ++sent_away[send.island];
    if (tell) tell(send.island.value + " is sent away: " + goodbye->message);
    if (island->honest()) violate("an honest island is sent away: " + send.island.value + ": " + goodbye->message);
  }
  island->is_sent(send.message);
}

void TimedMesh::carry_out(const CloseConnection& close) {
  if (TimedIsland* island = find(close.island)) island->is_closed();
}

void TimedMesh::carry_out(const DialIsland& dial) {
  after(kDialTakes, [this, dial] {
    const TimedIsland* island = find(dial.island);
    hub_hears(IslandDialled{dial.island, dial.address, island != nullptr && island->port(true) == Port::kOpen});
  });
}

void TimedMesh::carry_out(const PersistCommit& persist) {
  const HubCommit& commit = persist.commit;
  if (commit.round.value + 1 != models_.size()) violate("a round is committed twice, or out of order");
  const TimedIsland::Average* average = nullptr;
  std::size_t honest = 0, holders = 0;
  Commit seen{now_, {}};
  for (const AttemptMember& member : commit.members) {
    if (member.tokens > 0) seen.trainers.insert(member.id);
    const TimedIsland* island = find(member.id);
    if (island == nullptr || !island->honest()) continue;
    ++honest;
    if (!island->holds(commit.digest)) continue;
    ++holders;
    average = &*island->average();
  }
  if (2 * holders < honest || average == nullptr)
    violate("an average is committed that fewer than half of its honest members hold");
  models_.push_back(models_.back().after(average != nullptr ? average->values : TimedValues{}, run_.outer_learning_rate,
                                         run_.outer_momentum));
  hashes_.push_back(fake_sha256(hashes_.back() + commit.digest));
  commits_.push_back(std::move(seen));
}

void TimedMesh::carry_out(const PersistStateHash& persist) {
  if (persist.outer_step.value >= hashes_.size() || hashes_[persist.outer_step.value] != persist.state_hash) {
    violate("a state is taken for the run's that no honest island computed");
  }
}

void TimedMesh::carry_out(const WantRollback& want) {
  after(times_.message, [this, want] {
    hub_hears(RollBack{want.to, hashes_[want.to.value], ++epoch_, {}, want.reason, true});
  });
}

// What was undone does not count as made.
void TimedMesh::carry_out(const PersistRollback& persist) {
  models_.resize(persist.to.value + 1, models_.front());
  hashes_.resize(persist.to.value + 1);
  commits_.resize(persist.to.value);
}

void TimedMesh::carry_out(const Publish& publish) {
  if (const auto* out = std::get_if<WorkLeftOut>(&publish.news)) ++left_out[out->island];
  if (tell) tell(told(publish.news));
}

}  // namespace atl
