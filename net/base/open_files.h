// The files and sockets that this process has open.
#pragma once

#include <cstddef>

namespace atl {

// Raises the limit as far as the system lets us: what logins get by default (1024) is for programs that use select(2).
// Children inherit it. Main thread, before others start.
void raise_open_file_limit();

// Opens /dev/null for each of stdin, stdout and stderr that is closed: the next file or socket of this process would
// take its number, and what is printed would go there. On stdout writes fail all the same. Main thread, first of all.
void fill_standard_files();

// As it is now. Any thread.
std::size_t open_file_limit();

}  // namespace atl
