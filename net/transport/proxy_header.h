// What a TCP proxy puts before a connection that it passes on: where the connection comes from. The PROXY protocol of
// HAProxy (doc/proxy-protocol.txt), which others speak, too: version 1, a line of text, and version 2, which is binary.
// Whoever connects can write it, so it is believed of proxies that somebody named alone. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

inline constexpr std::size_t kProxyFirstBytes = 12;        // of any header; enough to tell one from anything else
inline constexpr std::size_t kMaxProxyHeaderBytes = 4096;  // of version 2, with what proxies add (TLVs)

// These begin a header.
bool begins_proxy_header(ByteView bytes);
// Of a header's first bytes: how many more to read, none of which is of what follows it; 0: it is whole. At first
// kProxyFirstBytes. kProtocol: it is none, or longer than any may be.
Result<std::size_t> proxy_header_needs(ByteView bytes);
// Of a whole header: the literal address of where the connection comes from. Empty: the proxy's own, such as a look
// whether the hub is there. kProtocol: it is none, or not of TCP.
Result<std::optional<std::string>> proxied_source(ByteView header);

}  // namespace atl
