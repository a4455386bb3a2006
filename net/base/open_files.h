// How many files and sockets this process may have open. Main thread, before others start.
#pragma once

namespace atl {

// Raises the limit as far as the system lets us: what logins get by default (1024) is for programs that use select(2).
// Children inherit it.
void raise_open_file_limit();

}  // namespace atl
