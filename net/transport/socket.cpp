#include "net/transport/socket.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "net/base/mutex.h"

namespace atl {
namespace {

// Of one connection: enough for the kernel to go on with while a thread is busy elsewhere, and little enough that a
// connection does not keep for long what another, with nothing to send, could have taken.
constexpr double kUnsentSeconds = 0.06;
constexpr double kLeastUnsentBytes = 16 << 10, kMostUnsentBytes = 1 << 20;
constexpr int kUnsentBytesAtFirst = 128 << 10;  // while its rate is not known
// Within a machine there is no round trip to fill: what is under way had better stay in the processor's caches, where
// copying it in and out costs half. The kernel takes it twice, for its own needs.
constexpr int kLocalSendBuffer = 128 << 10;

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using AddrInfoList = std::unique_ptr<addrinfo, AddrInfoDeleter>;

Error error_of(ErrorCode code, std::string_view what, std::string_view why) {
  return Error{code, fmt::format("{}: {}", what, why)};
}

// Null with `failure` set when there is no address.
AddrInfoList resolve(const Address& address, int flags, int& failure) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  failure = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  return AddrInfoList(failure == 0 ? list : nullptr);
}

// One look-up, on a thread of its own that may outlast the wait for it: the resolver has deadlines of its own, and
// cannot be interrupted. (getaddrinfo_a would lend a thread, but one that ThreadSanitizer does not know.)
struct NameLookup {
  Mutex mutex;
  CondVar ended;
  int failure ATOLL_GUARDED_BY(mutex) = EAI_INPROGRESS;
  AddrInfoList found ATOLL_GUARDED_BY(mutex);
};

std::shared_ptr<NameLookup> start_lookup(const Address& address) {
  auto lookup = std::make_shared<NameLookup>();
  try {
    std::thread([lookup, address] {
      int failure = 0;
      AddrInfoList found = resolve(address, AI_ADDRCONFIG, failure);
      const MutexLock lock(lookup->mutex);
      lookup->failure = failure;
      lookup->found = std::move(found);
      lookup->ended.notify_all();
    }).detach();
  } catch (const std::system_error&) {  // no thread to be had
    const MutexLock lock(lookup->mutex);
    lookup->failure = EAI_AGAIN;
  }
  return lookup;
}

Result<AddrInfoList> look_up(const Address& address, Deadline deadline, const AbortSignal* abort,
                             std::string_view what) {
  int failure = 0;
  if (AddrInfoList literal = resolve(address, AI_NUMERICHOST, failure)) return literal;
  constexpr std::chrono::milliseconds kLook{50};  // for an abort
  const std::shared_ptr<NameLookup> lookup = start_lookup(address);
  const auto ended = [&]() ATOLL_REQUIRES(lookup->mutex) { return lookup->failure != EAI_INPROGRESS; };
  MutexLock lock(lookup->mutex);
  while (!ended() && !deadline.expired() && !(abort != nullptr && abort->raised())) {
    (void)lookup->ended.wait(lock, Deadline::after(kLook).but_not_after(deadline), ended);
  }
  failure = lookup->failure;
  if (failure == 0) return std::move(lookup->found);
  if (failure != EAI_INPROGRESS) {
    return error_of(ErrorCode::kUnreachable, what,
                    fmt::format("no address for this name: {}", ::gai_strerror(failure)));
  }
  if (abort != nullptr && abort->raised()) return error_of(ErrorCode::kAborted, what, abort->reason());
  return error_of(ErrorCode::kTimeout, what, "its name was not looked up within the time allowed");
}

Result<UniqueFd> connect_one(const addrinfo& target, Deadline deadline, const AbortSignal* abort,
                             std::string_view what) {
  UniqueFd fd(::socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return error_of(ErrorCode::kIo, what, std::strerror(errno));
  int reason = ::connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0 ? 0 : errno;
  if (reason == EINPROGRESS || reason == EINTR) {
    ATOLL_RETURN_IF_ERROR(wait_ready(fd.get(), POLLOUT, deadline, abort, what));
    socklen_t size = sizeof reason;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &reason, &size) != 0) reason = errno;
  }
  if (reason != 0) {
    return error_of(
        ErrorCode::kUnreachable, what,
        fmt::format("{}; is it running there, and may its port be reached from here?", std::strerror(reason)));
  }
  disable_nagle(fd.get());
  return fd;
}

}  // namespace

