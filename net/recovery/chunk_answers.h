// What an island answers to a member's GET beneath /data/ (net/data/chunk_peers.h): chunks of the run's data that it
// holds, read from its disk as they are sent, and who else may have one. Threads of connections.
#pragma once

#include <string_view>

#include "net/base/abort_signal.h"
#include "net/base/id.h"
#include "net/data/chunk_peers.h"
#include "net/recovery/state_answers.h"

namespace atl {

// `chunks`: null where it holds none of any. May wait a second or two for a chunk that is being fetched, until `abort`.
Answer answer_data(std::string_view target, const IslandId& asker, ServedChunks* chunks, const AbortSignal& abort);

}  // namespace atl
