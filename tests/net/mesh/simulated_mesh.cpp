#include "tests/net/mesh/simulated_mesh.h"

#include <algorithm>

namespace atl {
namespace {

SimulatedWorld& with_initial_state(SimulatedWorld& world) {
  world.honest_hashes[0] = fake_sha256("initial");
  return world;
}

// What is said of a round names its fragment.
template <class Message>
bool names_its_fragment(const RunConfig& run, const Message& message) {
  if constexpr (requires { message.round, message.fragment; }) {
    return message.fragment == run.fragment_of(message.round);
  }
  return true;
}

template <class Message>
bool is(const HubMessage& message) {
  return std::holds_alternative<Message>(message);
}

}  // namespace

SimulatedMesh::SimulatedMesh(RunConfig its_run, std::vector<std::int64_t> fragment_numels)
    : SimulatedWorld(std::move(its_run)),
      fragment_numels_(std::move(fragment_numels)),
      disk_(with_initial_state(*this)) {
  restart_hub();
}

SimulatedMesh::Island& SimulatedMesh::island(int number) {
  Island& island = all[number];
  island.id = IslandId{"isl-" + std::to_string(number)};
  return island;
}

// ---- what happens to islands and hub

void SimulatedMesh::start(int number) {
  kill(number);
  Island& fresh = island(number);
  fresh.running = true;
  if (!fresh.durable.empty()) {
    const HeldState held = replays_by_itself ? *fresh.newest_on_disk() : fresh.durable.back();
    fresh.outer_step = held.outer_step;
    fresh.state_hash = held.state_hash;
  }
  link(number);
}

void SimulatedMesh::link(int number) {
  Island& island = this->island(number);
  island.linked = true;
  island.inbox.clear();
  IslandConnected event;
  event.entry = RosterEntry{island.id, island.id.value,
                            Address{"10.0.0.1", island.port > 0 ? island.port : static_cast<std::uint16_t>(number)},
                            fake_sha256(island.id.value)};
  event.hello.outer_step = island.outer_step;
  event.hello.state_hash = island.said_hash();
  if (island.lies.step) event.hello.outer_step = OuterStep{island.outer_step.value_or(OuterStep{0}).value + 3};
  event.hello.can_upload = island.can_upload;
  event.hello.dials_ahead = island.dials_ahead;
  event.hello.work = island.held_work;
  if (keeps_states) event.hello.durable = island.all_on_disk();
  if (keeps_states && island.newest_commit) {
    event.proven_commit = island.newest_commit;
    event.proven_epoch = island.newest_commit->epoch;
  }
  hub_hears(event);
}

void SimulatedMesh::cut(int number) {
  Island& island = this->island(number);
  island.linked = false;
  island.inbox.clear();
  island.outbox.clear();
  hub_hears(IslandDisconnected{island.id});
}

void SimulatedMesh::kill(int number) {
  Island& island = this->island(number);
  if (island.linked) cut(number);
  island = island.after_death(/*disk_stays=*/keeps_states);
}

void SimulatedMesh::remove(int number) {
  disk_.remove(island(number).id);
  hub_hears(IslandRemoved{island(number).id, "removed"});
}

void SimulatedMesh::restart_hub() {
  for (auto& [number, island] : all) {
    island.linked = false;
    island.inbox.clear();
    island.outbox.clear();
  }
  hub_.emplace(
      run, disk_.start(), [](const HubCommit& commit) { return fake_sha256(commit_record(commit)); }, fragment_numels_);
}

void SimulatedMesh::roll_back(OuterStep to, bool automatic) { hub_hears(disk_.decide_rollback(to, automatic)); }

void SimulatedMesh::restore() {
  disk_.restore(backup_.value());
  restart_hub();
}

void SimulatedMesh::say(int number, IslandMessage message) {
  hub_hears(IslandSaid{island(number).id, std::move(message)});
}

void SimulatedMesh::pass(Clock::duration time) {
  now_ += time;
  for (auto& [number, island] : all) {
    if (island.linked) hub_hears(IslandSaid{island.id, island.heartbeat});
  }
  hub_hears(Tick{});
  if (!wants_back_) return;
  const OuterStep to = *std::exchange(wants_back_, std::nullopt);
  rollbacks_that_fail-- > 0 ? hub_hears(RollBackFailed{to}) : roll_back(to, true);
}

// ---- the hub's actions, and what must hold

void SimulatedMesh::carry_out(const RoundCoordinator::Actions& actions) {
  just_committed_ = false;
  for (const CoordinatorAction& action : actions) {
    std::visit([this](const auto& a) { carry_out(a); }, action);
  }
  most_open = std::max(most_open, hub_->rounds().size());
}

void SimulatedMesh::carry_out(const SendTo& send) {
  Island* island = find(send.island);
  if (const auto* commit = std::get_if<HubCommit>(&send.message)) {
    if (!disk_.is_commit_of_late(*commit)) violate("a commit is told before it is on the disk");
    const auto waiting = [&] { return std::ranges::count_if(island->inbox, is<HubCommit>); };
    if (island != nullptr && waiting() >= run.fragments) violate("more commits are told than an island has lanes");
    if (just_committed_ && (island == nullptr || !island->holds(*commit))) {
      violate("a member is told to commit what it does not hold");
    }
  }
  if (const auto* attempt = std::get_if<HubAttempt>(&send.message)) {
    direct_attempts += attempt->schedule == Schedule::kDirect ? 1 : 0;
  }
  if (std::holds_alternative<HubProbe>(send.message) && hub_->phase() == RoundCoordinator::Phase::kSyncing) {
    violate("a link is probed while the ring needs it");
  }
  if (std::holds_alternative<HubNeighbours>(send.message) && hub_->phase() == RoundCoordinator::Phase::kSyncing) {
    violate("islands are to dial ahead while the ring needs the links");
  }
  if (!std::visit([this](const auto& message) { return names_its_fragment(run, message); }, send.message)) {
    violate("a message names another fragment than its round's");
  }
  if (island != nullptr && island->linked) island->inbox.push_back(send.message);
}

void SimulatedMesh::carry_out(const CloseConnection& close) {
  Island* island = find(close.island);
  if (island == nullptr) return;
  for (const HubMessage& message : island->inbox) {
    if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) island->goodbye = *goodbye;
  }
  island->linked = false;
}

