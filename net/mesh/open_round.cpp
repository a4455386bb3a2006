#include "net/mesh/open_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "net/base/round_words.h"
namespace atl {
namespace {

constexpr std::chrono::milliseconds kFirstRetryDelay{500};
constexpr std::chrono::milliseconds kLongestRetryDelay{5'000};
constexpr std::chrono::seconds kStandstillRetryDelay{30};  // when nobody can tell whose fault it is
constexpr int kMostStallDoublings = 6;
// Who makes an average take longer than so many times what it takes usually costs the others more than it adds.
constexpr int kMostOfUsual = 2;
constexpr int kMostNonFiniteRounds = 3;  // in a row
// The norm of an average may exceed the mean of its parts' norms by what quantising adds; with error feedback, by what
// earlier rounds still owe, too.
constexpr double kNormSlack = 1.1, kNormSlackWithFeedback = 3;
// What an island holds that found the average larger than its parts can be; no digest, which is hex.
const std::string kTooLarge = "too large";

}  // namespace

OpenRound::OpenRound(OuterStep round, const RoundSurroundings& with, Attempt last_attempt)
    : round_(round),
      turn_(with.turn),
      members_(with.members),
      links_(with.links),
      trust_(with.trust),
      verdicts_(with.verdicts),
      parts_(round, with.turn, with.members, with.links, with.leases),
      blame_(with.turn, with.members, with.links, with.trust, parts_, with.verdicts),
      wire_(with.turn.run().wire),
      last_attempt_(last_attempt) {}

// ---- what its islands say

void OpenRound::said(MeshIsland& island, const IslandReady& message) {
  // Said before it heard of its part in the round before, or while it sits that out: it is told of this one (again)
  // when it is through with that, and answers.
  if (!parts_.may_work(island.id())) {
    parts_.of(island.id()).told = false;
    return;
  }
  RoundPart& part = parts_.of(island.id());
  if (part.role == RoundPart::Role::kReceiver && message.tokens == 0) part.ready = message;
  if (part.role != RoundPart::Role::kTrainer) return;
  // Said before it heard that it is to train other data.
  if (message.lease_first_sequence.value_or(part.begun.lease_first_sequence) != part.begun.lease_first_sequence) return;
  if (message.tokens > part.begun.lease_sequences * turn_.run().sequence_length) {
    return verdicts_.send_away(island.id(), ErrorCode::kProtocol,
                               fmt::format("it says that it trained {} tokens in round {}, more than were leased to it",
                                           message.tokens, round_number(message.round.value)));
  }
  if (!std::isfinite(message.norm_over_steps) || message.norm_over_steps < 0 || !is_loss(message.mean_loss_nats)) {
    if (++island.conduct.non_finite_rounds < kMostNonFiniteRounds) return verdicts_.start_recovering(island.id());
    return verdicts_.send_away(
        island.id(), ErrorCode::kNonFinite,
        "its pseudo-gradient was not finite three times in a row; check the machine's memory and GPUs");
  }
  if (message.tokens == 0) return;
  island.conduct.non_finite_rounds = 0;
  part.ready = message;
}

void OpenRound::said(const MeshIsland& island, const IslandHave& message) {
  if (!attempt_ || message.attempt != attempt_->number()) return;
  words_.add(island.id(), message);
  holds(island.id(), message.digest);
}

// `digest`: or kTooLarge, in place of one.
void OpenRound::holds(const IslandId& island, const std::string& digest) {
  const auto now = turn_.now();
  const auto grace = turn_.run().straggler_grace;
  attempt_->have(island, digest);
  // Words of as many as may lie tell nothing. One more bounds how long the attempt may take; it leaves nobody behind.
  const bool is_true = !longest_ || attempt_->how_many_have_it() > most_liars(members_.islands().size());
  if (is_true && !stall_due_) stall_due_ = now + grace * (1 << std::min(stall_doublings_, kMostStallDoublings));
  if (!average_due_ && attempt_->most_trainers_have_it()) {
    average_due_ = now + grace;
    if (attempt_->how_many_train() >= 3 && !attempt_keeps_buckets_) members_.note_average(now - attempt_began_);
  }
  decide();
}

void OpenRound::said(const MeshIsland& island, const IslandAttemptFailed& message) {
  const IslandId& id = island.id();
  if (kept_ && message.attempt == kept_->attempt()) {
    if (kept_->awaits(id)) {
      members_.budget().charge(id, reports_came_.came(turn_.now()));
      blame_.add_report(id, message);
    }
    return kept_->report(id, message.whole_buckets);
  }
  if (!attempt_ || message.attempt != attempt_->number() || !attempt_->live().contains(id)) return;
  if (message.too_large) return holds(id, kTooLarge);  // a word on the bytes that all hold, which the others judge, too
  if (is_held_by_most_that_are_honest()) {             // its work is in it
    note_edge_that_left_behind(id, message);
    return verdicts_.start_recovering(id);
  }
  ++reported_failures_;
  fail_attempt(fmt::format("{}: {}", id.value, message.reason), retry_delay());
  (void)reports_came_.came(turn_.now());
  kept_->report(id, message.whole_buckets);
  blame_.report(id, message);
}

// Behind one that was let have no more nobody gets more: so of those that have not, who waits for one that has tells.
// Nobody can tell which end it was, and the other one has paid for the wait.
void OpenRound::note_edge_that_left_behind(const IslandId& id, const IslandAttemptFailed& message) {
  if (!message.peer || !attempt_->has_it(*message.peer)) return;
  const bool is_asked = laggards_due_.has_value();
  const Clock::duration cost = is_asked ? laggards_waited_ : Clock::duration{};
  const bool had_edge = blame_.note_broken_edge(*attempt_, schedule_, id, message, /*at_first_hand=*/is_asked, cost);
  DelayBudget& budget = members_.budget();
  if (had_edge && is_asked) budget.charge(*message.peer, std::min(laggards_waited_, budget.most()) / 2);
}

void OpenRound::said(const MeshIsland& island, const IslandChunks& message) {
  if (!inquiry_ || message.attempt != inquiry_->attempt() || !inquiry_->awaits(island.id())) return;
  members_.budget().charge(island.id(), answers_came_.came(turn_.now()));
  inquiry_->answer(island.id(), message.digests);
}

// Not of one that said that it is ready: its work may be in the average.
void OpenRound::said(const MeshIsland& island, const IslandLeaseReturned& message) {
  const RoundPart& part = parts_.of(island.id());
  if (part.role != RoundPart::Role::kTrainer || part.ready || part.begun.inner_steps == 0) return;
  if (message.lease_first_sequence != part.begun.lease_first_sequence) return;
  turn_.publish(WorkLeftOut{island.id(), round_, "it cannot get its data: " + message.reason});
  parts_.return_lease(island.id(), averages());
}

void OpenRound::lose(const IslandId& island) {
  // Whom the others missed before the hub did: a death, after all.
  if (kept_ && kept_->awaits(island) && std::exchange(left_direct_, false)) by_ring_ = false;
  if (kept_) kept_->lose(island);
  if (inquiry_) inquiry_->lose(island);
  if (!attempt_ || !attempt_->live().contains(island)) return;
  parts_.lost_attempt(island);
  attempt_->lose(island);
  decide();
}

void OpenRound::disconnected(const IslandId& island) {
  parts_.disconnected(island, averages());
  lose(island);
}

// One word, or that of any number, costs nobody its part as long as the hub itself hears of it.
std::vector<IslandId> OpenRound::missed() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : members_.islands()) {
    if (kept_ && kept_->awaits(id) && members_.is_overdue(island) && blame_.is_called_silent(id)) islands.push_back(id);
  }
  return islands;
}

