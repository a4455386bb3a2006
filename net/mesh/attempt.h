// One try to average a round, as the hub sees it: who takes part, who holds the result, what is left of it when it
// fails, and which edges failed before.
// Not thread-safe; owned by the OpenRound.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/wire/mesh.h"

namespace atl {

// Others are there to receive the average.
inline bool trained(const AttemptMember& member) { return member.tokens > 0; }

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
  bool has_it(const IslandId& island) const { return digests_.contains(island); }
  std::size_t how_many_train() const { return static_cast<std::size_t>(std::ranges::count_if(order_, trained)); }
  std::size_t how_many_have_it() const;
  std::vector<IslandId> still_averaging() const;
  // More than half of the members that train, of those that were lost, too: what the others' loss or delay may not
  // decide.
  bool most_trainers_live() const;
  bool most_trainers_have_it() const;
  Outcome outcome() const;
  // Of a live member; defined when the outcome is kAgreed.
  std::string digest() const;
  // What more than half of the members that train hold, of those that were lost, too; empty: nothing. `liars`: by so
  // many that most of the honest do, whichever so many lie.
  std::optional<std::string> held_by_most(std::size_t liars = 0) const;
  bool holds(const std::string& digest) const;              // some live member does
  bool most_members_hold(const std::string& digest) const;  // with weight or without
  // With kDiffer: those whose digest is not the one that more than half of the live trainers hold (of receivers, where
  // no trainer lives); nobody when no digest is held by so many: then counting decides nothing.
  std::vector<IslandId> outvoted() const;

 private:
  template <class Holds>
  bool most_trainers(const Holds& holds, std::size_t liars) const;
  bool holds(const IslandId& island, const std::string& digest) const;

  Attempt number_;
  std::vector<AttemptMember> order_;
  std::set<IslandId> live_;
  std::map<IslandId, std::string> digests_;
};

// Whom the others wait for who answers when most have: it pays for that (DelayBudget).
class AnswerTimes {
 public:
  explicit AnswerTimes(std::size_t asked = 0) : asked_(asked) {}
  // One more answer has come: for how long the others have waited for it.
  Clock::duration came(Clock::time_point now);

 private:
  std::size_t asked_, came_ = 0;
  std::optional<Clock::time_point> most_at_;
};

// What an attempt that failed leaves: of which buckets each of its members holds the average whole. Within one attempt
// these are the same bytes on all that hold them, for a chunk's owner makes them once; so what all members of the next
// attempt hold need not be averaged again, as long as nobody joins them. A member that was lost meanwhile has its part
// in those buckets and not in the others: each bucket is the weighted mean over the members of the attempt that made
// it. Who says that it holds what it does not is found out before the commit, by the digest over all buckets.
class KeptBuckets {
 public:
  // `members`: those that live and are asked.
  explicit KeptBuckets(Attempt of, const std::set<IslandId>& members);

  Attempt attempt() const { return of_; }
  void report(const IslandId& island, const std::vector<bool>& whole_buckets);  // the first of an island counts
  void lose(const IslandId& island) { reports_.erase(island); }                 // nobody waits for it
  bool awaits(const IslandId& island) const;
  bool complete() const;
  // What all of these hold; empty: nothing, also when one of them was no member or has not reported.
  std::vector<bool> held_by(const std::vector<AttemptMember>& members) const;

 private:
  Attempt of_;
  std::map<IslandId, std::optional<std::vector<bool>>> reports_;
};

// What the members say of why one attempt failed: the one whose report ended it, then the others as they answer the
// abort. Judged once, before the next attempt opens.
class FailureReports {
 public:
  void add(const IslandId& reporter, IslandAttemptFailed report);  // the first of an island counts
  using Edges = std::vector<std::pair<IslandId, IslandId>>;
  // Edges at which no connection came to stand, by one end's word or both.
  Edges never_met() const;
  // Edges that one end or both found silent. A connection that one end closed is no such finding: it is how the other
  // learns of any failure at all.
  Edges silent() const;
  std::vector<IslandId> call_silent(const IslandId& island) const;  // who heard nothing of it
  // To be blamed when no edge is found dead: the report that ended the attempt. Was it one of a stall, then the one
  // with the fewest bytes: when one member stops passing data on, all others starve after it and each finds its
  // predecessor without data; but what a member has sent on it must have had, or made, before, so that along the ring
  // everybody has got more than the one that follows the culprit, which got nothing of all that waits there. Not so in
  // a direct exchange, where who waits itself promises the others when it will have found whom it waits for; nor in an
  // attempt that is too young for a stall: then nothing has come to anybody.
  const std::pair<IslandId, IslandAttemptFailed>& blamed(Schedule schedule, bool may_be_stall = true) const;
  struct Wait {
    IslandId waiting, peer;
    std::uint64_t bytes = 0;  // that had come over their edge
  };
  // Who waited for whom when the attempt ended; the one to which least had come first.
  std::vector<Wait> waits() const;

 private:
  Edges edges(bool IslandAttemptFailed::*found) const;

  std::vector<std::pair<IslandId, IslandAttemptFailed>> reports_;  // as they came
};

}  // namespace atl
