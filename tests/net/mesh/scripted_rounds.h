// Open rounds of two fragments without a coordinator: what they decide is noted, and done as far as it concerns them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "net/base/sha256.h"
#include "net/mesh/open_round.h"
#include "tests/net/mesh/coordinator_script.h"

namespace atl {

inline RunConfig two_fragments() {
  RunConfig run = small_run();
  run.fragments = 2;
  run.straggler_grace = 10s;
  return run;
}

inline CoordinatorMemory first_state() {
  CoordinatorMemory memory;
  memory.agreed_hash = fake_sha256("initial");
  return memory;
}

// Rounds 0, 1, 2, ...; at most two are open. Notes what they decide, and does of it what concerns them.
class ScriptedRounds final : public MeshVerdicts {
 public:
  explicit ScriptedRounds(int islands) : turn(two_fragments()), members(turn), links(turn), trust(turn, first_state()) {
    turn.begin(Clock::time_point(1h));
    for (int i = 1; i <= islands; ++i) enter(i);
    begin(OuterStep{0});
  }

  static IslandId id(int island) { return IslandId{"isl-" + std::to_string(island)}; }
  MeshIsland& island(int number) { return *members.find(id(number)); }
  OpenRound& at(std::uint32_t round) { return *open.at(OuterStep{round}); }
  bool is_open(std::uint32_t round) const { return open.contains(OuterStep{round}); }

  void enter(int number) {
    IslandConnected event;
    event.entry =
        RosterEntry{id(number), id(number).value, Address{"10.0.0.1", static_cast<std::uint16_t>(number)}, ""};
    members.enter(event).island.standing = MeshIsland::Standing::kTraining;
  }

  // For all that train and are through with the one before.
  void begin(OuterStep round) {
    auto fresh = std::make_unique<OpenRound>(round, RoundSurroundings{turn, members, links, trust, leases, *this});
    const auto before = round.value > 0 ? open.find(OuterStep{round.value - 1}) : open.end();
    if (before != open.end()) fresh->parts().follow(&before->second->parts());
    std::vector<MeshIsland*> trainers;
    for (auto& [name, one] : members.islands()) {
      if (one.trains() && fresh->parts().may_work(name)) trainers.push_back(&one);
    }
    fresh->parts().begin(trainers, {}, {});
    open[round] = std::move(fresh);
  }

  // As the coordinator does after each event.
  void settle() {
    for (const bool attempts : {true, false}) {
      std::vector<OuterStep> numbers;
      for (const auto& [number, round] : open) numbers.push_back(number);
      for (const OuterStep number : numbers) {
        if (!open.contains(number)) continue;
        attempts ? open[number]->settle_attempt() : open[number]->settle_parts();
      }
    }
    if (open.empty()) begin(committed);
    const OuterStep next{open.rbegin()->first.value + 1};
    if (open.size() < 2 && open.rbegin()->second->runs_attempt()) begin(next);
    closed.clear();
    const CoordinatorTurn::Actions fresh = turn.take();
    actions.insert(actions.end(), fresh.begin(), fresh.end());
    all.insert(all.end(), fresh.begin(), fresh.end());
  }

  void ready(int number, std::uint32_t round, std::uint64_t tokens = 64) {
    if (is_open(round))
      at(round).said(island(number), IslandReady{OuterStep{round}, tokens, 0.5, 2.0, fragment(round)});
    settle();
  }
  void have(int number, std::uint32_t round, std::uint32_t attempt, const std::string& digest = kDigest) {
    const IslandHave message{OuterStep{round}, Attempt{attempt}, digest, 0.1, fragment(round)};
    if (is_open(round)) at(round).said(island(number), message);
    settle();
  }
  void failed(int number, std::uint32_t round, std::uint32_t attempt, std::vector<bool> whole = {}) {
    IslandAttemptFailed message{OuterStep{round}, Attempt{attempt}, std::nullopt, "reset", std::move(whole)};
    message.fragment = fragment(round);
    if (is_open(round)) at(round).said(island(number), message);
    settle();
  }
  void cut(int number) {
    members.leave(island(number));
    for (const OuterStep round : numbers()) {
      if (open.contains(round)) open[round]->disconnected(id(number));
    }
    settle();
  }
  void pass(Clock::duration time) {
    turn.begin(turn.now() + time);
    members.budget().save(turn.now(), members.count_here());
    settle();
  }

  std::vector<OuterStep> numbers() const {
    std::vector<OuterStep> list;
    for (const auto& [number, round] : open) list.push_back(number);
    return list;
  }
  FragmentId fragment(std::uint32_t round) const { return turn.run().fragment_of(OuterStep{round}); }

  template <class Message>
  std::vector<Message> sent(std::optional<int> to = {}) const {  // of all time
    std::vector<Message> found;
    for (const CoordinatorAction& action : all) {
      const auto* send = std::get_if<SendTo>(&action);
      if (send == nullptr || (to && send->island != id(*to))) continue;
      if (const auto* message = std::get_if<Message>(&send->message)) found.push_back(*message);
    }
    return found;
  }

  // ---- MeshVerdicts
  void start_recovering(const IslandId& who) override {
    for (const OuterStep round : numbers()) {
      if (open.contains(round)) open[round]->lose(who);
    }
    for (auto& [number, round] : open) round->drop(who);
    if (MeshIsland* one = members.find(who)) one->standing = MeshIsland::Standing::kRecovering;
  }
  void send_away(const IslandId& who, ErrorCode, const std::string&) override {
    sent_away.push_back(who);
    start_recovering(who);
  }
  void begin_anew(const IslandId& who, OuterStep round) override {
    for (auto& [number, later] : open) {
      if (number <= round) continue;
      later->lose(who);
      later->drop(who);
    }
  }
  void tell_parts(const IslandId&) override {}
  bool may_average() const override { return true; }
  bool may_commit(OuterStep round) const override { return round == committed; }
  void commit(OpenRound& round) override {
    const OpenAttempt done = round.take_attempt();
    const HubCommit record = round.record(done);
    turn.act(round.account(done, record));
    committed = OuterStep{round.round().value + 1};
    std::set<IslandId> averaged;
    for (const AttemptMember& member : done.order()) averaged.insert(member.id);
    round.close(averaged);
    closed.push_back(std::move(open.extract(round.round()).mapped()));
    if (open.contains(committed)) open[committed]->parts().follow(nullptr);
    for (const auto& [name, one] : members.islands()) {
      if (!done.live().contains(name)) start_recovering(name);
    }
  }

  CoordinatorTurn turn;
  Membership members;
  MeshLinks links;
  MeshTrust trust;
  LeaseBook leases{0, {}};
  OuterStep committed;
  OpenRounds open;
  std::vector<std::unique_ptr<OpenRound>> closed;
  std::vector<IslandId> sent_away;
  CoordinatorTurn::Actions actions, all;  // not looked at yet, of all time
};

inline void all_say_ready(ScriptedRounds& rounds, int islands, std::uint32_t round) {
  for (int i = 1; i <= islands; ++i) rounds.ready(i, round);
}

// Both rounds are averaged by all.
inline void average_both(ScriptedRounds& rounds, int islands) {
  all_say_ready(rounds, islands, 0);
  all_say_ready(rounds, islands, 1);
}

template <class Message>
std::vector<Message> of_round(const std::vector<Message>& messages, std::uint32_t round) {
  std::vector<Message> found;
  for (const Message& message : messages) {
    if (message.round == OuterStep{round}) found.push_back(message);
  }
  return found;
}

}  // namespace atl
