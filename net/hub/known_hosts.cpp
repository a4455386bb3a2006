#include "net/hub/known_hosts.h"

#include <spdlog/spdlog.h>

namespace atl {
namespace {

constexpr std::chrono::seconds kPace{60};

}  // namespace

Result<KnownHosts> KnownHosts::open(HubStore& store) {
  KnownHosts known(store);
  ATOLL_ASSIGN_OR_RETURN(known.hosts_, store.hosts());
  return known;
}

std::vector<std::string> KnownHosts::all() const {
  std::vector<std::string> hosts;
  for (const auto& [island, host] : hosts_) hosts.push_back(host);
  return hosts;
}

void KnownHosts::remember(const IslandId& island, const std::string& host) {
  std::string& known = hosts_[island];
  changed_ = changed_ || known != host;
  known = host;
}

void KnownHosts::save_now_and_then() {
  if (!changed_ || (saved_ != Clock::time_point{} && Clock::now() - saved_ < kPace)) return;
  saved_ = Clock::now();
  const Status saved = store_->save_hosts(hosts_);
  changed_ = !saved.ok();
  if (!saved.ok()) spdlog::warn("hub hosts error=\"{}\"", saved.error().message);
}

}  // namespace atl
