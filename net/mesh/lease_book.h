// Which positions of the run's sequence order are leased next: those that came back first, in whole ranges, then new
// ones. What its island could not get the data of is put off until others have trained on: each time longer, so that
// what nobody can get costs little. What was committed is never handed out again, for nobody gives it back. Not
// thread-safe; owned by the RoundCoordinator.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace atl {

struct LeaseRange {  // positions [first, first + sequences)
  std::uint64_t first = 0;
  std::uint64_t sequences = 0;
  auto operator<=>(const LeaseRange&) const = default;
};

class LeaseBook {
 public:
  // cursor: the first position never leased.
  LeaseBook(std::uint64_t cursor, const std::vector<LeaseRange>& returned);

  LeaseRange take(std::uint64_t sequences);
  bool take(LeaseRange range);       // that very one; false where it did not come back whole
  void give_back(LeaseRange range);  // an empty one is nothing
  void put_off(LeaseRange range);
  std::uint64_t cursor() const { return cursor_; }
  // What was leased before this position is not known to be free: only what lies behind it is handed out.
  void forget_before(std::uint64_t position);

 private:
  std::uint64_t cursor_;
  std::set<LeaseRange> returned_;
  std::map<LeaseRange, std::uint64_t> put_off_;  // each until the cursor is there
  std::map<LeaseRange, int> times_put_off_;      // also of what is leased again
};

}  // namespace atl
