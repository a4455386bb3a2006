#include "tests/net/mesh/named_attackers.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "tests/net/mesh/simulated_island.h"

namespace atl {

using namespace std::chrono_literals;

void Liar::was_closed() {
  mesh_.after(back_after_, [this] { link(); });
}

IslandHello Liar::hello() {
  IslandHello hello;
  hello.outer_step = mesh_.hub().committed();
  hello.state_hash = mesh_.honest_hash(*hello.outer_step);
  hold(*hello.outer_step, hello.state_hash);
  hello.dials_ahead = true;
  return hello;
}

std::vector<IslandId> Liar::neighbours(const HubAttempt& attempt) const {
  std::vector<IslandId> ids;
  const std::size_t size = attempt.order.size();
  for (std::size_t i = 0; i < size; ++i) {
    if (attempt.order[i].id == id()) continue;
    const bool next_to = attempt.order[(i + 1) % size].id == id() || attempt.order[(i + size - 1) % size].id == id();
    if (next_to || attempt.schedule == Schedule::kDirect) ids.push_back(attempt.order[i].id);
  }
  return ids;
}

std::optional<IslandId> Liar::honest_neighbour(const HubAttempt& attempt) const {
  std::optional<IslandId> found;
  for (const IslandId& id : neighbours(attempt)) {
    if (id == plot_->victim) return id;
    if (!is_liar(id)) found = id;
  }
  return found;
}

namespace {

// 2. Trains nothing, and nobody is at its port. Once it sits out, it leaves and comes again.
struct Idle : Liar {
  struct Way {
    Port to_peers = Port::kRefuses, to_hub = Port::kOpen;
    bool answers = true;  // aborts
    bool leaves = true;
  };
  Idle(TimedMesh& mesh, IslandId id, SharedConspiracy plot, Way way)
      : Liar(mesh, std::move(id), std::move(plot)), way_(way) {}

  Port port(bool for_hub) const override { return for_hub ? way_.to_hub : way_.to_peers; }
  RingConduct conduct(const HubAttempt&) override { return RingConduct::kSilent; }
  bool takes(const HubMessage& message) override {
    if (const auto* recover = std::get_if<HubRecover>(&message)) {  // it sat out the round
      if (way_.leaves) return leave(), false;
      adopt(recover->outer_step, recover->state_hash);
      return false;
    }
    if (std::holds_alternative<HubAbort>(message)) aborted_at_ = mesh_.now();
    if (std::holds_alternative<HubAttempt>(message) || std::holds_alternative<HubRoundBegin>(message)) {
      aborted_at_.reset();
    }
    return true;
  }
  bool says(IslandMessage& message) override {
    return way_.answers || !std::holds_alternative<IslandAttemptFailed>(message);
  }
  void ticks() override {
    if (way_.leaves && linked() && aborted_at_ && mesh_.now() - *aborted_at_ > 8s) leave();
  }
  void leave() {
    aborted_at_.reset();
    say_now(IslandLeaving{"", false});
  }
  const Way way_;
  std::optional<Clock::time_point> aborted_at_;
};

// 3. and 7. Says another digest than it holds.
struct WrongDigest : Liar {
  enum class Shows { kTruth, kNothing, kOneBadEdge, kFrames, kOtherBytes };
  WrongDigest(TimedMesh& mesh, IslandId id, SharedConspiracy plot, Shows shows, bool alone = false)
      : Liar(mesh, std::move(id), std::move(plot)), shows_(shows), alone_(alone) {}

