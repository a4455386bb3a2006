// What the app says of a rule of the owner's that pauses the training, in the person's language. Pure; GUI thread.
#pragma once

#include <QString>

#include "net/control/node_state.h"

namespace atl {

// "Training is paused while the machine runs on its battery."; of a rule of a newer agent as that says it.
QString pause_words(const PausedBy& pause);

}  // namespace atl
