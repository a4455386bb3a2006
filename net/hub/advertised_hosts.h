// At which address others dial an island that names a host itself (IslandHello::advertised_host). A member's word alone
// has nobody dial anything: the hub tries the host, no nearer to itself than the island is (NetworkAddress::may_name)
// and a few times a minute, and only where that island's own certificate answered do others dial it. They are told the
// literal address that answered, so that a name cannot lead them elsewhere later.
//
// On the hub's io_context thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "net/base/address.h"
#include "net/base/log_limit.h"
#include "net/hub/island_dialer.h"
#include "net/hub/member_rate.h"

namespace atl {

class AdvertisedHosts {
 public:
  // Both outlive it.
  AdvertisedHosts(boost::asio::io_context& io, IslandDialer& dialer) : io_(io), dialer_(dialer) {}

  // Of an island that comes from `host`. Empty: the address that it names was not shown to be its own.
  boost::asio::awaitable<std::optional<Address>> prove(IslandId island, Address named, std::string host);
  // It named one that was not shown to be its own: it counts as one that nobody can dial.
  bool failed(const IslandId& island) const;
  void forget(const IslandId& island) { known_.erase(island); }

 private:
  struct Known {
    Address named;
    std::string host;
    Clock::time_point tried;
    std::optional<Address> proven;
  };

  boost::asio::io_context& io_;
  IslandDialer& dialer_;
  MemberRate tries_{4, std::chrono::seconds(30)};  // of what was not tried just now
  std::map<IslandId, Known> known_;                // by what it said last
  LogLimit lines_;
};

}  // namespace atl
