// What a hub says of a run, made without one: tests change the words that they are about.
#pragma once

#include "net/control/hub_state.h"

namespace atl::test {

// The mean loss of a round, which falls.
double loss_of_round(unsigned round);
// A run that trains: so many islands, of which the second synchronises, and so many rounds committed. Never validated.
HubState training_run(unsigned islands, unsigned rounds);
// One that has just been created, and waits for its islands.
HubState young_run();

}  // namespace atl::test
