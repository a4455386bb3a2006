// A piece of text by the demo's model, for a person to look at. Main thread; blocks for a minute at most.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

// About 200 visible characters (a dictionary's text is full of spaces), safe for a terminal; the log beside `model`
// is sample.txt. The error says why there is none.
Result<std::string> sample_of(const std::filesystem::path& model, const AbortSignal& interrupt);

}  // namespace atl
