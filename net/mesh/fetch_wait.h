// When the next round waits for those who fetch the committed state. Where rounds are shorter than a fetch, what is
// fetched is outdated each time that it is there; so a round waits now and then. Of the time in which none waits an
// tenth is saved, RunConfig::lost_after at most, and a wait spends all that is saved: whoever asks, under whichever
// names, coming and going as they like, the rounds of any while wait for a tenth of it at most, and for one saving
// beyond. A wait is for all that fetch, so nobody takes it away from another; and it is not spent before it is as long
// as the oldest fetch deserves, which doubles with that one's age, so that a fetch of any length up to lost_after ends
// within one. A function of the time; one thread; owned by the InnerPhase.
#pragma once

#include <optional>

#include "net/base/deadline.h"

namespace atl {

class FetchWait {
 public:
  explicit FetchWait(Clock::duration most) : most_(most) {}

  // A round could begin, but that somebody fetches.
  struct Asked {
    Clock::duration oldest;  // how long the oldest fetch has lasted
    // No round is open, so that the state stays as it is; else the round that is averaged comes to its end first.
    bool stands_still = true;
  };
  // Whether the round waits; empty: it need not, or cannot begin for another reason. `now` never goes back.
  bool waits(const std::optional<Asked>& asked, Clock::time_point now);
  // Of the wait, at most, as of when it was last asked for; zero: none is under way.
  Clock::duration left() const { return waits_ ? left_ : Clock::duration{}; }

 private:
  void keep_account(Clock::time_point now);

  const Clock::duration most_;
  std::optional<Clock::time_point> accounted_until_;
  Clock::duration saved_{};  // below zero: what the end of an average took beyond, and is saved first
  Clock::duration left_{};   // of this wait, for which the state stands still
  bool waits_ = false;
  bool stands_still_ = false;
};

}  // namespace atl