  bool says(IslandMessage& message) override {
    if (auto* have = std::get_if<IslandHave>(&message); have != nullptr && lies_) {
      have->digest = fake_sha256(have->digest + (alone_ ? id().value : "a lie"));
    }
    if (auto* chunks = std::get_if<IslandChunks>(&message)) {
      if (shows_ == Shows::kNothing) return false;
      if (shows_ == Shows::kOtherBytes) chunks->digests.assign(chunks->digests.size(), fake_sha256("other"));
      if ((shows_ == Shows::kOneBadEdge || shows_ == Shows::kFrames) && bad_chunk_ < chunks->digests.size()) {
        chunks->digests[bad_chunk_] = fake_sha256("a lie");
      }
    }
    return true;
  }
  bool takes(const HubMessage& message) override {
    if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
      const std::size_t size = attempt->order.size();
      // It frames its victim by lying only where that one takes part.
      const auto with_victim = std::ranges::find(attempt->order, plot_->victim, &AttemptMember::id);
      lies_ = shows_ != Shows::kFrames || with_victim != attempt->order.end();
      const auto own = static_cast<std::size_t>(std::ranges::find(attempt->order, id(), &AttemptMember::id) -
                                                attempt->order.begin());
      const IslandId victim = honest_neighbour(*attempt).value_or(id());
      // Of what it has from the one before, it is the last to get the chunk after the next; its own chunk goes to the
      // next alone.
      const bool is_before = attempt->order[(own + size - 1) % size].id == victim;
      const bool is_next = attempt->order[(own + 1) % size].id == victim;
      bad_chunk_ = is_before ? (own + 2) % size : is_next ? (own + 1) % size : size;
    }
    return true;
  }
  const Shows shows_;
  const bool alone_;
  std::size_t bad_chunk_ = 0;
  bool lies_ = true;
};

// 4. Ready when the others' grace is nearly over; its work is good. Or it answers nothing then.
struct Late : Liar {
  Late(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool answers, double of_grace = 0.9)
      : Liar(mesh, std::move(id), std::move(plot)), answers_(answers), of_grace_(of_grace) {}

  Clock::duration inner_phase() override {
    return mesh_.times().inner + std::chrono::duration_cast<Clock::duration>(mesh_.run().straggler_grace * of_grace_);
  }
  RingConduct conduct(const HubAttempt&) override { return answers_ ? RingConduct::kTakesPart : RingConduct::kSilent; }
  bool says(IslandMessage& message) override {
    const bool is_answer = std::holds_alternative<IslandHave>(message) ||
                           std::holds_alternative<IslandAttemptFailed>(message) ||
                           std::holds_alternative<IslandChunks>(message);
    return answers_ || !is_answer;
  }
  const bool answers_;
  const double of_grace_;
};

// 4. In time, and then it never answers an attempt.
struct Mute : Late {
  Mute(TimedMesh& mesh, IslandId id, SharedConspiracy plot, RingConduct conduct)
      : Late(mesh, std::move(id), std::move(plot), false, 0), conduct_(conduct) {}
  RingConduct conduct(const HubAttempt&) override { return conduct_; }
  const RingConduct conduct_;
};

// 5. What it gives, and says that it gives, is turned round.
struct Flipped : Liar {
  Flipped(TimedMesh& mesh, IslandId id, SharedConspiracy plot, double times)
      : Liar(mesh, std::move(id), std::move(plot)), times_(times) {}
  TimedValues gradient() const override {
    TimedValues values = Liar::gradient();
    for (double& value : values) value *= -times_;
    return values;
  }
  bool says(IslandMessage& message) override {
    if (auto* ready = std::get_if<IslandReady>(&message)) ready->norm_over_steps *= times_;
    return true;
  }
  const double times_;
};

// 6. Every average is too large.
struct Complains : Liar {
  Complains(TimedMesh& mesh, IslandId id, SharedConspiracy plot) : Liar(mesh, std::move(id), std::move(plot)) {}
  bool says(IslandMessage& message) override {
    const auto* have = std::get_if<IslandHave>(&message);
    if (have == nullptr) return true;
    IslandAttemptFailed failed{have->round, have->attempt, std::nullopt, "too large"};
    failed.too_large = true;
    message = failed;
    return true;
  }
};

// 8. and 9. Whatever comes of an attempt, it says that it failed: at the edge with its victim, or with nobody.
struct Accuser : Liar {
  struct Way {
    int times = 0;  // so often in all; 0: for ever
    bool names = true, silent = false, stalled = false;
    bool returns = false;     // left out, it leaves and comes again
    bool each_other = false;  // two liars say it of their own edge, where they have one
    Clock::duration after{};  // since the attempt began
  };
  Accuser(TimedMesh& mesh, IslandId id, SharedConspiracy plot, Way way)
      : Liar(mesh, std::move(id), std::move(plot)), way_(way) {}