// ---- what the time and the state of things call for

void OpenRound::settle_attempt() {
  if (is_decided()) decide();  // it waited for the round before
  leave_laggards_behind();
  end_what_stalls();
  end_what_is_held_up();
  settle_inquiry();
  if (kept_ && (kept_->complete() || turn_.now() >= kept_due_)) {
    blame_.judge();
    const bool is_found = !blame_.held_up().empty() || !blame_.at_fault().empty();
    if (is_found) held_up_attempts_ = stall_doublings_ = 0;
  }
}

void OpenRound::settle_parts() {
  parts_.tell_the_untold();
  for (auto& [id, island] : members_.islands()) parts_.give(island, averages(), last_attempt_);
  promote_receivers();
  parts_.start_grace();
  open_attempt();
}

// A round whose trainers are all gone, or too few, is trained by those who came meanwhile; so is one whose trainers
// cannot agree.
void OpenRound::promote_receivers() {
  if (attempt_ || parts_.expects_anybody()) return;
  const std::uint32_t quorum = turn_.run().quorum;
  if (parts_.count_trainers() < quorum && parts_.take_back()) {
    stalled_attempts_ = stall_doublings_ = 0;
    blame_.forget_edges();
  }
  const std::size_t trainers = parts_.count_trainers();
  // A trainer that is there, and never ready, does not keep those who wait for ever.
  if (trainers >= quorum && !blame_.is_nobody_left_to_suspect() && !parts_.takes_too_long()) return;
  if (trainers == 0) {  // nobody is left for whom to sit out
    parts_.let_all_take_part();
    kept_.reset();
    blame_.forget_reports();
    blame_.forget_edges();
  }
  const std::vector<IslandId> receivers = parts_.receivers();
  if (receivers.empty()) return;
  for (const IslandId& id : receivers) verdicts_.begin_anew(id, round_);
  parts_.promote(receivers);
  blame_.search_anew();
}

