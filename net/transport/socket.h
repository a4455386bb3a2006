// TCP sockets and waits on them: what TlsConnection and PeerListener stand on. Any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
// kUnreachable when every one refuses or the name has none, kTimeout, kAborted; errors begin with `what`. The deadline
// holds for the look-up of the name too.
Result<UniqueFd> connect_tcp(const Address& address, Deadline deadline, const AbortSignal* abort,
                             std::string_view what);

// The literal addresses of a host, in the resolver's order; of a literal one itself. Errors as connect_tcp's.
Result<std::vector<std::string>> addresses_of(const std::string& host, Deadline deadline, const AbortSignal* abort,
                                              std::string_view what);

// Listening and non-blocking; a host of "::" takes IPv4 as well.
Result<UniqueFd> listen_tcp(const Address& bind);
std::uint16_t local_port(int fd);
// Where an accepted socket comes from, for messages.
Address remote_address(int fd);
void disable_nagle(int fd);

// Of a TCP connection, as the kernel counts; all zero when it cannot say. bytes_queued: written to the socket and not
// acknowledged.
struct TcpProgress {
  std::uint64_t bytes_acknowledged = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;       // each counted once
  std::uint64_t bytes_queued = 0;     // not acknowledged yet
  std::uint64_t bytes_unsent = 0;     // of those: not sent yet
  std::uint64_t bytes_delivered = 0;  // about: those that were acknowledged out of order count as well
  std::uint64_t bytes_retransmitted = 0;
  // With data; those out of order and those sent twice count as well. Tells nothing but whether it grows.
  std::uint64_t segments_received = 0;
  std::chrono::microseconds smoothed_rtt{0};
  bool lost_all = false;  // nothing was acknowledged for so long that all that was under way counts as lost
  std::uint64_t bytes_written() const { return bytes_acknowledged + bytes_queued; }
};
TcpProgress tcp_progress(int fd);
std::size_t bytes_unsent(int fd);  // that alone
// Of what this end sends, bytes/s; nothing: none. Ignored where the kernel does not pace. Also bounds the data that the
// kernel keeps unsent, to what it sends at this rate in a moment.
void limit_pacing(int fd, std::optional<double> bytes_per_second);
void limit_unsent(int fd, int bytes);  // that alone, until the next limit_pacing()
// Of what this end reads no faster than this, bytes/s: a receive buffer of about a second, so that the peer hears of
// each part that was read, and takes a reader that is slow on purpose for none that is gone. Nothing, or so much that
// the kernel grants no such buffer: as the kernel sizes it (which an older one than 5.14 does not again, once it was
// set).
void limit_receiving(int fd, std::optional<double> bytes_per_second);
bool leads_to_this_machine(int fd);
// To which the kernel lets a connection's send buffer grow by itself (net.ipv4.tcp_wmem).
std::size_t most_send_buffer_bytes();
// Of the path, in the last minutes; zero when the kernel does not know.
Seconds least_rtt(int fd);
// Since the peer's kernel last answered anything.
std::chrono::milliseconds since_last_answer(int fd);
// Waits for all that was written to be acknowledged: until `deadline`, until the connection fails or its peer answers
// nothing for 1.5 s.
void wait_until_taken(int fd, Deadline deadline);
// Since this end last sent data.
std::chrono::milliseconds since_last_sent(int fd);

// For connections that carry bulk data and rest for long between: the congestion control of this name where the kernel
// has it and lets us (not to this machine itself, where nothing is ever congested and pacing only costs), little unsent
// data in the kernel, so that a slow connection does not keep what another could carry, and the kernel's own probes of
// an idle peer. Buffer sizes are left to the kernel, which grows them with rate and delay (but to
// this machine itself, where small ones stay in the processor's caches); setting them would end that. Again on a tuned
// connection: as new.
void tune_for_bulk(int fd, const std::string& congestion_control);
// A connection that BBR governs begins anew with its window, and takes its least round trip from the kernel's records
// of minutes: so it does not stop for a probe of it (for 200 ms, every 10 s and at the end of a rest). Nothing happens
// to others, nor within such a probe, whose window is next to none, nor while what was lost comes again.
void spare_bbr_its_probe(int fd);
std::string congestion_control(int fd);

}  // namespace atl
