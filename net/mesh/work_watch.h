// Whose work is not averaged for what it does to the others': who says itself that it gives what goes against theirs,
// and, where an average is not what its members say that they gave, whoever it is without whom it is. An attempt that
// is found so is not committed; the next ones give one trainer after the other no weight: those first that were in the
// most such averages. Who is found is left out for rounds that grow each time, also over leaving and coming back, and
// then tried again. Who is left out receives and takes the outer step as all.
//
// A liar can choose when to lie, so an average that is sound without somebody proves nothing; one that is not clears
// whoever gave nothing to it. So who is found was in each that was not sound, and nobody else was. Where that is so of
// two, they take turns: a liar that has another suspected is left out as often itself.
//
// Without sockets or clocks; not thread-safe; owned by MeshTrust. A hub that restarts begins anew.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/mesh/work_findings.h"

namespace atl {

class WorkWatch {
 public:
  // Takes their weight from those whose work the next attempt of `round` does without; no more than fewer than half,
  // nor so many that fewer than the quorum, or than two, are left.
  void leave_out(OuterStep round, std::uint32_t quorum, std::vector<AttemptMember>& members);
  struct Fault {
    std::string reason;
    bool is_hopeless = false;  // too few train, or too many lie, for this to find whose it is
  };
  // All members of an attempt hold the same average: why it is not to be committed; nothing: it may be. `left_out`:
  // whose work it does without; `wire`: its format.
  std::optional<Fault> find_fault(OuterStep round, const std::vector<AttemptMember>& members,
                                  const std::set<IslandId>& left_out, const WorkWords& words, WireFormat wire);
  // Most members find their average larger than what they say that they gave can be: nobody can say what it is of.
  Fault find_too_large(const std::vector<AttemptMember>& members, const std::set<IslandId>& left_out);
  // An average was committed that nobody could look into, for parts of it are of an attempt before. True: the next one
  // is made anew, or who makes attempts fail would never be looked at.
  void note_kept(const WorkWords& words) {
    looked_into_.reset();
    is_overdue_ = words.average().has_value();
  }
  bool is_overdue() const { return is_overdue_; }
  // The attempt passed. `left_out`: whose work it did without. Why, by island, to be told.
  std::map<IslandId, std::string> note_committed(OuterStep round, const std::vector<AttemptMember>& members,
                                                 const std::set<IslandId>& left_out);
  void forget(const IslandId& island) { known_.erase(island); }  // removed by the run's operator
  // Who was found last, or whose work goes most against the others'; for people.
  std::optional<IslandId> suspect() const;

 private:
  struct Known {
    double suspicion = 0;                // averages that were not what their members say, and to which it gave
    bool sound_without = false;          // since the search began
    bool is_silent = false;              // does not say what it gave
    std::uint32_t left_out_at = 0;       // by turns_
    std::uint32_t accepted = 0;          // rounds
    double against = 0;                  // what it said, over rounds; 0 and up
    std::optional<OuterStep> looked_at;  // the last round that counts in it
    int found = 0;
    std::uint32_t out_until = 0;  // round
    std::string why;
  };

  bool is_out(const IslandId& island, OuterStep round) const;
  Fault find_missing(const WorkFindings& found, const std::vector<AttemptMember>& members, std::size_t trainers);
  std::optional<Fault> find_contrary(OuterStep round, const WorkFindings& found);
  bool confirm_who_is_back(const std::vector<AttemptMember>& members);
  std::vector<IslandId> to_be_tried(std::vector<IslandId> trainers) const;
  std::vector<IslandId> sole_suspect(OuterStep round, const std::vector<AttemptMember>& members,
                                     const std::set<IslandId>& left_out) const;
  std::vector<IslandId> most_suspected(std::vector<IslandId> trainers) const;
  void settle_search(OuterStep round, const std::vector<AttemptMember>& members, const std::set<IslandId>& left_out);
  void condemn(const IslandId& island, OuterStep round, const std::string& why);

  std::map<IslandId, Known> known_;
  bool searches_ = false;
  double largest_missing_ = 0;      // in this search
  std::size_t unsound_in_row_ = 0;  // attempts
  std::size_t at_once_ = 1;         // left out
  bool finds_size_ = false;         // in this search, an average was too large
  // Without all of these an average was sound: one after the other is let in again. True: with it one was not.
  std::map<IslandId, bool> held_;
  std::uint32_t rounds_left_ = 0;  // of this search, to find nobody in
  int fruitless_ = 0;              // searches
  std::uint32_t turns_ = 0;
  std::optional<OuterStep> looked_into_;  // of the newest attempt that was
  bool is_overdue_ = false;
};

}  // namespace atl
