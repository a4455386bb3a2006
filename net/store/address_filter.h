// Which addresses libcurl may connect to, for places that a stranger named: what a name resolves to, and where a
// redirect leads, is asked here before there is a connection. Where the environment names a proxy, that decides, for it
// connects. Any thread.
#pragma once

#include <functional>

#include "net/base/network_address.h"

namespace atl {

class AddressFilter {
 public:
  AddressFilter() = default;  // all
  explicit AddressFilter(std::function<bool(const NetworkAddress&)> allows) : allows_(std::move(allows)) {}
  static AddressFilter public_addresses();

  // `easy`, a CURL, is used while this is there. A connection elsewhere fails with CURLE_COULDNT_CONNECT.
  void apply_to(void* easy) const;
  bool allows(const NetworkAddress& address) const { return !allows_ || allows_(address); }

 private:
  std::function<bool(const NetworkAddress&)> allows_;
};

}  // namespace atl
