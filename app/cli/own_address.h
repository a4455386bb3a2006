// The address of this machine that others most likely reach. Any thread.
#pragma once

#include <optional>
#include <string>

namespace atl {

// Of an interface that is up and neither loopback nor link-local: a public IPv4 address, else a private one, else an
// IPv6 address. Empty when there is none.
std::optional<std::string> own_address();

}  // namespace atl
