// What the islands say of one outer state: the hash of the majority is the agreed one; who says another must recover.
// Not thread-safe; owned by the RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/base/id.h"

namespace atl {

class HashAgreement {
 public:
  // A new outer state, of which these islands will report. `agreed`: known from before (the hub restarted).
  void begin(std::set<IslandId> expected, std::optional<std::string> agreed = std::nullopt);
  void expect(const IslandId& island);
  // The last report of an island counts. One that was not expected is from now on.
  void report(const IslandId& island, const std::string& hash);
  void drop(const IslandId& island);  // it is gone: neither waited for nor a source
  void stop_waiting();                // for those that have not reported

  // Set by the first majority of those expected, or, all having reported without one, by the most frequent hash (the
  // one reported first, of equals). Never changes until begin().
  const std::optional<std::string>& agreed() const { return agreed_; }
  bool complete() const;   // every expected island has reported
  bool unanimous() const;  // nobody ever reported another hash than the agreed one
  std::optional<std::string> reported(const IslandId& island) const;
  std::vector<IslandId> holders() const;     // reported the agreed hash
  std::vector<IslandId> dissenters() const;  // reported another

 private:
  void decide();

  std::set<IslandId> expected_;  // reporters included
  std::map<IslandId, std::string> reports_;
  std::vector<std::string> hashes_;  // in the order in which they first came
  std::optional<std::string> agreed_;
  bool differed_ = false;
};

}  // namespace atl
