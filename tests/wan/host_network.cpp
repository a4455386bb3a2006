#include "tests/wan/host_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "net/base/file.h"
#include "tests/wan/wan_packet.h"

namespace atl::wan {
namespace {

constexpr std::uint32_t kNetwork = 0x0a4d0000;  // 10.77.0.0
constexpr int kTransmitQueue = 4096;            // packets; the device is emptied every fraction of a millisecond
constexpr const char* kDevice = "wan0";

ifreq request_for(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

Status call(int fd, unsigned long operation, void* argument, const char* what) {
  if (::ioctl(fd, operation, argument) != 0) return errno_error(what, kDevice);
  return ok_status();
}

Result<UniqueFd> open_tun() {
  UniqueFd tun(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tun) return errno_error("open", "/dev/net/tun");
  ifreq request = request_for(kDevice);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  ATOLL_RETURN_IF_ERROR(call(tun.get(), TUNSETIFF, &request, "make the device"));
  if (::ioctl(tun.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) return errno_error("set offloads of", kDevice);
  return tun;
}

Status set_flags_up(int socket, const char* device) {
  ifreq request = request_for(device);
  ATOLL_RETURN_IF_ERROR(call(socket, SIOCGIFFLAGS, &request, "read the flags of"));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  return call(socket, SIOCSIFFLAGS, &request, "bring up");
}

sockaddr as_sockaddr(std::uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  sockaddr out{};
  std::memcpy(&out, &in, sizeof out);
  return out;
}

Status configure(int index) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("open a socket for", kDevice);
  ifreq request = request_for(kDevice);
  request.ifr_addr = as_sockaddr(kNetwork + static_cast<std::uint32_t>(index) + 1);
  ATOLL_RETURN_IF_ERROR(call(socket.get(), SIOCSIFADDR, &request, "set the address of"));
  request.ifr_netmask = as_sockaddr(0xffffff00);
  ATOLL_RETURN_IF_ERROR(call(socket.get(), SIOCSIFNETMASK, &request, "set the netmask of"));
  request.ifr_qlen = kTransmitQueue;
  ATOLL_RETURN_IF_ERROR(call(socket.get(), SIOCSIFTXQLEN, &request, "set the queue of"));
  ATOLL_RETURN_IF_ERROR(set_flags_up(socket.get(), kDevice));
  return set_flags_up(socket.get(), "lo");
}

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

Result<HostNetwork> HostNetwork::create(int index) {
  Result<HostNetwork> result = Error{ErrorCode::kInternal, "the namespace was not made"};
  // A thread of its own, so that ours stays where it is.
  std::jthread([&] {
    result = [&]() -> Result<HostNetwork> {
      if (::unshare(CLONE_NEWNET) != 0) return errno_error("make", "a network namespace");
      UniqueFd network_namespace(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      if (!network_namespace) return errno_error("open", "/proc/thread-self/ns/net");
      ATOLL_ASSIGN_OR_RETURN(UniqueFd tun, open_tun());
      ATOLL_RETURN_IF_ERROR(configure(index));
      return HostNetwork(index, std::move(network_namespace), std::move(tun));
    }();
  }).join();
  return result;
}

InsideHost::InsideHost(const HostNetwork& host) : home_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
  if (!home_ || ::setns(host.network_namespace(), CLONE_NEWNET) != 0) die("wan: enter a host");
}

InsideHost::~InsideHost() {
  if (::setns(home_.get(), CLONE_NEWNET) != 0) die("wan: leave a host");
}

std::string host_address(int index) { return fmt::format("10.77.0.{}", index + 1); }

int host_of(std::uint32_t address) {
  return (address & 0xffffff00) == kNetwork ? static_cast<int>(address & 0xff) - 1 : -1;
}

}  // namespace atl::wan
