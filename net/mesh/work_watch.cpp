#include "net/mesh/work_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "net/base/round_words.h"
#include "net/mesh/attempt.h"

namespace atl {
namespace {

constexpr double kSame = 0.5;            // suspicions no further apart are equal
constexpr double kForgiven = 0.9;        // of suspicion stays with each round in which nobody is searched
constexpr int kMostTermDoublings = 5;    // of a search that found nobody
constexpr std::uint32_t kRoundsOut = 4;  // doubled each time that it is found
constexpr int kMostOut = 10;             // doublings
constexpr std::size_t kMostInRow = 4;    // attempts a trainer, that are not sound; then nobody is found
// A cosine at which one round is enough; and of several rounds, each counted from where chance may lead two that have
// nothing in common (kSketchNumel), their sum.
constexpr double kAgainst = 0.15, kChance = 0.03, kSumAgainst = 0.25;

}  // namespace

bool WorkWatch::is_out(const IslandId& island, OuterStep round) const {
  const auto known = known_.find(island);
  return known != known_.end() && known->second.out_until > round.value;
}

// ---- who is left out

void WorkWatch::leave_out(OuterStep round, std::uint32_t quorum, std::vector<AttemptMember>& members) {
  std::vector<IslandId> found, others;
  for (const AttemptMember& member : members) {
    if (trained(member)) (is_out(member.id, round) ? found : others).push_back(member.id);
  }
  const std::size_t trainers = found.size() + others.size(), least = std::max<std::size_t>(quorum, 2);
  if (trainers <= least) return;
  const std::size_t most = std::min((trainers - 1) / 2, trainers - least);
  std::ranges::stable_sort(
      found, [this](const IslandId& a, const IslandId& b) { return known_.at(a).found > known_.at(b).found; });
  if (searches_) {
    const std::vector<IslandId> tried = to_be_tried(std::move(others));
    found.insert(found.end(), tried.begin(), tried.end());
  }
  if (found.size() > most) found.resize(most);
  for (AttemptMember& member : members) {
    if (std::ranges::find(found, member.id) == found.end()) continue;
    member.tokens = 0;
    known_[member.id].left_out_at = ++turns_;
  }
}

// Without several an average was sound: all of them but one, until it is known of each whether it lies.
std::vector<IslandId> WorkWatch::to_be_tried(std::vector<IslandId> trainers) const {
  std::vector<IslandId> likely = most_suspected(std::move(trainers));
  if (held_.empty()) {
    // They take turns so that suspicion tells nothing.
    if (unsound_in_row_ > 2 * likely.size()) std::ranges::shuffle(likely, std::minstd_rand(turns_ + 1));
    likely.resize(std::min(likely.size(), at_once_));
    return likely;
  }
  std::erase_if(likely, [this](const IslandId& id) { return !held_.contains(id); });
  const auto back = std::find_if(likely.rbegin(), likely.rend(), [this](const IslandId& id) { return !held_.at(id); });
  if (back != likely.rend()) likely.erase(std::next(back).base());
  return likely;
}

// The likeliest first. As long as one is left out at a time, those that are suspected equally take turns, and who was
// not tried yet comes first.
std::vector<IslandId> WorkWatch::most_suspected(std::vector<IslandId> trainers) const {
  static const Known kNothing;
  const auto of = [this](const IslandId& id) -> const Known& {
    const auto known = known_.find(id);
    return known == known_.end() ? kNothing : known->second;
  };
  double most = 0;
  for (const IslandId& id : trainers) most = std::max(most, of(id).suspicion);
  const auto order = [&](const IslandId& id) {
    const Known& its = of(id);
    const double suspicion = at_once_ > 1 ? its.suspicion : its.suspicion > most - kSame ? 1 : 0;
    const std::uint32_t turn = its.sound_without ? its.left_out_at : 0;
    return std::tuple(-suspicion, its.sound_without, turn, -its.found, !its.is_silent, its.accepted);
  };
  std::ranges::stable_sort(trainers, [&](const IslandId& a, const IslandId& b) { return order(a) < order(b); });
  return trainers;
}

// ---- what an average shows

std::optional<WorkWatch::Fault> WorkWatch::find_fault(OuterStep round, const std::vector<AttemptMember>& members,
                                                      const std::set<IslandId>& left_out, const WorkWords& words,
                                                      WireFormat wire) {
  looked_into_.reset();
  const WorkFindings found = find_in_work(members, words, wire);
  // One against one who says nothing tells something only of who is suspected already.
  if (!found.is_judged || (found.said == 1 && !searches_)) {
    if (searches_ && finds_size_) looked_into_ = round;  // it is no larger than it can be
    return std::nullopt;
  }
  is_overdue_ = false;
  looked_into_ = round;
  const auto gave = static_cast<std::size_t>(std::ranges::count_if(members, trained));
  if (found.missing > 0) return find_missing(found, members, gave + left_out.size());
  return find_contrary(round, found);
}

WorkWatch::Fault WorkWatch::find_too_large(const std::vector<AttemptMember>& members,
                                           const std::set<IslandId>& left_out) {
  looked_into_.reset();
  WorkFindings found;
  found.missing = 1;
  const auto gave = static_cast<std::size_t>(std::ranges::count_if(members, trained));
  const Fault fault = find_missing(found, members, gave + left_out.size());
  finds_size_ = true;
  return fault;
}

WorkWatch::Fault WorkWatch::find_missing(const WorkFindings& found, const std::vector<AttemptMember>& members,
                                         std::size_t trainers) {
  if (!std::exchange(searches_, true)) {
    for (auto& [id, its] : known_) its.sound_without = false;
    largest_missing_ = 0;
    unsound_in_row_ = 0;
    at_once_ = 1;
    finds_size_ = false;
    held_.clear();
    rounds_left_ = static_cast<std::uint32_t>(trainers) << std::min(fruitless_, kMostTermDoublings);
  }
  largest_missing_ = std::max(largest_missing_, found.missing);
  for (const AttemptMember& member : members) {
    if (trained(member)) known_[member.id].is_silent = found.silent.contains(member.id);
  }
  for (auto& [id, its] : known_) {
    const auto member = std::ranges::find(members, id, &AttemptMember::id);
    const bool gave = member != members.end() && trained(*member);
    if (gave) its.suspicion += found.missing / largest_missing_;
    if (!gave) its.sound_without = false;
  }
  ++unsound_in_row_;
  if (held_.empty()) {
    // When each was left out once, several lie. Without one of them less is missing: they are suspected more by now.
    if (unsound_in_row_ > trainers) ++at_once_;
  } else if (!confirm_who_is_back(members)) {
    at_once_ = held_.size() + 1;  // and somebody else, too
    held_.clear();
  }
  return {fmt::format("the average is not what its members say that they gave ({:.0f} % of it)", 100 * found.missing),
          trainers < 3 || unsound_in_row_ > kMostInRow * trainers};
}

// False: it is not for one of those who are held that the average was not sound.
bool WorkWatch::confirm_who_is_back(const std::vector<AttemptMember>& members) {
  bool is_back = false;
  for (const AttemptMember& member : members) {
    const auto held = held_.find(member.id);
    if (held != held_.end() && trained(member)) is_back = held->second = true;
  }
  return is_back;
}

std::optional<WorkWatch::Fault> WorkWatch::find_contrary(OuterStep round, const WorkFindings& found) {
  std::vector<IslandId> contrary;
  for (const auto& [id, cosine] : found.agreement) {
    Known& its = known_[id];
    if (its.looked_at != round) its.against = std::max(0.0, its.against - cosine - kChance);
    its.looked_at = round;
    const bool is_needed = is_out(id, round);  // all the same
    if ((cosine <= -kAgainst || its.against >= kSumAgainst / (1 + its.found)) && !is_needed) contrary.push_back(id);
  }
  // Who is against whom, where they are half or more?
  if (contrary.empty() || 2 * contrary.size() >= found.agreement.size()) return std::nullopt;
  std::string reasons;
  for (const IslandId& id : contrary) {
    const std::string why = fmt::format("what it learned in round {} goes against what the others did (cosine {:.2f})",
                                        round_number(round.value), found.agreement.at(id));
    condemn(id, round, why);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", id.value, why);
  }
  return Fault{reasons};
}

void WorkWatch::condemn(const IslandId& island, OuterStep round, const std::string& why) {
  Known& its = known_[island];
  const std::uint32_t rounds = kRoundsOut << std::min(++its.found, kMostOut);
  its.out_until = round.value + rounds;
  its.suspicion = its.against = 0;
  its.why = fmt::format(
      "{}: its work is left out up to round {}; check this machine's memory, and that it runs the "
      "run's version of atoll",
      why, its.out_until);
}

// ---- what passed

std::map<IslandId, std::string> WorkWatch::note_committed(OuterStep round, const std::vector<AttemptMember>& members,
                                                          const std::set<IslandId>& left_out) {
  for (const AttemptMember& member : members) {
    if (trained(member)) ++known_[member.id].accepted;
  }
  if (searches_) {
    if (looked_into_ == round) settle_search(round, members, left_out);
  } else {
    for (auto& [id, its] : known_) its.suspicion *= kForgiven;
  }
  std::map<IslandId, std::string> told;
  for (const IslandId& id : left_out) {
    told[id] = is_out(id, round) ? known_[id].why
                                 : "averages of late were not what their members say that they gave: it is tried out "
                                   "without whom they are";
  }
  return told;
}

void WorkWatch::settle_search(OuterStep round, const std::vector<AttemptMember>& members,
                              const std::set<IslandId>& left_out) {
  unsound_in_row_ = 0;
  std::vector<IslandId> tried;
  for (const IslandId& id : left_out) {
    if (!is_out(id, round)) tried.push_back(id);
  }
  if (held_.empty() && tried.size() > 1) {
    for (const IslandId& id : tried) held_[id] = false;
    return;
  }
  // It is not for those that gave to this one; and some may have left.
  std::erase_if(held_, [&](const auto& held) { return !left_out.contains(held.first); });
  for (const IslandId& id : tried) known_[id].sound_without = true;
  std::vector<IslandId> liars;
  const auto is_confirmed = [](const auto& held) { return held.second; };
  if (held_.empty()) {
    liars = sole_suspect(round, members, left_out);
  } else if (std::ranges::all_of(held_, is_confirmed)) {
    for (const auto& [id, confirmed] : held_) liars.push_back(id);
  }
  if (!liars.empty()) {
    for (auto& [id, its] : known_) its.suspicion = 0;
    for (const IslandId& id : liars) {
      condemn(id, round, "averages with it were not what their members say that they gave, and without it they were");
    }
    fruitless_ = 0;
  } else {
    if (rounds_left_ > 0) --rounds_left_;
    if (rounds_left_ > 0 || !held_.empty()) return;
    ++fruitless_;
  }
  searches_ = false;
}

// Who was in more averages that were not sound than anybody else, and without whom one was. Nobody: there are several.
std::vector<IslandId> WorkWatch::sole_suspect(OuterStep round, const std::vector<AttemptMember>& members,
                                              const std::set<IslandId>& left_out) const {
  std::vector<IslandId> most;
  double suspicion = 0;
  for (const AttemptMember& member : members) {
    if (is_out(member.id, round) || (!trained(member) && !left_out.contains(member.id))) continue;
    most.push_back(member.id);
    suspicion = std::max(suspicion, known_.at(member.id).suspicion);
  }
  std::erase_if(most, [&](const IslandId& id) { return known_.at(id).suspicion <= suspicion - kSame; });
  return most.size() == 1 && known_.at(most[0]).sound_without ? most : std::vector<IslandId>{};
}

std::optional<IslandId> WorkWatch::suspect() const {
  const auto worse = [](const auto& a, const auto& b) {
    return std::tuple(a.second.out_until, a.second.against) < std::tuple(b.second.out_until, b.second.against);
  };
  const auto worst = std::ranges::max_element(known_, worse);
  if (worst == known_.end() || (worst->second.found == 0 && worst->second.against < kSumAgainst / 2)) {
    return std::nullopt;
  }
  return worst->first;
}

}  // namespace atl
