#include "tests/wan/wan_box.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "net/base/file.h"

namespace atl::wan {
namespace {

constexpr int kMaxHosts = 250;  // of 10.77.0.0/24

Status check(const WanOptions& options) {
  if (options.hosts < 1 || options.hosts > kMaxHosts) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} hosts; 1 to {}", options.hosts, kMaxHosts)};
  }
  if (!(options.path.loss >= 0 && options.path.loss <= 1)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a loss of {}; 0 to 1", options.path.loss)};
  }
  return ok_status();
}

WanEmulator emulator_of(const WanOptions& options) {
  WanEmulator emulator(options.hosts, options.queue, options.seed);
  for (int i = 0; i < options.hosts; ++i) {
    emulator.host(i) = options.rates;
    for (int j = 0; j < options.hosts; ++j) emulator.path(i, j) = options.path;
  }
  return emulator;
}

}  // namespace

Result<std::unique_ptr<WanBox>> WanBox::create(const WanOptions& options) {
  ATOLL_RETURN_IF_ERROR(check(options));
  std::vector<HostNetwork> networks;
  for (int i = 0; i < options.hosts; ++i) {
    auto network = HostNetwork::create(i);
    if (!network.ok()) return network.error().with_context(fmt::format("cannot make host {}", i));
    networks.push_back(std::move(*network));
  }
  std::unique_ptr<WanBox> box(new WanBox(std::move(networks), options));
  for (int i = 0; i < options.hosts; ++i) ATOLL_RETURN_IF_ERROR(box->prepare(i, options));
  return box;
}

WanBox::WanBox(std::vector<HostNetwork> networks, const WanOptions& options)
    : networks_(std::move(networks)), router_(std::make_unique<WanRouter>(networks_, emulator_of(options))) {}

std::optional<std::string> WanBox::unavailable() {
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) return "no access to /dev/net/tun";
  const auto host = HostNetwork::create(0);
  if (!host.ok()) return host.error().message + " (network namespaces and TUN devices need root)";
  return std::nullopt;
}

Status WanBox::prepare(int index, const WanOptions& options) const {
  // The kernel adds (64 KiB >> (round trip in us >> this)) to what it sends at once (tcp_tso_autosize).
  if (options.large_packets) ATOLL_RETURN_IF_ERROR(set_sysctl(index, "net/ipv4/tcp_tso_rtt_log", "20"));
  if (options.congestion_control.empty()) return ok_status();
  return set_sysctl(index, "net/ipv4/tcp_congestion_control", options.congestion_control);
}

Status WanBox::set_sysctl(int index, const std::string& name, const std::string& value) const {
  const InsideHost inside(host(index));
  const std::string path = "/proc/sys/" + name;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno_error("open", path);
  if (::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return errno_error(fmt::format("write '{}' to", value), path);
  }
  return ok_status();
}

void WanBox::change_path(int from, int to, const std::function<void(WanPath&)>& change) {
  router_->with_emulator([&](WanEmulator& emulator) { change(emulator.path(from, to)); });
}

void WanBox::change_pair(int a, int b, const std::function<void(WanPath&)>& change) {
  change_path(a, b, change);
  change_path(b, a, change);
}

void WanBox::change_host(int index, const std::function<void(WanHostRates&)>& change) {
  router_->with_emulator([&](WanEmulator& emulator) { change(emulator.host(index)); });
}

void WanBox::cut(int a, int b) {
  change_pair(a, b, [](WanPath& path) { path.cut = true; });
}

void WanBox::restore(int a, int b) {
  change_pair(a, b, [](WanPath& path) { path.cut = false; });
}

WanCounts WanBox::counts(int from, int to) {
  return router_->with_emulator([&](WanEmulator& emulator) { return emulator.counts(from, to); });
}

}  // namespace atl::wan
