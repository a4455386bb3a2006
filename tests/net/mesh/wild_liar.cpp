#include "tests/net/mesh/wild_liar.h"

#include <algorithm>

#include "tests/net/mesh/simulated_island.h"

namespace atl {

using namespace std::chrono_literals;

// Who plots together may draw the same moods at the same times. The first is drawn with the first tick.
WildLiar::WildLiar(TimedMesh& mesh, IslandId id, SharedConspiracy plot, unsigned seed)
    : Liar(mesh, std::move(id), std::move(plot)),
      random_(seed * 31 + static_cast<unsigned>(plot_->number_of(this->id()))),
      moods_(seed % 2 == 0 ? seed : seed * 37 + static_cast<unsigned>(plot_->number_of(this->id()))) {}

void WildLiar::draw_mood() {
  const auto is = [this](double probability) {
    return std::uniform_real_distribution<double>(0, 1)(moods_) < probability;
  };
  const auto of = [this](auto... values) {
    const std::array all{values...};
    return all[moods_() % all.size()];
  };
  mood_ = Mood{};
  mood_ends_ = mesh_.now() + std::chrono::seconds(5 + moods_() % of(20u, 90u, 400u, 2000u));
  // Honest for a while, or one or two things for as long as it likes, or many at once.
  const unsigned kind = moods_() % 20;
  if (kind < 2) return;
  const bool focused = kind < 13;
  const unsigned chosen = 1u << moods_() % 8, also = is(0.4) ? 1u << moods_() % 8 : 0;
  const auto does = [&](unsigned thing, double otherwise) {
    return focused ? ((chosen | also) & (1u << thing)) != 0 : is(otherwise);
  };
  if (does(0, 0.3)) mood_.to_peers = of(Port::kRefuses, Port::kSwallows);
  if (does(0, 0.15)) mood_.to_hub = of(Port::kOpen, Port::kRefuses, Port::kSwallows);
  if (does(0, 0) || does(1, 0.5)) {
    mood_.conduct = of(RingConduct::kSilent, RingConduct::kStalls, RingConduct::kSlow, RingConduct::kCloses,
                       RingConduct::kCuts, RingConduct::kAlters);
  }
  mood_.draws_conduct = focused ? 0 : of(0.0, 0.0, 0.5);
  const std::size_t message = moods_() % mood_.ways.size();
  const Way way = of(Way::kNothing, Way::kLate, Way::kAltered);
  for (std::size_t i = 0; i < mood_.ways.size(); ++i) {
    if (focused ? does(2, 0) && i == message : is(0.3))
      mood_.ways[i] = focused ? way : of(Way::kNothing, Way::kLate, Way::kAltered);
  }
  if (is(0.9)) mood_.ways[1] = Way::kTruth;  // heartbeats
  mood_.truth = focused ? 0 : of(0.0, 0.0, 0.5, 0.9);
  if (does(3, 0.3)) {
    mood_.inner =
        std::chrono::duration_cast<Clock::duration>(mesh_.run().straggler_grace * of(0.1, 0.5, 0.9, 0.99, 1.5));
  }
  mood_.late = of(Clock::duration(100ms), Clock::duration(3s), Clock::duration(8s), Clock::duration(30s));
  mood_.says_by_itself = focused && !does(4, 0) ? 0 : of(0.0, 0.1, 1.0);
  if (does(5, 0.4)) {  // one report for all attempts
    mood_.says_of_attempts = of(0.5, 1.0);
    mood_.same_report = focused;
    draw(mood_.report);
  }
  if (does(6, 0.4)) mood_.goes = of(0.02, 0.2, 0.6);
  mood_.returns = does(7, 0.3);  // also what makes any of the others forgotten
  // What it gives is none of its words: coordinator_work_test has that.
  if (does(7, 0.1)) mood_.scale = of(1.0, 0.0, 3.0, 100.0);
  mood_.rejoins_at_once = is(0.7);
  mood_.claims_truth = is(0.8);
}

void WildLiar::stop() {
  stopped_ = true;
  mood_ = Mood{};
  if (!linked()) link();
}

// ---- what it does

RingConduct WildLiar::conduct(const HubAttempt&) {
  if (is(mood_.truth)) return RingConduct::kTakesPart;
  if (!is(mood_.draws_conduct)) return mood_.conduct;
  return any({RingConduct::kTakesPart, RingConduct::kSilent, RingConduct::kStalls, RingConduct::kSlow,
              RingConduct::kCloses, RingConduct::kCuts, RingConduct::kAlters});
}

TimedValues WildLiar::gradient() const {
  TimedValues values = Liar::gradient();
  for (double& value : values) value *= mood_.scale;
  return values;
}

Clock::duration WildLiar::inner_phase() { return Liar::inner_phase() + mood_.inner; }

void WildLiar::was_closed() {
  const auto away =
      mood_.rejoins_at_once ? Clock::duration(300ms) : Clock::duration(std::chrono::seconds(1 + random_() % 30));
  mesh_.after(away, [this] { link(); });
}

IslandHello WildLiar::hello() {
  IslandHello hello = Liar::hello();
  if (mood_.claims_truth) return hello;
  hello.outer_step = any<std::optional<OuterStep>>({std::nullopt, round(), OuterStep{0}});
  hello.state_hash = hello.outer_step ? hex() : "";
  if (is(0.5)) hello.work = HeldWork{round(), number(8), number(8)};
  return hello;
}

void WildLiar::ticks() {
  if (stopped_) return;
  if (mesh_.now() >= mood_ends_) draw_mood();
  if (!linked()) return;
  const double seconds = Seconds(mesh_.times().tick).count();
  if (is(mood_.says_by_itself * seconds)) say_now(draw());
  if (!is(mood_.goes * seconds)) return;
  if (is(0.5)) {
    unlink();
    return was_closed();
  }
  IslandLeaving leaving;
  draw(leaving);
  say_now(leaving);
}

bool WildLiar::takes(const HubMessage& message) {
  if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
    newest_ = *attempt;
    if (is(mood_.says_of_attempts)) report(*attempt);
  }
  if (mood_.returns && std::holds_alternative<HubRecover>(message)) {
    say_now(IslandLeaving{"a lie", false});
    return false;
  }
  return true;
}