  bool takes(const HubMessage& message) override {
    if (way_.returns && std::holds_alternative<HubRecover>(message)) {
      say_now(IslandLeaving{"", false});
      return false;
    }
    const auto* attempt = std::get_if<HubAttempt>(&message);
    const auto victim = attempt != nullptr ? whom(*attempt) : std::nullopt;
    if (!victim || (way_.times > 0 && said_ >= way_.times)) return true;
    ++said_;
    IslandAttemptFailed failed{attempt->round, attempt->attempt, way_.names ? victim : std::nullopt,
                               victim->value + " closed every connection before it had sent all"};
    failed.silent = way_.silent;
    if (way_.stalled) failed.stalled_after = 0;
    later(way_.after, [this, failed] { say_now(failed); });
    return true;
  }
  std::optional<IslandId> whom(const HubAttempt& attempt) const {
    if (way_.each_other) {
      for (const IslandId& id : neighbours(attempt)) {
        if (is_liar(id)) return id;
      }
    }
    return honest_neighbour(attempt);
  }
  const Way way_;
  int said_ = 0;
};

// 11. One of them is here at a time, so that fewer seem to lie, and accuses the victim of all.
struct FramesByTurns : Liar {
  FramesByTurns(TimedMesh& mesh, IslandId id, SharedConspiracy plot) : Liar(mesh, std::move(id), std::move(plot)) {
    back_after_ = 1s;
  }
  bool its_turn() const {
    const auto minute = (mesh_.now().time_since_epoch() / 60s) % static_cast<long>(plot_->liars.size());
    return minute == plot_->number_of(id());
  }
  void was_closed() override {
    mesh_.after(1s, [this] { its_turn() ? link() : was_closed(); });
  }
  void ticks() override {
    if (linked() && !its_turn() && !gone_) {
      gone_ = true;
      say_now(IslandLeaving{"", false});
    }
    if (its_turn()) gone_ = false;
  }
  bool takes(const HubMessage& message) override {
    const auto* attempt = std::get_if<HubAttempt>(&message);
    if (attempt == nullptr || honest_neighbour(*attempt) != plot_->victim) return true;
    IslandAttemptFailed failed{attempt->round, attempt->attempt, plot_->victim, "it is silent"};
    failed.silent = true;
    later(400ms, [this, failed] { say_now(failed); });
    return true;
  }
  bool gone_ = false;
};

// 9. Each ring breaks at one of its edges.
struct Breaks : Liar {
  Breaks(TimedMesh& mesh, IslandId id, SharedConspiracy plot, RingConduct conduct, bool answers = true)
      : Liar(mesh, std::move(id), std::move(plot)), conduct_(conduct), answers_(answers) {}
  RingConduct conduct(const HubAttempt&) override { return conduct_; }
  bool says(IslandMessage& message) override {
    return answers_ || !std::holds_alternative<IslandAttemptFailed>(message);
  }
  const RingConduct conduct_;
  const bool answers_;
};

// 14. Has another outvoted, and is one of two that make the state then, of which it says nothing, or another hash.
struct Disputes : Breaks {
  Disputes(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool is_silent)
      : Breaks(mesh, std::move(id), std::move(plot), RingConduct::kAlters), is_silent_(is_silent) {}
  bool says(IslandMessage& message) override {
    auto* applied = std::get_if<IslandApplied>(&message);
    if (applied == nullptr) return true;
    applied->state_hash = std::string(64, 'e');
    return !is_silent_;
  }
  const bool is_silent_;
};

// 10. In the midst of each attempt its connection to the hub is gone, or it leaves, and is back at once.
struct Deserts : Liar {
  Deserts(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool leaves)
      : Liar(mesh, std::move(id), std::move(plot)), leaves_(leaves) {}
  bool takes(const HubMessage& message) override {
    if (!std::holds_alternative<HubAttempt>(message)) return true;
    later(mesh_.times().ring - 50ms, [this] {
      if (leaves_) return say_now(IslandLeaving{"", false});
      unlink();
      was_closed();
    });
    return true;
  }
  const bool leaves_;
};

// 10. Gives more than it says: every average is too large, and it alone does not say so.
struct GivesMore : Liar {
  using Liar::Liar;
  TimedValues gradient() const override {
    TimedValues values = Liar::gradient();
    for (double& value : values) value *= 50;
    return values;
  }
};

// 10. Never ready for what it only receives, and comes again and again, for it is waited for a little each time.
struct Flaps : Liar {
  Flaps(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool leaves)
      : Liar(mesh, std::move(id), std::move(plot)), leaves_(leaves) {}
  bool takes(const HubMessage& message) override { return !std::holds_alternative<HubRoundBegin>(message); }
  void ticks() override {
    if (!linked() || mesh_.now() < next_) return;
    next_ = mesh_.now() + 1500ms;
    if (leaves_) return say_now(IslandLeaving{"", false});
    unlink();
    was_closed();
  }
  const bool leaves_;
  Clock::time_point next_{};
};

// 10. Fetches for ever, now and then as one that has just come.
struct Fetches : Liar {
  Fetches(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool returns)
      : Liar(mesh, std::move(id), std::move(plot)), returns_(returns) {}
  IslandHello hello() override { return {}; }
  bool says(IslandMessage& message) override {
    return !std::holds_alternative<IslandRecovered>(message) && !std::holds_alternative<IslandReady>(message);
  }
  void ticks() override {
    if (!returns_ || !linked() || mesh_.now() < next_) return;
    next_ = mesh_.now() + 20s;
    say_now(IslandLeaving{"", false});
  }
  const bool returns_;
  Clock::time_point next_{};
};

// 10. Says of each state that it is another one.
struct WrongState : Liar {
  WrongState(TimedMesh& mesh, IslandId id, SharedConspiracy plot) : Liar(mesh, std::move(id), std::move(plot)) {}
  bool says(IslandMessage& message) override {
    if (auto* applied = std::get_if<IslandApplied>(&message)) applied->state_hash = fake_sha256("a lie");
    return true;
  }
};

// 10. Lets an attempt fail, says that it holds the average as the others do, and then that it is another one.
struct Keeps : Liar {
  Keeps(TimedMesh& mesh, IslandId id, SharedConspiracy plot) : Liar(mesh, std::move(id), std::move(plot)) {}
  bool says(IslandMessage& message) override {
    auto* have = std::get_if<IslandHave>(&message);
    if (have == nullptr) return true;
    if (keeps_) {
      have->digest = fake_sha256("a lie");
    } else {
      message = IslandAttemptFailed{have->round, have->attempt, std::nullopt, "a lie", {true}};
    }
    return true;
  }
  bool takes(const HubMessage& message) override {
    if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
      keeps_ = !attempt->final_buckets.empty() && attempt->final_buckets[0];
    }
    return true;
  }
  bool keeps_ = false;
};

