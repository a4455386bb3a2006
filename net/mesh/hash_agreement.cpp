#include "net/mesh/hash_agreement.h"

#include <algorithm>
#include <utility>

namespace atl {

std::set<IslandId> holders_of(const HubCommit& commit) {
  std::set<IslandId> holders(commit.holders.begin(), commit.holders.end());
  // Records of before do not say.
  if (holders.empty()) {
    for (const AttemptMember& member : commit.members) holders.insert(member.id);
  }
  return holders;
}

Voters voters_of(const HubCommit& commit) {
  Voters voters{{}, holders_of(commit)};
  for (const AttemptMember& member : commit.members) {
    if (member.tokens > 0 && voters.receivers.erase(member.id) > 0) voters.trainers.insert(member.id);
  }
  return voters;
}

void HashAgreement::begin(Voters voters, std::optional<std::string> agreed) {
  voters_ = std::move(voters.trainers);
  receivers_ = std::move(voters.receivers);
  expected_ = voters_;
  votes_.clear();
  agreed_ = std::move(agreed);
  reports_.clear();
  differed_ = false;
  seat_receivers();
}

void HashAgreement::seat_receivers() {
  if (!voters_.empty()) return;
  voters_ = std::exchange(receivers_, {});
  for (const IslandId& island : voters_) {
    expected_.insert(island);
    if (const auto said = reported(island)) votes_.emplace(island, *said);
  }
}

void HashAgreement::expect(const IslandId& island) { expected_.insert(island); }

void HashAgreement::report(const IslandId& island, const std::string& hash) {
  expected_.insert(island);
  reports_[island] = hash;
  // Who fetched the state from others later has not computed it: only the first word is a vote.
  if (voters_.contains(island)) votes_.emplace(island, hash);
  decide();
}

void HashAgreement::drop(const IslandId& island) {
  expected_.erase(island);
  reports_.erase(island);
}

void HashAgreement::unseat(const IslandId& island) {
  drop(island);
  receivers_.erase(island);
  votes_.erase(island);
  if (voters_.erase(island) > 0) seat_receivers();
  decide();
}

void HashAgreement::stop_waiting() {
  std::erase_if(expected_, [this](const IslandId& island) { return !reports_.contains(island); });
}

std::map<std::string, std::size_t> HashAgreement::count() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [island, hash] : votes_) ++counts[hash];
  return counts;
}

HashAgreement::Verdict HashAgreement::verdict() const {
  if (agreed_) return Verdict::kAgreed;
  if (voters_.empty()) return Verdict::kNobody;
  std::size_t most = 0;
  for (const auto& [hash, votes] : count()) most = std::max(most, votes);
  const bool can_win = (most + missing().size()) * 2 > voters_.size();
  return can_win ? Verdict::kOpen : Verdict::kSplit;
}

bool HashAgreement::complete() const { return agreed_ && !reports_.empty() && reports_.size() == expected_.size(); }

bool HashAgreement::unanimous() const { return agreed_ && !differed_; }

std::optional<std::string> HashAgreement::reported(const IslandId& island) const {
  const auto found = reports_.find(island);
  if (found == reports_.end()) return std::nullopt;
  return found->second;
}

std::vector<IslandId> HashAgreement::holders() const {
  std::vector<IslandId> islands;
  for (const auto& [island, hash] : reports_) {
    if (hash == agreed_) islands.push_back(island);
  }
  return islands;
}

std::vector<IslandId> HashAgreement::dissenters() const {
  std::vector<IslandId> islands;
  for (const auto& [island, hash] : reports_) {
    if (agreed_ && hash != agreed_) islands.push_back(island);
  }
  return islands;
}

std::vector<IslandId> HashAgreement::missing() const {
  std::vector<IslandId> islands;
  for (const IslandId& island : voters_) {
    if (!votes_.contains(island)) islands.push_back(island);
  }
  return islands;
}

void HashAgreement::decide() {
  if (!agreed_) {
    for (const auto& [hash, votes] : count()) {
      if (votes * 2 > voters_.size()) agreed_ = hash;
    }
  }
  if (!dissenters().empty()) differed_ = true;
}

}  // namespace atl