Status wait_ready(int fd, short events, Deadline deadline, const AbortSignal* abort, std::string_view what) {
  if (events == 0) return ok_status();
  std::array<pollfd, 2> watched{pollfd{fd, events, 0}, pollfd{abort != nullptr ? abort->fd() : -1, POLLIN, 0}};
  for (;;) {
    const int ready = ::poll(watched.data(), watched.size(), deadline.poll_milliseconds());
    if (ready < 0 && errno != EINTR) return error_of(ErrorCode::kIo, what, std::strerror(errno));
    if (abort != nullptr && abort->raised()) return error_of(ErrorCode::kAborted, what, abort->reason());
    if (ready > 0 && watched[0].revents != 0) return ok_status();
    if (deadline.expired()) return error_of(ErrorCode::kTimeout, what, "no answer within the time allowed");
  }
}

Result<std::vector<std::string>> addresses_of(const std::string& host, Deadline deadline, const AbortSignal* abort,
                                              std::string_view what) {
  ATOLL_ASSIGN_OR_RETURN(const AddrInfoList found, look_up({host, 0}, deadline, abort, what));
  std::vector<std::string> addresses;
  for (const addrinfo* next = found.get(); next != nullptr; next = next->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(next->ai_addr, next->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  return addresses;
}

Result<UniqueFd> connect_tcp(const Address& address, Deadline deadline, const AbortSignal* abort,
                             std::string_view what) {
  ATOLL_ASSIGN_OR_RETURN(const AddrInfoList list, look_up(address, deadline, abort, what));
  int left = 0;
  for (const addrinfo* target = list.get(); target != nullptr; target = target->ai_next) ++left;
  Error last;
  for (const addrinfo* target = list.get(); target != nullptr; target = target->ai_next, --left) {
    const auto share = std::max<Clock::duration>(deadline.when() - Clock::now(), Clock::duration::zero()) / left;
    Result<UniqueFd> connected = connect_one(*target, Deadline::after(share), abort, what);
    if (connected.ok() || connected.error().code == ErrorCode::kAborted) return connected;
    last = connected.error();
  }
  return last;
}

Result<UniqueFd> listen_tcp(const Address& bind) {
  const std::string what = fmt::format("cannot listen on {}", to_string(bind));
  int failure = 0;
  const AddrInfoList list = resolve(bind, AI_PASSIVE, failure);
  if (!list) return error_of(ErrorCode::kInvalidArgument, what, ::gai_strerror(failure));
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return error_of(ErrorCode::kIo, what, std::strerror(errno));
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (list->ai_family == AF_INET6) (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    const char* next = reason == EADDRINUSE ? "; another program uses this port, choose another"
                       : reason == EACCES   ? "; ports below 1024 need root, choose another"
                                            : "";
    return error_of(reason == EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kIo, what,
                    fmt::format("{}{}", std::strerror(reason), next));
  }
  return fd;
}

namespace {

Address address_of(const sockaddr_storage& storage, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return Address{"unknown", 0};
  }
  return Address{host.data(), static_cast<std::uint16_t>(std::atoi(port.data()))};
}

}  // namespace

std::uint16_t local_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return address_of(storage, size).port;
}

Address remote_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return Address{"unknown", 0};
  return address_of(storage, size);
}

void disable_nagle(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool leads_to_this_machine(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return false;
  if (storage.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
  }
  const auto address = ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr);
  return storage.ss_family == AF_INET && (address >> 24) == IN_LOOPBACKNET;
}

TcpProgress tcp_progress(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  int queued = 0;
  if (::ioctl(fd, SIOCOUTQ, &queued) != 0) queued = 0;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_bytes_acked,
          info.tcpi_bytes_received,
          info.tcpi_bytes_sent - std::min(info.tcpi_bytes_retrans, info.tcpi_bytes_sent),
          static_cast<std::uint64_t>(std::max(queued, 0)),
          info.tcpi_notsent_bytes,
          std::uint64_t{info.tcpi_delivered} * info.tcpi_snd_mss,
          info.tcpi_bytes_retrans,
          info.tcpi_data_segs_in,
          std::chrono::microseconds(info.tcpi_rtt),
          info.tcpi_ca_state == TCP_CA_Loss};
}