// 10. Its links are slow, it says, and so they are: next to nothing comes.
struct SlowByItsWord : Breaks {
  SlowByItsWord(TimedMesh& mesh, IslandId id, SharedConspiracy plot)
      : Breaks(mesh, std::move(id), std::move(plot), RingConduct::kSlow) {}
  void ticks() override {
    if (!linked() || mesh_.now() < next_) return;
    next_ = mesh_.now() + 30s;
    IslandLinkReport report;
    for (const auto& [other, island] : mesh_.islands()) {
      if (other == id()) continue;
      for (const bool outgoing : {false, true}) report.links.push_back({other, outgoing, 1.0, 10.0, false, {}});
    }
    say_now(report);
  }
  Clock::time_point next_{};
};

// 13. Has the average, it says, as soon as an attempt begins: a ring that takes longer than the grace is given up.
struct HasItAtOnce : Liar {
  using Liar::Liar;
  bool takes(const HubMessage& message) override {
    if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
      say_now(IslandHave{attempt->round, attempt->attempt, fake_sha256("a lie"), 0.1, {}});
    }
    return true;
  }
};

constexpr std::uint32_t kKnown = 3;  // rounds, and the hub knows how long an average takes

// 13. Fails long attempts at their end, or holds them up, and no edge more often than is forgiven.
struct FailsAFew : Liar {
  FailsAFew(TimedMesh& mesh, IslandId id, SharedConspiracy plot, int times, std::chrono::minutes forgiven,
            RingConduct conduct)
      : Liar(mesh, std::move(id), std::move(plot)), times_(times), forgiven_(forgiven), conduct_(conduct) {}

