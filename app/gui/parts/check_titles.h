// The rows of a node check by their names for people, translated: the agent says an id ("disk.free") and a figure. For
// every page that shows such rows. GUI thread.
#pragma once

#include <string>

#include <QString>

#include "net/check/check_row.h"

namespace atl {

// "Free disk space" of "disk.free"; the id itself of a row that this version does not know.
QString check_title(const std::string& id);
QString verdict_word(Verdict verdict);

}  // namespace atl
