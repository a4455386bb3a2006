#include "net/hub/advertised_hosts.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "net/mesh/asio_tls.h"

namespace atl {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kLongestProof{12};  // the island waits longer for its welcome
constexpr std::chrono::seconds kKept{60};

struct Proof {
  explicit Proof(asio::io_context& io) : over(io, kLongestProof) {}
  asio::steady_timer over;
  Result<Address> found = Error{ErrorCode::kTimeout, "too many are being tried"};
};

}  // namespace

asio::awaitable<std::optional<Address>> AdvertisedHosts::prove(IslandId island, Address named, std::string host) {
  const auto now = Clock::now();
  Known& known = known_[island];
  const bool same = known.named == named && known.host == host;
  if (same && now - known.tried < kKept) co_return known.proven;
  if (!tries_.take(island, now)) {
    if (!same) known = {named, host, known.tried, std::nullopt};
    co_return known.proven;
  }
  const auto proof = std::make_shared<Proof>(io_);
  dialer_.prove(island, named, host, [&io = io_, proof](Result<Address> found) {
    asio::post(io, [proof, found = std::move(found)]() mutable {
      proof->found = std::move(found);
      proof->over.cancel();
    });
  });
  co_await proof->over.async_wait(kAwait);
  const Result<Address> found = proof->found;
  known_[island] = {named, host, now, found.ok() ? std::optional(*found) : std::nullopt};
  if (found.ok()) co_return *found;
  if (const auto held_back = lines_.pass(island.value)) {
    spdlog::warn("mesh island={} advertises=\"{}\" error=\"{}; nobody dials it\" held_back={}", island.value,
                 to_string(named), found.error().message, *held_back);
  }
  co_return std::nullopt;
}

bool AdvertisedHosts::failed(const IslandId& island) const {
  const auto known = known_.find(island);
  return known != known_.end() && !known->second.proven;
}

}  // namespace atl
