#include "net/mesh/hash_agreement.h"

#include <algorithm>

namespace atl {

void HashAgreement::begin(std::set<IslandId> expected, std::optional<std::string> agreed) {
  expected_ = std::move(expected);
  agreed_ = std::move(agreed);
  reports_.clear();
  hashes_.clear();
  differed_ = false;
}

void HashAgreement::expect(const IslandId& island) { expected_.insert(island); }

void HashAgreement::report(const IslandId& island, const std::string& hash) {
  expected_.insert(island);
  reports_[island] = hash;
  if (std::ranges::find(hashes_, hash) == hashes_.end()) hashes_.push_back(hash);
  decide();
}

void HashAgreement::drop(const IslandId& island) {
  expected_.erase(island);
  reports_.erase(island);
  decide();
}

void HashAgreement::stop_waiting() {
  std::erase_if(expected_, [this](const IslandId& island) { return !reports_.contains(island); });
  decide();
}

bool HashAgreement::complete() const { return !reports_.empty() && reports_.size() == expected_.size(); }

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

void HashAgreement::decide() {
  if (!agreed_ && !reports_.empty()) {
    const auto votes = [this](const std::string& hash) {
      return std::ranges::count_if(reports_, [&](const auto& entry) { return entry.second == hash; });
    };
    const auto top = std::ranges::max_element(hashes_, {}, votes);  // the first of equals
    const bool majority = static_cast<std::size_t>(votes(*top)) * 2 > expected_.size();
    if (majority || complete()) agreed_ = *top;
  }
  if (!dissenters().empty()) differed_ = true;
}

}  // namespace atl
