#include "app/cli/bench/link_stream.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <linux/tcp.h>

#include "net/base/file.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kSilence{15};  // a transfer that moves nothing for so long has failed

LinkSenderReport report_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  LinkSenderReport report;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    report = {info.tcpi_rtt, info.tcpi_min_rtt, info.tcpi_total_retrans, info.tcpi_segs_out, {}};
  }
  report.congestion_control = congestion_control(fd);
  return report;
}

}  // namespace

int LinkStream::fd() const {
  const auto* tls = std::get_if<TlsConnection>(&connection_);
  return tls != nullptr ? tls->fd() : std::get<UniqueFd>(connection_).get();
}

Status LinkStream::write_all(ByteView bytes, Deadline deadline, const AbortSignal& interrupt) {
  if (auto* tls = std::get_if<TlsConnection>(&connection_)) return tls->write_all(bytes, deadline, &interrupt);
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN || errno == EINTR) {
      ATOLL_RETURN_IF_ERROR(wait_ready(fd(), POLLOUT, deadline, &interrupt, "bench link: sending"));
    } else {
      return errno_error("send to", "the other end of bench link");
    }
  }
  return ok_status();
}

Status LinkStream::read_exact(std::span<std::byte> bytes, Deadline deadline, const AbortSignal& interrupt) {
  if (auto* tls = std::get_if<TlsConnection>(&connection_)) return tls->read_exact(bytes, deadline, &interrupt);
  while (!bytes.empty()) {
    const ssize_t count = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (count == 0) {
      return Error{ErrorCode::kPeerLost, "bench link: the other end closed the connection"};
    } else if (errno == EAGAIN || errno == EINTR) {
      ATOLL_RETURN_IF_ERROR(wait_ready(fd(), POLLIN, deadline, &interrupt, "bench link: receiving"));
    } else {
      return errno_error("receive from", "the other end of bench link");
    }
  }
  return ok_status();
}

Result<LinkReceiverReport> send_blocks(LinkStream& stream, std::chrono::milliseconds duration,
                                       const AbortSignal& interrupt, LinkSenderReport& sent) {
  Bytes block(kLinkBlockBytes);
  for (std::size_t i = 1; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  const auto end = Clock::now() + duration;
  std::uint64_t bytes = 0;
  for (bool last = false; !last;) {
    bytes += block.size();
    last = Clock::now() >= end || bytes >= kMaxLinkBytes;
    block[0] = std::byte{last};
    ATOLL_RETURN_IF_ERROR(stream.write_all(block, Deadline::after(kSilence), interrupt));
  }
  sent = report_of(stream.fd());
  ATOLL_RETURN_IF_ERROR(stream.write_all(encode(sent), Deadline::after(kSilence), interrupt));
  Bytes report(kLinkReceiverReportBytes);
  // What is still in buffers at the end may take a slow link a while.
  ATOLL_RETURN_IF_ERROR(stream.read_exact(report, Deadline::after(4 * kSilence), interrupt));
  return decode_link_receiver_report(report);
}

Result<LinkReceiverReport> receive_blocks(LinkStream& stream, std::chrono::milliseconds duration,
                                          const AbortSignal& interrupt, LinkSenderReport& sent) {
  Bytes block(kLinkBlockBytes);
  LinkReceiverReport report;
  const auto begin = Clock::now();
  auto steady_since = begin;
  std::uint64_t before_steady = 0;
  const Deadline latest = Deadline::after(duration + 4 * kSilence);  // a slow link delivers late what was sent in time
  for (bool last = false; !last;) {
    ATOLL_RETURN_IF_ERROR(stream.read_exact(block, Deadline::after(kSilence).but_not_after(latest), interrupt));
    report.bytes += block.size();
    last = block[0] != std::byte{0} || report.bytes >= kMaxLinkBytes;
    const auto now = Clock::now();
    if (now - begin < duration / 3) {
      steady_since = now;
      before_steady = report.bytes;
    }
  }
  const auto end = Clock::now();
  report.nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count());
  report.steady_bytes = report.bytes - before_steady;
  report.steady_nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(end - steady_since).count());
  Bytes senders(kLinkSenderReportBytes);
  ATOLL_RETURN_IF_ERROR(stream.read_exact(senders, Deadline::after(kSilence), interrupt));
  ATOLL_ASSIGN_OR_RETURN(sent, decode_link_sender_report(senders));
  ATOLL_RETURN_IF_ERROR(stream.write_all(encode(report), Deadline::after(kSilence), interrupt));
  return report;
}

}  // namespace atl