  // Nobody is at fault for as many edges as may be of liars, and one more where there are seven islands.
  std::optional<IslandId> whom(const HubAttempt& attempt) {
    const std::size_t islands = mesh_.islands().size(), most = most_liars(islands) + (islands < 7 ? 0 : 1);
    for (auto& [id, times] : failed_) {
      while (!times.empty() && mesh_.now() - times.front() > forgiven_) times.pop_front();
    }
    const auto of_late = std::ranges::count_if(failed_, [](const auto& entry) { return !entry.second.empty(); });
    for (const IslandId& id : neighbours(attempt)) {
      if (is_liar(id)) continue;
      const auto times = std::ssize(failed_[id]);
      if (times < times_ && (times > 0 || of_late < static_cast<std::ptrdiff_t>(most))) return id;
    }
    return std::nullopt;
  }
  RingConduct conduct(const HubAttempt& attempt) override {
    const auto seat = std::ranges::find(attempt.order, id(), &AttemptMember::id) - attempt.order.begin();
    const IslandId& next = attempt.order[static_cast<std::size_t>(seat + 1) % attempt.order.size()].id;
    const auto victim = whom(attempt);
    if (attempt.round.value < kKnown || conduct_ == RingConduct::kTakesPart || victim != next)
      return RingConduct::kTakesPart;
    failed_[next].push_back(mesh_.now());
    return conduct_;
  }
  bool takes(const HubMessage& message) override {
    const auto* attempt = std::get_if<HubAttempt>(&message);
    if (attempt == nullptr || conduct_ != RingConduct::kTakesPart) return true;
    if (const auto victim = whom(*attempt)) {
      failed_[*victim].push_back(mesh_.now());
      const IslandAttemptFailed failed{attempt->round, attempt->attempt, victim, "it closed every connection"};
      later(mesh_.times().ring - 50ms, [this, failed] { say_now(failed); });
    }
    return true;
  }
  const int times_;
  const Clock::duration forgiven_;
  const RingConduct conduct_;
  std::map<IslandId, std::deque<Clock::time_point>> failed_;
};

// 13. Has the first attempt fail when all have the average, so that the next one keeps it and shows nothing; then it
// says another digest, and what it holds when the others have nearly stopped waiting for that.
struct ShowsLate : Liar {
  ShowsLate(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool keeps)
      : Liar(mesh, std::move(id), std::move(plot)), keeps_(keeps) {}
  bool says(IslandMessage& message) override {
    if (auto* have = std::get_if<IslandHave>(&message)) {
      if (keeps_ && have->round != failed_round_) {
        failed_round_ = have->round;
        message = IslandAttemptFailed{have->round, have->attempt, std::nullopt, "a lie", {true}};
        return true;
      }
      have->digest = fake_sha256("a lie");
    }
    if (std::holds_alternative<IslandChunks>(message)) {
      later(mesh_.run().dead_after - 300ms, [this, message] { say_now(message); });
      return false;
    }
    return true;
  }
  const bool keeps_;
  std::optional<OuterStep> failed_round_;
};