std::size_t bytes_unsent(int fd) {
  int unsent = 0;
  return ::ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && unsent > 0 ? static_cast<std::size_t>(unsent) : 0;
}

void limit_pacing(int fd, std::optional<double> bytes_per_second) {
  constexpr double kFastest = 1e15;  // no link is, and it fits the type
  const auto most =
      bytes_per_second ? static_cast<std::uint64_t>(std::min(*bytes_per_second, kFastest)) : ~std::uint64_t{0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most);
  const int unsent =
      bytes_per_second
          ? static_cast<int>(std::clamp(*bytes_per_second * kUnsentSeconds, kLeastUnsentBytes, kMostUnsentBytes))
          : kUnsentBytesAtFirst;
  limit_unsent(fd, unsent);
}

void limit_unsent(int fd, int bytes) { (void)::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes); }

std::size_t most_send_buffer_bytes() {
  static const std::size_t most = [] {
    constexpr std::size_t kOfMostSystems = std::size_t{4} << 20;
    std::ifstream file("/proc/sys/net/ipv4/tcp_wmem");
    std::size_t least = 0, at_first = 0, at_most = 0;
    return file >> least >> at_first >> at_most && at_most > 0 ? at_most : kOfMostSystems;
  }();
  return most;
}

Seconds least_rtt(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const bool known = info.tcpi_min_rtt != 0 && info.tcpi_min_rtt != ~0u;
  return known ? Seconds(std::chrono::microseconds(info.tcpi_min_rtt)) : Seconds{};
}

std::chrono::milliseconds since_last_answer(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::chrono::milliseconds::max();
  return std::chrono::milliseconds(info.tcpi_last_ack_recv);
}

void wait_until_taken(int fd, Deadline deadline) {
  constexpr std::chrono::milliseconds kGoneAfter{1'500};
  constexpr int kStepMilliseconds = 10;
  while (tcp_progress(fd).bytes_queued > 0 && since_last_answer(fd) < kGoneAfter && !deadline.expired()) {
    pollfd failed{fd, 0, 0};
    if (::poll(&failed, 1, kStepMilliseconds) > 0) return;
  }
}

std::chrono::milliseconds since_last_sent(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::chrono::milliseconds::max();
  return std::chrono::milliseconds(info.tcpi_last_data_sent);
}

void spare_bbr_its_probe(int fd) {
  constexpr std::string_view kBbr = "bbr", kOther = "reno";  // every kernel has it
  constexpr unsigned kWindowOfProbe = 4;                     // segments
  tcp_info info{};
  socklen_t size = sizeof info;
  if (congestion_control(fd) != kBbr || ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.tcpi_snd_cwnd <= kWindowOfProbe || info.tcpi_ca_state != TCP_CA_Open) return;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kOther.data(), kOther.size());
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kBbr.data(), kBbr.size());
}

void limit_receiving(int fd, std::optional<double> bytes_per_second) {
  constexpr double kLeast = 16 * 1024, kGranted = 200'000;  // bytes; net.core.rmem_max is 212,992 unless it was raised
  if (bytes_per_second && *bytes_per_second <= kGranted) {
    const int room = static_cast<int>(std::max(kLeast, *bytes_per_second));
    (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return;
  }
  constexpr int kBufferLocks = 72, kReceiveLock = 2;  // SO_BUF_LOCK, SOCK_RCVBUF_LOCK, which glibc's headers may lack
  int locks = 0;
  socklen_t size = sizeof locks;
  if (::getsockopt(fd, SOL_SOCKET, kBufferLocks, &locks, &size) != 0 || (locks & kReceiveLock) == 0) return;
  locks &= ~kReceiveLock;
  (void)::setsockopt(fd, SOL_SOCKET, kBufferLocks, &locks, sizeof locks);
}

void tune_for_bulk(int fd, const std::string& congestion_control) {
  const auto set = [fd](int level, int option, int value) {
    (void)::setsockopt(fd, level, option, &value, sizeof value);
  };
  if (leads_to_this_machine(fd)) {
    set(SOL_SOCKET, SO_SNDBUF, kLocalSendBuffer);
  } else {
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(), congestion_control.size());
  }
  set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytesAtFirst);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);  // s: below the idle time after which routers forget a connection
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string congestion_control(int fd) {
  std::array<char, 32> name{};
  socklen_t size = name.size() - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return "unknown";
  return name.data();
}

}  // namespace atl