void WildLiar::report(const HubAttempt& attempt) {
  IslandMessage said = draw();
  if (mood_.same_report) {
    IslandAttemptFailed failed = mood_.report;
    failed.round = attempt.round;
    failed.attempt = attempt.attempt;
    if (failed.peer) failed.peer = honest_neighbour(attempt);
    said = failed;
  } else if (is(0.7)) {
    IslandAttemptFailed failed;
    draw(failed);
    said = failed;
  }
  const bool at_once = mood_.same_report || is(0.5);
  later(at_once ? Clock::duration(1ms) : mood_.late, [this, said] { say_now(said); });
}

bool WildLiar::says(IslandMessage& message) {
  const Way way = is(mood_.truth) ? Way::kTruth : mood_.ways[message.index()];
  if (auto* ready = std::get_if<IslandReady>(&message)) ready->norm_over_steps *= std::abs(mood_.scale);
  switch (way) {
    case Way::kTruth: return true;
    case Way::kNothing: return false;
    case Way::kLate: later(mood_.late, [this, message] { say_now(message); }); return false;
    case Way::kAltered: break;
  }
  std::visit([this](auto& its) { draw(its); }, message);
  return true;
}

// ---- what it draws

double WildLiar::figure(double usual) {
  return any({usual, usual, 2 * usual, usual / 2, 0.0, -usual, 1e-9, 1e300, std::numeric_limits<double>::infinity()});
}

std::uint64_t WildLiar::number(std::uint64_t usual) {
  return any<std::uint64_t>({usual, usual, usual, usual + 1, usual - 1, 0, 1, 1'000'000, ~std::uint64_t{0}});
}

std::string WildLiar::hex() {
  const std::string truth = mesh_.honest_hash(mesh_.hub().committed());
  const std::string held = average() ? average()->digest : truth;
  return any<std::string>({truth, held, held, fake_sha256("a lie"), fake_sha256(id().value), ""});
}

OuterStep WildLiar::round() {
  const OuterStep now = mesh_.hub().committed();
  return any<OuterStep>({now, now, now, now, OuterStep{now.value + 1}, OuterStep{now.value - (now.value > 0 ? 1 : 0)},
                         OuterStep{1'000'000}});
}