// 13. Answers when an attempt has failed, when the others have nearly stopped waiting for that; a first one that
// names nobody, or an edge with its victim, has it fail.
struct AnswersLate : Liar {
  AnswersLate(TimedMesh& mesh, IslandId id, SharedConspiracy plot) : Liar(mesh, std::move(id), std::move(plot)) {}
  bool takes(const HubMessage& message) override {
    const auto* attempt = std::get_if<HubAttempt>(&message);
    if (attempt == nullptr || plot_->number_of(id()) > 0 || attempt->round == failed_round_) return true;
    failed_round_ = attempt->round;
    IslandAttemptFailed failed{attempt->round, attempt->attempt, std::nullopt, "a lie"};
    later(1ms, [this, failed] { say_now(failed); });
    return true;
  }
  bool says(IslandMessage& message) override {
    if (!std::holds_alternative<IslandAttemptFailed>(message)) return true;
    later(mesh_.run().dead_after - 300ms, [this, message] { say_now(message); });
    return false;
  }
  std::optional<OuterStep> failed_round_;
};

// 13. Leaves at the end of each attempt, and comes when the others have the next.
struct LeavesForLong : Liar {
  using Liar::Liar;
  bool takes(const HubMessage& message) override {
    if (!std::holds_alternative<HubAttempt>(message)) return true;
    later(mesh_.times().ring - 50ms, [this] {
      back_after_ = mesh_.times().ring;
      say_now(IslandLeaving{"", false});
    });
    return true;
  }
};

// 13. Holds up an attempt half way, says that its own link has got slow, and then that it is fast again.
struct GotSlow : Liar {
  using Liar::Liar;
  RingConduct conduct(const HubAttempt& attempt) override {
    return attempt.round.value < kKnown ? RingConduct::kTakesPart : RingConduct::kHalts;
  }
  bool says(IslandMessage& message) override {
    auto* failed = std::get_if<IslandAttemptFailed>(&message);
    if (failed != nullptr && failed->peer) {
      const double seconds = Seconds(mesh_.now() - began_).count();
      failed->stalled_after = static_cast<std::uint64_t>(65e3 * seconds);
    }
    return true;
  }
  bool takes(const HubMessage& message) override {
    if (std::holds_alternative<HubAttempt>(message)) began_ = mesh_.now();
    return true;
  }
  void ticks() override {
    if (!linked() || mesh_.now() < next_) return;
    next_ = mesh_.now() + 30s;
    IslandLinkReport report;
    for (const auto& [other, island] : mesh_.islands()) {
      if (other != id()) report.links.push_back({other, false, 50e6, 0.03, false, {}});
    }
    say_now(report);
  }
  Clock::time_point began_{}, next_{};
};

// 10. Something else each time that it is left out or that a while has passed, so that nothing is done often.
struct Rotates : Liar {
  Rotates(TimedMesh& mesh, IslandId id, SharedConspiracy plot, bool each_attempt)
      : Liar(mesh, std::move(id), std::move(plot)), each_attempt_(each_attempt) {}
  RingConduct conduct(const HubAttempt&) override {
    constexpr std::array kConducts{RingConduct::kSilent, RingConduct::kStalls, RingConduct::kSlow,
                                   RingConduct::kCloses, RingConduct::kCuts,   RingConduct::kAlters};
    return turn_ < kConducts.size() ? kConducts[turn_] : RingConduct::kTakesPart;
  }
  Clock::duration inner_phase() override {
    const auto usual = Liar::inner_phase();
    return turn_ == 6 ? usual + mesh_.run().straggler_grace * 9 / 10 : usual;
  }
  bool takes(const HubMessage& message) override {
    const bool ends = std::holds_alternative<HubRoundBegin>(message);
    if (ends || (each_attempt_ && std::holds_alternative<HubAbort>(message))) turn_ = (turn_ + 1) % kTurns;
    return true;
  }
  bool says(IslandMessage& message) override {
    auto* have = std::get_if<IslandHave>(&message);
    if (have == nullptr) return turn_ % 2 == 0 || !std::holds_alternative<IslandAttemptFailed>(message);
    IslandAttemptFailed failed{have->round, have->attempt, std::nullopt, "a lie"};
    failed.too_large = turn_ == 8;
    switch (turn_) {
      case 7: have->digest = fake_sha256("a lie"); return true;
      case 8:
      case 9: message = failed; return true;
      case 10: return false;
      case 11: {
        unlink();
        was_closed();
        return false;
      }
      default: return true;
    }
  }
  static constexpr std::size_t kTurns = 12;
  const bool each_attempt_;
  std::size_t turn_ = 0;
};