void OpenRound::close(const std::set<IslandId>& averaged) {
  charge_for_failure();
  attempt_.reset();
  inquiry_.reset();
  kept_.reset();
  blame_.forget_reports();
  parts_.close(averaged);
}

// Everybody drops what it was doing.
void OpenRound::abandon() {
  if (attempt_) {
    for (const IslandId& id : attempt_->live()) {
      turn_.send(id, abort_of(attempt_->number(), "the round is given up"));
    }
  }
  close({});
}

// ---- an attempt, from its beginning to its end

void OpenRound::open_attempt() {
  const auto now = turn_.now();
  if (attempt_ || now < retry_at_ || !verdicts_.may_average()) return;
  if (kept_ && !kept_->complete() && now < kept_due_) return;
  for (const auto& [id, island] : members_.islands()) {  // connected, and answers nothing
    if (!kept_ || !kept_->awaits(id)) continue;
    blame_.note_fault(id);
    if (stalled_attempts_ > 0) parts_.keep_out(id);
  }
  charge_for_failure();
  const std::vector<IslandId> awaited = parts_.awaited();
  const auto& grace_ends = parts_.grace_ends();
  if (!awaited.empty() && (!grace_ends || (now < *grace_ends && may_wait_for(awaited)))) return;
  for (const IslandId& id : awaited) {
    if (members_.budget().is_spent(id)) links_.doubt(id);
  }
  waits_since_.reset();
  blame_.leave_out_debtors();
  blame_.leave_out_the_large();
  std::vector<AttemptMember> members = parts_.ready_members();
  const auto trainers = static_cast<std::size_t>(std::ranges::count_if(members, trained));
  if (trainers == 0 || trainers < turn_.run().quorum) return;
  if (members.size() < parts_.least_members() && parts_.take_back()) return;
  blame_.leave_out_suspect(members);
  trust_.work().leave_out(round_, turn_.run().quorum, members);
  RingChoice ring = links_.choose(std::move(members));
  if (!ring.sits_out.empty()) {
    for (const IslandId& id : ring.sits_out) {
      parts_.keep_out(id);
      links_.sat_out(id);
    }
    return open_attempt();
  }
  links_.use(ring.order);  // as chosen, not as turned
  last_members_.clear();
  for (const AttemptMember& member : ring.order) last_members_.push_back(member.id);
  if (blame_.turned()) std::ranges::reverse(ring.order);
  begin_attempt(std::move(ring.order));
}

// What an attempt that failed cost, until the next may begin, is on the account of whom it failed for; not how long
// nobody could average thereafter.
void OpenRound::charge_for_failure() {
  if (!failing_since_) return;
  const Clock::duration cost = std::min(turn_.now(), kept_due_) - *std::exchange(failing_since_, std::nullopt);
  // Half of all at most: an honest end of one such edge, or of two, does not come to owe.
  for (const IslandId& id : blame_.held_up()) {
    members_.budget().charge(id, std::min(cost / 2, members_.budget().most() / 2));
  }
  // What happens to half of them at once is no fault of theirs.
  if (2 * blame_.at_fault().size() >= std::max(last_members_.size(), members_.count_here())) return;
  for (const IslandId& id : blame_.at_fault()) {
    members_.budget().charge(id, cost);
    links_.doubt(id);
  }
}

// The others wait for these, on the account of each. False: nothing is left on any.
bool OpenRound::may_wait_for(const std::vector<IslandId>& late) {
  const auto now = turn_.now();
  const Clock::duration waited = now - std::exchange(waits_since_, now).value_or(now);
  DelayBudget& budget = members_.budget();
  bool any = false;
  for (const IslandId& id : late) {
    if (!budget.is_spent(id)) budget.charge(id, std::min(waited, budget.left(id)));
    any = any || !budget.is_spent(id);
  }
  return any;
}

