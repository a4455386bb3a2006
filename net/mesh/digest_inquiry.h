// Who altered what, when the members of one attempt hold different averages. In the all-gather the owner of a chunk
// makes its final bytes once and every other member passes them on unchanged, each to the next; in a direct exchange
// the owner sends them to everybody itself. So where two hold different bytes of a chunk that one sent to the other,
// one of the two altered them, or says what it does not hold; both ends of such an edge are suspects, and nobody else.
// An island that is an end of bad edges to two different peers is the liar, for as long as there is one: its victims
// have a bad edge to it alone.
//
// Pure values; not thread-safe; owned by the OpenRound.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/base/id.h"
#include "net/mesh/edge_failures.h"
#include "net/wire/mesh.h"

namespace atl {

class DigestInquiry {
 public:
  // `order`, `schedule`: of the attempt; `asked`: its members that live.
  DigestInquiry(Attempt attempt, std::vector<AttemptMember> order, std::set<IslandId> asked,
                Schedule schedule = Schedule::kRing);

  Attempt attempt() const { return attempt_; }
  // The first answer of an island counts; one of another length than the ring says nothing.
  void answer(const IslandId& island, std::vector<std::string> chunk_digests);
  void lose(const IslandId& island) { asked_.erase(island); }
  bool awaits(const IslandId& island) const { return asked_.contains(island) && !answers_.contains(island); }
  bool complete() const;
  std::vector<IslandId> silent() const;  // asked, and no answer

  // Edges between members that answered and hold different bytes of a chunk that travelled from one to the other.
  std::set<IslandPair> bad_edges() const;

 private:
  const Attempt attempt_;
  const std::vector<AttemptMember> order_;
  const Schedule schedule_;
  std::set<IslandId> asked_;
  std::map<IslandId, std::vector<std::string>> answers_;
};

// Bad edges found in the attempts of a round.
class BadEdges {
 public:
  void add(const std::set<IslandPair>& edges) { edges_.insert(edges.begin(), edges.end()); }
  void forget(const IslandId& island);
  void clear() { edges_.clear(); }
  // The one island that is an end of every bad edge, when there are two or more.
  std::optional<IslandId> culprit() const;

 private:
  std::set<IslandPair> edges_;
};

}  // namespace atl
