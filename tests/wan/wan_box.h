// A small internet on one Linux machine, for tests of what crosses a network: hosts in network namespaces of their own,
// and between each two of them, in each direction, a rate, a delay, losses and cuts that can be changed while traffic
// flows. Needs root and /dev/net/tun, and nothing else of the kernel: no netem, no names, no files.
//
//   WanBox box({.hosts = 4, .path = {.bits_per_second = 500e6, .delay = 40ms}});
//   auto server = box.run_in(1, {"server"});
//   box.cut(0, 1);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/wan/host_network.h"
#include "tests/wan/wan_emulator.h"
#include "tests/wan/wan_process.h"
#include "tests/wan/wan_router.h"

namespace atl::wan {

struct WanOptions {
  int hosts = 2;                         // at most 250
  WanPath path{};                        // of every pair, until set otherwise
  WanHostRates rates{};                  // of every host, until set otherwise
  std::chrono::milliseconds queue{100};  // of every link, at its own rate
  // Hosts hand packets of up to 64 KiB to their device whatever the rate, instead of a millisecond's worth: several
  // times less work for the machine that plays them all.
  bool large_packets = true;
  std::uint64_t seed = 1;            // of the losses
  std::string congestion_control{};  // of every host; empty: the machine's
};

class WanBox {
 public:
  static Result<std::unique_ptr<WanBox>> create(const WanOptions& options);
  // Why there can be none here, in words for a skipped test; empty: there can.
  static std::optional<std::string> unavailable();

  int hosts() const { return static_cast<int>(networks_.size()); }
  const HostNetwork& host(int index) const { return networks_[static_cast<std::size_t>(index)]; }
  std::string address(int index) const { return host_address(index); }
  Result<WanProcess> run_in(int index, const std::vector<std::string>& arguments) const {
    return WanProcess::start(host(index), arguments);
  }
  // In a namespace's /proc/sys, for instance ("net/ipv4/tcp_congestion_control", "bbr").
  Status set_sysctl(int index, const std::string& name, const std::string& value) const;

  // Any thread, at any time; packets that are under way keep the delay that they left with.
  void change_path(int from, int to, const std::function<void(WanPath&)>& change);
  void change_pair(int a, int b, const std::function<void(WanPath&)>& change);  // both directions
  void change_host(int index, const std::function<void(WanHostRates&)>& change);
  void cut(int a, int b);  // both directions; packets under way vanish too
  void restore(int a, int b);
  WanCounts counts(int from, int to);
  std::chrono::nanoseconds router_cpu_time() const { return router_->cpu_time(); }

 private:
  Status prepare(int index, const WanOptions& options) const;
  WanBox(std::vector<HostNetwork> networks, const WanOptions& options);

  std::vector<HostNetwork> networks_;
  std::unique_ptr<WanRouter> router_;
};

}  // namespace atl::wan
