// What the app says of a trainer's end, by the cause that the agent names, in the person's
// language. Pure; GUI thread.
#pragma once

#include <QString>

#include "net/control/words.h"

namespace atl {

bool exit_was_meant(ExitCause cause);  // as somebody wished, or the run's last round

struct ExitWords {
  QString sentence;  // what happened
  QString advice;    // what to do; may be empty
};
// Of a cause of a newer agent: that it ended.
ExitWords exit_words(ExitCause cause);

}  // namespace atl