template <class Kind, class... Args>
auto maker(Args... args) {
  return
      [=](TimedMesh& mesh, const std::string& id, const SharedConspiracy& plot) { mesh.add<Kind>(id, plot, args...); };
}

}  // namespace

std::vector<NamedAttacker> named_attackers() {
  using Shows = WrongDigest::Shows;
  return {
      {"A2 trains nothing, refuses peers", maker<Idle>(Idle::Way{})},
      {"A2 trains nothing, swallows peers", maker<Idle>(Idle::Way{Port::kSwallows})},
      {"A2 trains nothing, swallows, mute", maker<Idle>(Idle::Way{Port::kSwallows, Port::kOpen, false})},
      {"A2 trains nothing, hidden from hub too", maker<Idle>(Idle::Way{Port::kRefuses, Port::kRefuses})},
      {"A2 trains nothing, stays", maker<Idle>(Idle::Way{Port::kRefuses, Port::kOpen, true, false})},
      {"A2 trains nothing, takes connections", maker<Idle>(Idle::Way{Port::kOpen, Port::kOpen})},
      {"A3 wrong digest, shows the truth", maker<WrongDigest>(Shows::kTruth)},
      {"A3 wrong digests, each its own", maker<WrongDigest>(Shows::kTruth, true)},
      {"A3 wrong digest, shows nothing", maker<WrongDigest>(Shows::kNothing)},
      {"A3 wrong digest, shows other bytes", maker<WrongDigest>(Shows::kOtherBytes)},
      {"A4 always late, grace 10 s", maker<Late>(true, 0.9), 10s},
      {"A4 always later than that, grace 10 s", maker<Late>(true, 1.5), 10s},
      {"A4 always late, grace 60 s", maker<Late>(true, 0.9)},
      {"A4 late and mute, grace 10 s", maker<Late>(false, 0.9), 10s},
      {"A4 never answers an attempt", maker<Mute>(RingConduct::kSilent)},
      {"A4 never answers, grace 10 s", maker<Mute>(RingConduct::kSilent), 10s},
      {"A4 takes part, never says so, grace 10 s", maker<Mute>(RingConduct::kTakesPart), 10s},
      {"A4 sends next to nothing", maker<Mute>(RingConduct::kSlow)},
      {"A5 flipped sign x1", maker<Flipped>(1.0)},
      {"A5 flipped sign x2", maker<Flipped>(2.0)},
      {"A5 flipped sign x7", maker<Flipped>(7.0)},
      {"A6 too large", maker<Complains>()},
      {"A7 outvoted, shows one bad edge", maker<WrongDigest>(Shows::kOneBadEdge)},
      {"A7 outvoted, shows an edge with its victim", maker<WrongDigest>(Shows::kFrames)},
      {"A8 three accusations of one", maker<Accuser>(Accuser::Way{.times = 3}), 60s, false},
      {"A8 three accusations of one, silent", maker<Accuser>(Accuser::Way{.times = 3, .silent = true}), 60s, false},
      {"A9 accuses for ever", maker<Accuser>(Accuser::Way{})},
      {"A9 accuses for ever, silent", maker<Accuser>(Accuser::Way{.silent = true})},
      {"A9 accuses for ever, stalled", maker<Accuser>(Accuser::Way{.stalled = true})},
      {"A9 accuses for ever, late", maker<Accuser>(Accuser::Way{.after = 300ms})},
      {"A9 names nobody", maker<Accuser>(Accuser::Way{.names = false})},
      {"A9 accuses for ever, leaves and returns", maker<Accuser>(Accuser::Way{.returns = true})},
      {"A9 names nobody, leaves and returns", maker<Accuser>(Accuser::Way{.names = false, .returns = true})},
      {"A9 two of their own edge", maker<Accuser>(Accuser::Way{.silent = true, .each_other = true})},
      {"A9 closes its connections", maker<Breaks>(RingConduct::kCloses)},
      {"A9 cuts at the end", maker<Breaks>(RingConduct::kCuts)},
      {"A9 is silent in the ring", maker<Breaks>(RingConduct::kSilent)},
      {"A9 stalls", maker<Breaks>(RingConduct::kStalls)},
      {"A9 slow", maker<Breaks>(RingConduct::kSlow), 60s, true, 60min},
      {"A11 starves those after it", maker<Breaks>(RingConduct::kStarves)},
      {"A11 starves those after it, grace 10 s", maker<Breaks>(RingConduct::kStarves), 10s},
      {"A11 starves its next", maker<Breaks>(RingConduct::kStarvesNext), 60s, true, 60min},
      {"A11 starves its next, grace 10 s", maker<Breaks>(RingConduct::kStarvesNext), 10s, true, 60min},
      {"A12 frame by turns", maker<FramesByTurns>(), 60s},
      {"A9 alters bytes", maker<Breaks>(RingConduct::kAlters)},
      {"A14 says nothing of the state", maker<Disputes>(true)},
      {"A14 says another hash", maker<Disputes>(false)},
      {"A10 is cut off in each attempt", maker<Deserts>(false)},
      {"A10 leaves in each attempt", maker<Deserts>(true)},
      {"A10 gives more than it says", maker<GivesMore>(), 60s, true, 60min},
      {"A13 gives more, ring of 20 s", maker<GivesMore>(), 60s, true, 180min, 20s},
      {"A10 flaps, never ready", maker<Flaps>(false)},
      {"A10 leaves and comes, never ready", maker<Flaps>(true)},
      {"A10 fetches for ever", maker<Fetches>(false)},
      {"A10 fetches for ever, anew each time", maker<Fetches>(true)},
      {"A10 wrong state", maker<WrongState>()},
      {"A10 keeps what it does not hold", maker<Keeps>()},
      {"A10 slow by its word", maker<SlowByItsWord>(), 60s, true, 60min},
      {"A13 has it at once, ring of 2 min", maker<HasItAtOnce>(), 60s, true, 60min, 120s},
      {"A13 fails a few at their end, ring of 2 min", maker<FailsAFew>(2, 61min, RingConduct::kTakesPart), 60s, true,
       180min, 120s},
      {"A13 holds up a few, ring of 1 min", maker<FailsAFew>(1, 72min, RingConduct::kSlow), 60s, true, 180min, 60s},
      {"A13 shows its bytes late", maker<ShowsLate>(false)},
      {"A13 shows its bytes late, and keeps them", maker<ShowsLate>(true)},
      {"A13 answers late", maker<AnswersLate>()},
      {"A13 leaves for long, ring of 10 s", maker<LeavesForLong>(), 60s, true, 20min, 10s},
      {"A13 has got slow, ring of 20 s", maker<GotSlow>(), 60s, true, 60min, 20s},
      {"A10 rotates", maker<Rotates>(false)},
      {"A10 rotates with each attempt", maker<Rotates>(true)},
  };
}

}  // namespace atl
