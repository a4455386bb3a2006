// What a person or a pipe gives on standard input, read so that Ctrl-C ends the wait. Blocks; one thread.
#pragma once

#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

// The next bytes of standard input, a line at a time from a terminal; empty at its end. kAborted when `interrupt` is
// raised.
Result<std::string> read_input(const AbortSignal& interrupt);

bool input_is_terminal();

// The answer to a question that ends in "[y/N]": anything but y, Y or yes is a no.
Result<bool> said_yes(const AbortSignal& interrupt);

}  // namespace atl
