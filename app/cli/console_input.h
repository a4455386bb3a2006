// What a person or a pipe gives on standard input, read so that Ctrl-C ends the wait. Blocks; one thread.
#pragma once

#include <termios.h>

#include <optional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

// The next bytes of standard input, a line at a time from a terminal; empty at its end. kAborted when `interrupt` is
// raised.
Result<std::string> read_input(const AbortSignal& interrupt);

bool input_is_terminal();

// A terminal on standard input that does not show what is typed or pasted, but for ends of lines, until its end.
// Nothing where standard input is none.
class UnseenInput {
 public:
  UnseenInput();
  ~UnseenInput();
  UnseenInput(const UnseenInput&) = delete;
  UnseenInput& operator=(const UnseenInput&) = delete;

 private:
  std::optional<termios> before_;
};

// Whether there is a person to answer: at standard input, or at the terminal of this process, while standard input is
// something else.
bool can_ask();
// The answer to a question that ends in "[y/N]", from where can_ask() found one: anything but y, Y or yes is a no.
Result<bool> said_yes(const AbortSignal& interrupt);

}  // namespace atl
