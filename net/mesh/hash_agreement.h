// What the islands say of one outer state. The state after a round is a function of the state before it and of the
// committed average, so all honest islands compute the same one; the hub, which computes none, believes a hash when
// more than half of its voters say it. Voters: the islands that trained in the round and held its average when it was
// committed (where none of these is left: the receivers that held it). One island, one vote; a vote
// stays when its island goes, and an island that is away keeps its place among the voters, so that nobody can win by
// being first or by being alone. Without such a majority nothing is agreed: the caller says so and waits.
// Not thread-safe; owned by MeshTrust.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/wire/mesh.h"

namespace atl {

std::set<IslandId> holders_of(const HubCommit& commit);  // who may hold its average

// On the state that a commit made.
struct Voters {
  std::set<IslandId> trainers;
  std::set<IslandId> receivers;  // vote where no trainer is left
};
Voters voters_of(const HubCommit& commit);

class HashAgreement {
 public:
  enum class Verdict {
    kAgreed,
    kOpen,    // votes are missing that may decide
    kSplit,   // whatever the missing votes say, no hash can get more than half
    kNobody,  // all who could vote were removed from the run
  };

  // A new outer state. `agreed`: known from before (the hub restarted), or because it can be computed (step 0).
  void begin(Voters voters, std::optional<std::string> agreed = std::nullopt);
  void expect(const IslandId& island);  // its report is waited for by complete(); no vote
  // The last report of an island counts, its first one as a vote.
  void report(const IslandId& island, const std::string& hash);
  void drop(const IslandId& island);    // it is gone: neither waited for nor a source; its vote stays
  void unseat(const IslandId& island);  // it was removed by the run's operator: it never had a vote
  void stop_waiting();                  // for those that have not reported

  const std::optional<std::string>& agreed() const { return agreed_; }  // once set, until begin()
  Verdict verdict() const;
  bool complete() const;   // agreed, and every expected island has reported
  bool unanimous() const;  // nobody ever reported another hash than the agreed one
  std::optional<std::string> reported(const IslandId& island) const;
  std::vector<IslandId> holders() const;     // reported the agreed hash
  std::vector<IslandId> dissenters() const;  // reported another
  std::vector<IslandId> missing() const;     // voters that have not voted
  const std::map<IslandId, std::string>& votes() const { return votes_; }
  const std::set<IslandId>& voters() const { return voters_; }

 private:
  void seat_receivers();
  std::map<std::string, std::size_t> count() const;
  void decide();

  std::set<IslandId> voters_;
  std::set<IslandId> receivers_;  // not among the voters yet
  std::map<IslandId, std::string> votes_;
  std::set<IslandId> expected_;  // voters and reporters that are there
  std::map<IslandId, std::string> reports_;
  std::optional<std::string> agreed_;
  bool differed_ = false;
};

}  // namespace atl