void OpenRound::begin_attempt(std::vector<AttemptMember> order) {
  last_attempt_ = Attempt{last_attempt_.value + 1};
  HubAttempt message{round_, last_attempt_, std::move(order)};
  message.fragment = fragment();
  message.wire = links_.wire_for(message.order);
  const bool same_wire = message.wire == std::exchange(wire_, message.wire);
  if (kept_ && same_wire && !trust_.work().is_overdue()) message.final_buckets = kept_->held_by(message.order);
  if (!by_ring_) message.schedule = links_.choose_schedule(message.order, bytes_to_average(message), message.wire);
  schedule_ = message.schedule;
  attempt_.emplace(last_attempt_, message.order);
  average_due_.reset();
  laggards_due_.reset();
  stall_due_.reset();
  turn_.act(PersistAttempt{round_, last_attempt_});
  message.edge_bytes_per_second = links_.known_rates(message.order);
  message.norm_limit = norm_limit(message.order);
  attempt_keeps_buckets_ = std::ranges::find(message.final_buckets, true) != message.final_buckets.end();
  words_ = {};
  is_looked_into_ = false;
  kept_.reset();
  members_.send_roster_if_changed();  // where the members are
  attempt_began_ = turn_.now();
  waits_since_.reset();
  longest_ = longest(message);
  for (const AttemptMember& member : attempt_->order()) turn_.send(member.id, message);
}

// Nobody tells the hub how far it is, and whoever sends a little now and then is not silent. The attempts of other
// fragments share the links. What averages of late took says more than what members say of their links, which is waited
// for as long as nothing else is known.
std::optional<Clock::duration> OpenRound::longest(const HubAttempt& message) const {
  if (turn_.numel_of(message.fragment) == 0 || message.order.size() < 2) return std::nullopt;
  const double bytes = bytes_to_average(message) * turn_.run().fragments;
  auto moves = std::chrono::duration_cast<Clock::duration>(Seconds(links_.longest_seconds(message.order, bytes)));
  if (const auto usual = members_.usual_average()) moves = std::min(moves, kMostOfUsual * *usual);
  const auto grace = std::max<Clock::duration>(turn_.run().straggler_grace, turn_.run().lost_after);
  return (grace + moves) * (1 << std::min(held_up_attempts_, kMostStallDoublings));
}

// Encoded; those that stay do not travel. 0: not known.
double OpenRound::bytes_to_average(const HubAttempt& message) const {
  const auto all = static_cast<double>(encoded_bytes(message.wire, turn_.numel_of(message.fragment)));
  if (message.final_buckets.empty()) return all;
  const auto travel = std::ranges::count(message.final_buckets, false);
  return all * static_cast<double>(travel) / static_cast<double>(message.final_buckets.size());
}

// ||sum of w g|| <= sum of w ||g||, by what each says of its own. Buckets kept from an attempt with other members make
// no difference: the largest part bounds each.
double OpenRound::norm_limit(const std::vector<AttemptMember>& members) const {
  const RunConfig& run = turn_.run();
  if (run.norm_bound == 0) return 0;
  const double tokens_a_step = double{1} * run.sequences_per_step * run.sequence_length;
  double weighted = 0, tokens = 0, largest = 0;
  for (const AttemptMember& member : members) {
    const auto& ready = parts_.of(member.id).ready;
    if (member.tokens == 0 || !ready) continue;
    const auto own_tokens = static_cast<double>(member.tokens);
    const double norm = ready->norm_over_steps * own_tokens / tokens_a_step;
    weighted += own_tokens * norm;
    tokens += own_tokens;
    largest = std::max(largest, norm);
  }
  if (tokens == 0) return 0;
  const double slack = feeds_errors_back(run.wire) ? kNormSlackWithFeedback : kNormSlack;
  return slack * (kept_ ? largest : weighted / tokens);
}

// All that are left hold the same average. Those that are left commit nothing alone where most were lost: that may be a
// liar's doing. They average anew.
bool OpenRound::is_decided() const {
  if (!attempt_ || inquiry_ || attempt_->outcome() != OpenAttempt::Outcome::kAgreed) return false;
  if (attempt_->digest() == kTooLarge) return false;
  const auto lives = [this](const AttemptMember& member) {
    return trained(member) && attempt_->live().contains(member.id);
  };
  const auto trainers = static_cast<std::size_t>(std::ranges::count_if(attempt_->order(), lives));
  return attempt_->most_trainers_live() && trainers >= turn_.run().quorum;
}

