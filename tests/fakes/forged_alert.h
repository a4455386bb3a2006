// Somebody on the way who answers in the hub's place: every ClientHello with the alert that says of our certificate
// that it has expired, unauthenticated as all alerts before a handshake's end are. For tests; owns its thread.
#pragma once

#include <atomic>
#include <thread>

#include "net/base/address.h"
#include "net/base/unique_fd.h"

namespace atl {

class ForgedAlert {
 public:
  ForgedAlert();

  Address address() const;
  int answered() const { return answered_; }

 private:
  void run(const std::stop_token& stop);

  const UniqueFd listening_;
  std::atomic<int> answered_{0};
  std::jthread thread_;  // last
};

}  // namespace atl
