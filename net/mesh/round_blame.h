// Why the attempts of one round failed, and whose fault that is: edges that are dead, members that accuse each other,
// averages that differ. Who is blamed is left out of the next attempt, or sits the round out. One thread; owned by the
// OpenRound.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/mesh/attempt.h"
#include "net/mesh/lie_search.h"
#include "net/mesh/mesh_trust.h"
#include "net/mesh/mesh_verdicts.h"
#include "net/mesh/round_parts.h"

namespace atl {

class RoundBlame {
 public:
  RoundBlame(CoordinatorTurn& turn, Membership& members, MeshLinks& links, MeshTrust& trust, RoundParts& parts,
             MeshVerdicts& verdicts);

  // An attempt failed. Whose reports come is asked then; what was said of the one before counts no more.
  void attempt_failed(const std::vector<AttemptMember>& order, WireFormat wire, Schedule schedule,
                      Clock::duration lasted);
  void report(const IslandId& reporter, const IslandAttemptFailed& report);  // the one that ended it
  void add_report(const IslandId& reporter, const IslandAttemptFailed& report);
  // Of one that runs, which the others end well. False: there is no such edge.
  bool note_broken_edge(const OpenAttempt& attempt, Schedule schedule, const IslandId& reporter,
                        const IslandAttemptFailed& report, bool at_first_hand, Clock::duration cost);
  // The hub itself ended it, for somebody held it up: by what the others say, the edge to one that has the average over
  // which least came to one that has not; or, where all took far longer than the links need, any such edge.
  struct HeldUp {
    Clock::duration lasted{};
    std::set<IslandId> holders = {};  // of the average
    bool laggards_paid = false;       // for that they were waited for: the other end bears its half
    bool is_overdue = false;
  };
  void report_held_up(HeldUp held_up);
  // The two ends of the edge that did, where one was found: each bears half of what that cost.
  const std::set<IslandId>& held_up() const { return held_up_; }
  // When all have said what they saw. An edge that never stood, or was silent, is avoided at once where a ring can do
  // without it; anything else is an accusation, and is counted.
  void judge();
  // For whose sake the attempt that failed did, as far as one island alone can be named: the time that it cost is taken
  // from what the others may wait for it (DelayBudget).
  const std::set<IslandId>& at_fault() const { return at_fault_; }
  void note_fault(const IslandId& island) { at_fault_.insert(island); }
  // Members that owe the others time sit the round out, where these can do without them.
  void leave_out_debtors();
  // By one that had an edge with it in the attempt that failed.
  bool is_called_silent(const IslandId& island) const;
  void forget_reports() {
    reports_.reset();
    held_up_as_.reset();
  }
  void forget_edges();

  // ---- lies: averages that differ, or are larger than their parts can be

  // Members that hold different averages showed their bytes: who is likely to have altered them, likeliest first.
  std::vector<IslandId> likely_liars(const DigestInquiry& inquiry, const OpenAttempt& attempt);
  // The others held the same average and went on without these. Who hides its bytes where most show theirs, or holds
  // what all showed and said another digest, gets a strike; what was altered on its way is not its receiver's fault.
  void strike_the_outvoted(const std::vector<IslandId>& outvoted);
  // The ends of edges at which bytes were altered, or one end shows what it does not hold, are neighbours no more: that
  // tells the two apart. In a ring of three it goes the other way round.
  void change_neighbours(const std::set<IslandPair>& bad_edges);
  bool turned() const { return turned_; }  // the next order is the chosen one backwards
  // Who may be left out of the next attempt: those that are likely to lie, then those that only receive, then the
  // newest of the run. Where fewer than three trained, none of them may, for one alone is checked by nobody.
  void search_for_liar(const std::vector<IslandId>& likely, const std::string& reason);
  // Takes the suspect out of the next attempt's members, where enough are left to check each other.
  void leave_out_suspect(std::vector<AttemptMember>& members);
  bool is_nobody_left_to_suspect() const { return lies_.exhausted(); }
  void search_anew() { lies_.clear(); }
  const std::string& lie() const { return lie_; }  // what the last attempt failed for

  // ---- the work itself

  // Work whose norm is far from the others' is not averaged. One that trains alone is compared with nobody.
  void leave_out_the_large();
  // The attempt passed: whose work is in the average, and whose was left out because attempts with it failed.
  void note_accepted(const OpenAttempt& done);

 private:
  std::set<IslandPair> seen_at_first_hand(const FailureReports& reports) const;
  bool had_edge_with(const IslandId& a, const IslandId& b) const;
  bool avoid_edge(const IslandId& a, const IslandId& b);
  std::optional<IslandId> culprit() const;
  bool edge_failed(const IslandPair& edge, bool at_first_hand);  // true: the next attempt does without it
  void blame_itself(const IslandId& id, const std::string& reason);
  void blame_who_held_up(const FailureReports& reports, const HeldUp& held_up);
  bool take_out_who_is_at_fault(const IslandPair& edge);
  void leave_out_of_round(MeshIsland& island, const std::string& reason);
  void leave_out(MeshIsland& island, const std::string& reason);

  CoordinatorTurn& turn_;
  Membership& members_;
  MeshLinks& links_;
  MeshTrust& trust_;
  RoundParts& parts_;
  MeshVerdicts& verdicts_;

  std::vector<AttemptMember> failed_order_;     // of the last attempt that failed
  WireFormat failed_wire_{};                    // of the same
  Schedule failed_schedule_ = Schedule::kRing;  // of the same
  Clock::duration failed_after_{};              // the same
  std::optional<FailureReports> reports_;       // of the same, if a member's report ended it, or
  std::optional<HeldUp> held_up_as_;            // it was held up
  std::map<IslandId, int> own_failures_;        // attempts of the round that failed by their reporter alone
  std::set<IslandId> taken_out_;                // of the round, for their edges to several others
  std::set<IslandId> held_up_;                  // the ends of the edge that held the last attempt up
  std::set<IslandId> at_fault_;                 // for the last attempt that failed
  std::vector<IslandId> culpable_;              // by the last inquiry, if the next attempt passes without it
  std::set<IslandId> implicated_;               // by what members of the round's attempts showed of their bytes
  bool turned_ = false;
  LieSearch lies_;
  std::string lie_;
};

}  // namespace atl