// Whether the average is what its members gave, and nobody's work goes against the others'; else the attempt fails.
bool OpenRound::is_sound() {
  if (std::exchange(is_looked_into_, true)) return true;
  if (attempt_keeps_buckets_) {
    trust_.work().note_kept(words_);
    return true;
  }
  const auto fault = trust_.work().find_fault(round_, attempt_->order(), left_out_of(attempt_->order()), words_, wire_);
  if (!fault) return true;
  fail_attempt(fault->reason, {});
  kept_.reset();
  if (fault->is_hopeless) blame_.search_for_liar({}, fault->reason);
  return false;
}

// Those that trained, and have no weight.
std::set<IslandId> OpenRound::left_out_of(const std::vector<AttemptMember>& members) const {
  std::set<IslandId> islands;
  for (const AttemptMember& member : members) {
    const RoundPart& part = parts_.of(member.id);
    if (!trained(member) && part.ready && part.ready->tokens > 0) islands.insert(member.id);
  }
  return islands;
}

bool OpenRound::has_work_of(const IslandId& island) const {
  return is_decided() && std::ranges::find(attempt_->order(), island, &AttemptMember::id) != attempt_->order().end();
}

void OpenRound::decide() {
  if (!attempt_ || inquiry_) return;
  if (is_decided()) {
    if (is_sound() && verdicts_.may_commit(round_)) verdicts_.commit(*this);
    return;
  }
  const bool differ = attempt_->outcome() == OpenAttempt::Outcome::kDiffer;
  const auto& held = attempt_->held_by_most();
  if (held == kTooLarge || (differ && !held && attempt_->holds(kTooLarge))) return refuse_too_large();
  if (differ && held) return inquire();
  // What was lost has its work in what most hold; the others come to its end, or are left behind.
  if (!differ && is_held_by_most_that_are_honest()) return;
  if (attempt_->has_lost_a_member()) {
    std::vector<IslandId> lost;
    for (const AttemptMember& member : attempt_->order()) {
      if (!attempt_->live().contains(member.id)) lost.push_back(member.id);
    }
    fail_attempt(members_.names(lost) + " was lost", {});
    for (const IslandId& id : lost) blame_.note_fault(id);
    return;
  }
  if (differ) inquire();
}

// Somebody gave more than it said. More than half found so: who it was is searched for over rounds. Or nobody can tell.
void OpenRound::refuse_too_large() {
  const std::string reason = "its average is larger than its parts can be";
  const std::set<IslandId> left_out = left_out_of(attempt_->order());
  const auto gave = static_cast<std::size_t>(std::ranges::count_if(attempt_->order(), trained));
  const bool most_find_so = attempt_->held_by_most() == kTooLarge || attempt_->most_members_hold(kTooLarge);
  std::optional<WorkWatch::Fault> searched;
  if (gave + left_out.size() > 2 && most_find_so && !attempt_keeps_buckets_) {
    searched = trust_.work().find_too_large(attempt_->order(), left_out);
  }
  if (!searched || searched->is_hopeless) ++reported_failures_;
  fail_attempt(reason, retry_delay());
  kept_.reset();
  if (!searched) blame_.search_for_liar({}, reason);
}

// A member that others have finished with, and that neither has the average nor says why, does not hold them up for
// ever. It is asked first for whom it waits: a liar that lets the last chunk not come to it would have it left behind
// each time.
void OpenRound::leave_laggards_behind() {
  if (!attempt_ || inquiry_ || is_decided()) return;
  if (!average_due_) return;
  const std::vector<IslandId> laggards = attempt_->still_averaging();
  if (!laggards_due_) {
    if (turn_.now() < *average_due_ && may_wait_for(laggards)) return;
    // In a ring all come to the end together: one of its pairs may be too slow for it, of which nobody tells.
    if (schedule_ == Schedule::kDirect && !laggards.empty()) links_.direct_failed();
    // Those that have it may be liars for the most part, and nobody else gets it from them.
    if (!laggards.empty() && !is_held_by_most_that_are_honest()) {
      return give_up_held_up("too few of its members come to its end", {.laggards_paid = true});
    }
    laggards_due_ = turn_.now() + turn_.run().heartbeat;
    laggards_waited_ = turn_.run().straggler_grace - std::max<Clock::duration>(*average_due_ - turn_.now(), {});
    for (const IslandId& id : laggards) {
      turn_.send(id, abort_of(attempt_->number(), "the others have finished long ago"));
    }
  }
  if (!laggards.empty() && turn_.now() < *laggards_due_) return;
  for (const IslandId& id : laggards) {
    members_.budget().charge(id, turn_.run().heartbeat);
    attempt_->lose(id);
  }
  average_due_.reset();
  decide();
  for (const IslandId& id : laggards) verdicts_.start_recovering(id);
}

