// One host of the emulated internet: a network namespace with a loopback device and one TUN device, `wan0`. The
// namespace has no name: it lives as long as a file descriptor or a process holds it, so that nothing is left behind
// however the program ends. Any thread.
#pragma once

#include <optional>
#include <string>

#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl::wan {

class HostNetwork {
 public:
  // Address 10.77.0.(index + 1)/24. kPermissionDenied or kNotFound, in words, where the system does not let us.
  static Result<HostNetwork> create(int index);

  int index() const { return index_; }
  int tun() const { return tun_.get(); }  // non-blocking; packets with a virtio header
  int network_namespace() const { return namespace_.get(); }

 private:
  HostNetwork(int index, UniqueFd network_namespace, UniqueFd tun)
      : index_(index), namespace_(std::move(network_namespace)), tun_(std::move(tun)) {}

  int index_;
  UniqueFd namespace_;
  UniqueFd tun_;
};

// The calling thread is in a host while this lives: sockets that it makes, and threads and processes that it starts,
// are the host's. Aborts when the kernel refuses.
class InsideHost {
 public:
  explicit InsideHost(const HostNetwork& host);
  ~InsideHost();
  InsideHost(const InsideHost&) = delete;
  InsideHost& operator=(const InsideHost&) = delete;

 private:
  UniqueFd home_;
};

std::string host_address(int index);
// The host of an IPv4 address in host byte order; -1: of no host.
int host_of(std::uint32_t address);

}  // namespace atl::wan
