// One try to average a round, as the hub sees it: who takes part, who holds the result, and which edges failed before.
// Not thread-safe; owned by the RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/base/id.h"
#include "net/wire/mesh.h"

namespace atl {

class OpenAttempt {
 public:
  enum class Outcome {
    kPending,   // somebody is still averaging
    kAgreed,    // every live member holds the same digest
    kDiffer,    // every live member holds an average, not all the same
    kDeserted,  // no member is left
  };

  OpenAttempt(Attempt number, std::vector<AttemptMember> order);

  Attempt number() const { return number_; }
  const std::vector<AttemptMember>& order() const {
    return order_;
  }  // those lost included: their work is in the average
  const std::set<IslandId>& live() const { return live_; }
  bool has_lost_a_member() const { return live_.size() < order_.size(); }

  void lose(const IslandId& island) { live_.erase(island); }
  void have(const IslandId& island, const std::string& digest);
  std::vector<IslandId> still_averaging() const;
  Outcome outcome() const;
  // Of a live member; defined when the outcome is kAgreed.
  std::string digest() const;
  // With kDiffer: those whose digest is not that of more than half; all of them when there is no such digest.
  std::vector<IslandId> minority() const;

 private:
  Attempt number_;
  std::vector<AttemptMember> order_;
  std::set<IslandId> live_;
  std::map<IslandId, std::string> digests_;
};

// Failures between two islands within one round. Both are alive, their edge is not: after kTolerated failures one of
// them must sit the round out.
class EdgeBlame {
 public:
  static constexpr int kTolerated = 3;

  void clear() { failures_.clear(); }
  // Without a peer the reporter blames itself. True when the edge has failed kTolerated times.
  bool record(const IslandId& reporter, const std::optional<IslandId>& peer);

 private:
  std::map<std::pair<IslandId, IslandId>, int> failures_;
};

}  // namespace atl