// Of those of the run, not of the few that an attempt may have left: liars do not leave.
bool OpenRound::is_held_by_most_that_are_honest() const {
  return attempt_->held_by_most(most_liars(members_.islands().size())).has_value();
}

// Where those that have finished are not most, the attempt is given up, and whoever does not even answer that sits out
// (open_attempt). A word that an average is there may be a lie, as may be that one waits for it: the edge between the
// two is looked at.
void OpenRound::end_what_stalls() {
  if (!attempt_ || inquiry_ || is_decided() || average_due_ || !stall_due_ || turn_.now() < *stall_due_) return;
  ++stall_doublings_;
  const auto since = stalls_since_.value_or(attempt_began_);
  const bool is_overdue = longest_ && turn_.now() - since >= *longest_;  // all that came to nothing
  give_up_held_up("most of its members do not come to its end", {.is_overdue = is_overdue});
  if (!is_overdue) stalls_since_ = since;
}

// It took far longer than its links need.
void OpenRound::end_what_is_held_up() {
  if (!attempt_ || inquiry_ || is_decided() || average_due_ || !longest_) return;
  if (turn_.now() - attempt_began_ < *longest_) return;
  give_up_held_up("it takes far longer than its links need", {.is_overdue = true});
}

// A member lets next to nothing come. The next attempt does without that edge; an exchange goes on round the ring,
// where the edges tell who it was. `as`: but for how long, and who has the average.
void OpenRound::give_up_held_up(const std::string& reason, RoundBlame::HeldUp as) {
  as.lasted = turn_.now() - attempt_began_;
  as.holders = attempt_->live();
  for (const IslandId& id : attempt_->still_averaging()) as.holders.erase(id);
  ++stalled_attempts_;
  if (schedule_ == Schedule::kDirect) links_.direct_failed();
  fail_attempt(reason, {});
  if (left_direct_) return;
  if (as.is_overdue) ++held_up_attempts_;
  blame_.report_held_up(std::move(as));
}

// Its members hold different averages: each is asked for its bytes, chunk by chunk.
void OpenRound::inquire() {
  inquiry_.emplace(attempt_->number(), attempt_->order(), attempt_->live(), schedule_);
  answers_came_ = AnswerTimes(attempt_->live().size());
  inquired_at_ = turn_.now();
  inquiry_due_ = inquired_at_ + turn_.run().dead_after;
  for (const IslandId& id : attempt_->live()) turn_.send(id, HubShowChunks{round_, attempt_->number(), fragment()});
}

void OpenRound::settle_inquiry() {
  if (!inquiry_ || (!inquiry_->complete() && turn_.now() < inquiry_due_)) return;
  const DigestInquiry inquiry = *std::exchange(inquiry_, std::nullopt);
  if (!attempt_ || attempt_->number() != inquiry.attempt()) return;
  for (const IslandId& id : inquiry.silent()) members_.budget().charge(id, turn_.now() - inquired_at_);
  if (attempt_->held_by_most()) return leave_outvoted_behind(inquiry);
  ++reported_failures_;
  if (schedule_ == Schedule::kDirect) links_.direct_failed();
  if (attempt_keeps_buckets_) {
    // What an earlier attempt made was not shown, and may have been altered in it: the next one makes all anew.
    fail_attempt("the members hold different averages, parts of which are of an attempt before", retry_delay());
    kept_.reset();
    return;
  }
  const std::vector<IslandId> likely = blame_.likely_liars(inquiry, *attempt_);
  fail_attempt("the members hold different averages", retry_delay());
  kept_.reset();  // nobody knows which of them are right
  std::set<IslandPair> bad_edges = inquiry.bad_edges();
  if (last_members_.size() == 2 && members_.islands().size() > 2)
    bad_edges.insert(std::minmax(last_members_[0], last_members_[1]));  // one of the two
  blame_.change_neighbours(bad_edges);
  blame_.search_for_liar(likely, "the members hold different averages");
}

