// The kinds of LineStream. GUI thread.
#pragma once

#include <filesystem>

#include "app/core/line_stream.h"
#include "app/core/node_address.h"
#include "net/control/home.h"

namespace atl {

OpenStream open_socket(const std::filesystem::path& socket);  // an agent or hub of this machine
OpenStream open_hub(const HubHome& home);                     // the hub of that home, on this machine
OpenStream open_ssh(const QString& url);                      // ssh ... atoll control --stdio
// A recording: answers calls with what was answered then to the same method and parameters (else the same method), and
// sends events when they came then, `speed` times as fast. It goes on where it was when a connection of it is made
// again, and closes with kAborted at its end.
OpenStream open_recording(const QString& file, double speed);

OpenStream open_stream(const NodeAddress& address);

}  // namespace atl