void SimulatedMesh::carry_out(const PersistCommit& persist) {
  const HubCommit& commit = persist.commit;
  disk_.save(persist);
  honest_hashes[commit.round.value + 1] = fake_sha256(honest_hashes[commit.round.value] + commit.digest);
  commits_.push_back(commit);
  just_committed_ = true;
}

void SimulatedMesh::carry_out(const PersistRollback& back) {
  disk_.save(back);
  std::erase_if(honest_hashes, [&](const auto& entry) { return entry.first > back.to.value; });
}

// ---- time

bool SimulatedMesh::act(Island& island) {
  if (!island.running) return false;
  if (!island.outbox.empty() && island.linked) {
    const IslandMessage message = island.outbox.front();
    island.outbox.pop_front();
    hub_hears(IslandSaid{island.id, message});
    return true;
  }
  if (!island.inbox.empty()) {
    const HubMessage message = island.inbox.front();
    island.inbox.pop_front();
    island.received.push_back(message);
    island.take(*this, message);
    return true;
  }
  return trains_by_itself && island.work(*this);
}

void SimulatedMesh::settle() {
  for (int i = 0; i < 400; ++i) {
    bool acted = false;
    for (auto& [number, island] : all) acted = act(island) || acted;
    if (!acted) return;
  }
}

void SimulatedMesh::settle_once() {
  for (auto& [number, island] : all) act(island);
}

void SimulatedMesh::settle_randomly(std::mt19937& random, int steps) {
  if (all.empty()) return;
  for (int i = 0; i < steps; ++i) {
    auto chosen = std::next(all.begin(), static_cast<int>(random() % all.size()));
    act(chosen->second);
  }
}

}  // namespace atl
