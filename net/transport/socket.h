// TCP sockets and waits on them: what TlsConnection and PeerListener stand on. Any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

// Waits until `fd` is ready for `events` (poll's), the deadline (kTimeout) or `abort` (kAborted; may be null). Errors
// begin with `what`. Events of 0: returns at once.
Status wait_ready(int fd, short events, Deadline deadline, const AbortSignal* abort, std::string_view what);

// Connected, non-blocking, without Nagle's delay. All addresses of the name are tried, sharing the time that is left.
// kUnreachable when every one refuses or the name has none, kTimeout, kAborted; errors begin with `what`. Looking up a
// name that is no literal address is bounded by the system's resolver, not by the deadline.
Result<UniqueFd> connect_tcp(const Address& address, Deadline deadline, const AbortSignal* abort,
                             std::string_view what);

// Listening and non-blocking; a host of "::" takes IPv4 as well.
Result<UniqueFd> listen_tcp(const Address& bind);
std::uint16_t local_port(int fd);
// Where an accepted socket comes from, for messages.
Address remote_address(int fd);
void disable_nagle(int fd);

}  // namespace atl
