// How many files and sockets this process may have open.
#pragma once

#include <cstddef>

namespace atl {

// Raises the limit as far as the system lets us: what logins get by default (1024) is for programs that use select(2).
// Children inherit it. Main thread, before others start.
void raise_open_file_limit();

// As it is now. Any thread.
std::size_t open_file_limit();

}  // namespace atl
