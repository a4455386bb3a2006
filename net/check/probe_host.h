// Looks at this machine: processor, memory, limits, congestion control, and what the driver said in the kernel's log.
// Reads files of /proc and /sys; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "net/check/facts.h"

namespace atl {

// `root`: where proc, sys and dev are looked for. Processor and limits are this process's.
HostFacts probe_host(const std::filesystem::path& root = "/");

// A record of /dev/kmsg, "6,1234,5678901234,-;NVRM: Xid (PCI:0000:4e:00): 79, ...": empty when it tells no Xid. Its
// time is in microseconds since the start, as is `now_microseconds`.
std::optional<XidEvent> parse_xid(std::string_view record, double now_microseconds);

}  // namespace atl