// What most hold is the average: it is committed, and the others fetch it. Their work is in it.
void OpenRound::leave_outvoted_behind(const DigestInquiry& inquiry) {
  const std::vector<IslandId> outvoted = attempt_->outvoted();
  // What an attempt before this one made was not shown.
  const bool shows_all = !attempt_keeps_buckets_;
  if (shows_all) {
    (void)blame_.likely_liars(inquiry, *attempt_);
    blame_.change_neighbours(inquiry.bad_edges());
  }
  for (const IslandId& id : outvoted) {
    attempt_->lose(id);
    turn_.send(id, abort_of(attempt_->number(), "the others hold another average"));
  }
  decide();  // the round may be closed by now
  for (const IslandId& id : outvoted) verdicts_.start_recovering(id);
  if (shows_all) blame_.strike_the_outvoted(outvoted);
}

void OpenRound::fail_attempt(const std::string& reason, Clock::duration delay) {
  for (const IslandId& id : attempt_->live()) turn_.send(id, abort_of(attempt_->number(), reason));
  // The same bytes may go on round the ring, over edges that are known to work. Not for a death.
  left_direct_ = schedule_ == Schedule::kDirect && !attempt_->has_lost_a_member();
  by_ring_ = by_ring_ || left_direct_;
  turn_.publish(AttemptFailed{round_, attempt_->number(),
                              reason + (left_direct_ ? "; it went directly, and goes on around the ring" : "")});
  kept_.emplace(attempt_->number(), attempt_->live());
  reports_came_ = AnswerTimes(attempt_->live().size());
  blame_.attempt_failed(attempt_->order(), wire_, schedule_, turn_.now() - attempt_began_);
  kept_due_ = turn_.now() + turn_.run().dead_after;
  parts_.average_failed();
  failing_since_ = attempt_began_;
  waits_since_.reset();
  attempt_.reset();
  stalls_since_.reset();
  inquiry_.reset();
  const bool stands_still = blame_.is_nobody_left_to_suspect();
  retry_at_ = turn_.now() + (stands_still ? Clock::duration(kStandstillRetryDelay) : delay);
}

// The first failure is retried at once: most are a death that the hub hears of a moment later.
Clock::duration OpenRound::retry_delay() const {
  if (reported_failures_ <= 1) return {};
  const int doublings = std::min(reported_failures_ - 2, 8);
  return std::min<Clock::duration>(kFirstRetryDelay * (1 << doublings), kLongestRetryDelay);
}

// ---- the commit

OpenAttempt OpenRound::take_attempt() { return *std::exchange(attempt_, std::nullopt); }

HubCommit OpenRound::record(const OpenAttempt& done) const {
  const RunConfig& run = turn_.run();
  HubCommit commit{round_, done.number(), done.digest(), run.outer_learning_rate, run.outer_momentum, done.order(), ""};
  commit.holders.assign(done.live().begin(), done.live().end());
  commit.fragment = fragment();
  return commit;
}

PersistCommit OpenRound::account(const OpenAttempt& done, const HubCommit& commit) {
  if (schedule_ == Schedule::kDirect) links_.direct_worked();
  PersistCommit persist{commit, {}, Seconds(turn_.now() - parts_.began()).count(), 0};
  double loss_sum = 0, tokens = 0;
  for (const auto& [id, why] : trust_.work().note_committed(round_, done.order(), left_out_of(done.order()))) {
    turn_.publish(WorkLeftOut{id, round_, why});
    if (MeshIsland* island = members_.find(id)) island->left_out_for = why;
  }
  for (const AttemptMember& member : done.order()) {
    const LeaseRange lease = parts_.lease_of(member.id);
    if (lease.sequences == 0 || !trained(member)) continue;
    persist.leases.push_back(lease);
    if (MeshIsland* island = members_.find(member.id)) ++island->conduct.rounds_accepted;
    const RoundPart& part = parts_.of(member.id);
    if (!part.ready) continue;
    loss_sum += part.ready->mean_loss_nats * static_cast<double>(member.tokens);
    tokens += static_cast<double>(member.tokens);
  }
  if (tokens > 0) persist.mean_loss_nats = loss_sum / tokens;
  return persist;
}

}  // namespace atl
