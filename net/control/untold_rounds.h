// Rounds of a trainer that does not tell round.done, as those of before the event did not, and recordings of them: made
// of how its counters differ between the round's beginning and its end. Used by event_reader.h alone. One thread.
#pragma once

#include <optional>

#include "net/control/events.h"

namespace atl {

class UntoldRounds {
 public:
  // Each event, in order. The round that this event ends and that nobody told: to be heard before it.
  std::optional<event::RoundDone> take(const ControlEvent& event);

 private:
  struct Beginning {  // of the round under way, of the same trainer
    std::uint32_t round = 0;
    std::int64_t trainer = 0;
    std::uint64_t tokens = 0, bytes_sent = 0;
    double inner_seconds = 0;
  };
  event::RoundDone end(const IslandState& state) const;

  std::optional<Beginning> beginning_;
  bool told_ = false;  // by the trainer itself, since the last end
};

}  // namespace atl