Attempt WildLiar::attempt() {
  const Attempt now = newest_ ? newest_->attempt : Attempt{1};
  return any<Attempt>({now, now, now, now, Attempt{now.value + 1}, Attempt{now.value - 1}, Attempt{1'000'000}});
}

IslandId WildLiar::member() {
  if (newest_ && is(0.6)) {
    const std::vector<IslandId> next = neighbours(*newest_);
    if (!next.empty()) return next[random_() % next.size()];
  }
  if (is(0.3)) return plot_->victim;
  if (is(0.1)) return IslandId{"isl-unknown"};
  return std::next(mesh_.islands().begin(), static_cast<std::ptrdiff_t>(random_() % mesh_.islands().size()))->first;
}

IslandMessage WildLiar::draw() {
  IslandMessage message;
  const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
    const std::size_t index = random_() % sizeof...(I);
    ((index == I ? void(message.emplace<I>()) : void()), ...);
  };
  make(std::make_index_sequence<std::variant_size_v<IslandMessage>>());
  std::visit([this](auto& its) { draw(its); }, message);
  return message;
}

void WildLiar::draw(IslandHeartbeat& message) {
  message.round = round();
  message.phase = "training";
  message.tokens_per_second = figure(1000);
}

void WildLiar::draw(IslandReady& message) {
  const RunConfig& run = mesh_.run();
  const std::uint64_t whole = std::uint64_t{run.inner_steps} * run.sequences_per_step * run.sequence_length;
  message.round = round();
  message.tokens = is(0.8) ? any<std::uint64_t>({whole, 0, 1, whole / 2}) : number(whole);
  message.norm_over_steps = figure(0.02);
  message.mean_loss_nats = figure(3);
  if (is(0.5))
    message.lease_first_sequence = number(TimedIsland::round() ? TimedIsland::round()->lease_first_sequence : 0);
}

void WildLiar::draw(IslandHave& message) { message = {round(), attempt(), hex(), figure(0.1), {}}; }

void WildLiar::draw(IslandAttemptFailed& message) {
  message.round = round();
  message.attempt = attempt();
  message.peer.reset();
  if (is(0.7)) message.peer = member();
  message.reason = "a lie";
  message.whole_buckets.clear();
  if (is(0.5)) message.whole_buckets.assign(any<std::size_t>({1, 1, 1, 2, 100}), is(0.5));
  message.silent = is(0.3);
  message.stalled_after.reset();
  if (is(0.3)) message.stalled_after = number(1000);
  message.too_large = is(0.2);
  message.never_met = is(0.2);
}

void WildLiar::draw(IslandApplied& message) { message = {round(), hex()}; }
void WildLiar::draw(IslandRecovered& message) { message = {round(), hex()}; }
void WildLiar::draw(IslandValidation& message) { message = {round(), figure(3)}; }
void WildLiar::draw(IslandLeaving& message) { message = {"a lie", is(0.4)}; }

void WildLiar::draw(IslandLinkReport& message) {
  message.links.clear();
  for (std::size_t i = random_() % 8; i > 0; --i) {
    message.links.push_back({member(), is(0.5), figure(50e6), figure(0.03), is(0.3), {}});
  }
}

void WildLiar::draw(IslandChunks& message) {
  message.round = round();
  message.attempt = attempt();
  if (message.digests.empty() || is(0.3)) message.digests.assign(random_() % 15, hex());
  for (std::string& digest : message.digests) {
    if (is(0.3)) digest = hex();
  }
}

void WildLiar::draw(IslandDurable& message) {
  message.states.clear();
  for (std::size_t i = random_() % 3; i > 0; --i) message.states.push_back({round(), hex()});
}

void WildLiar::draw(IslandUploaded& message) { message = {round(), hex(), is(0.5) ? "" : "a lie"}; }

void WildLiar::draw(IslandLeaseReturned& message) {
  const auto& held = TimedIsland::round();
  message = {round(), number(held ? held->lease_first_sequence : 0), "a lie", {}};
}

void WildLiar::draw(IslandEvaluation& message) { message = {round(), 0, {figure(1)}}; }

}  // namespace atl
