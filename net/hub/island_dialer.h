// Finds out whether islands can be dialled from outside: connects to the inbound port that one announced, shakes hands
// as its peers would (mutual TLS, the ring's protocol, the name in the certificate), and hangs up. Owns its threads, so
// that neither names that take long to look up nor addresses that never answer hold the hub up.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/log_limit.h"
#include "net/base/mailbox.h"
#include "net/base/result.h"
#include "net/tls/context.h"
#include "net/tls/identity.h"

namespace atl {

class IslandDialer {
 public:
  static constexpr std::chrono::milliseconds kDialTimeout{3'000};
  static constexpr int kTries = 2;  // a link that loses packets may lose those of one
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::size_t kMostWaiting = 1024;

  // On a thread of the dialer.
  using OnDialled = std::function<void(const IslandId& island, const Address& address, bool answered)>;

  // What `on_dialled` uses outlives this.
  static Result<std::unique_ptr<IslandDialer>> start(const Identity& hub, OnDialled on_dialled);
  ~IslandDialer();  // ends the dials under way; their outcome is told to nobody

  // Any thread. Forgotten when too many wait: the island is then taken to be dialable, as before.
  void dial(const IslandId& island, const Address& address);
  // Any thread. Tries the address that an island named who comes from `host`, at each literal address to which its name
  // leads and that such a one may name; told is the first that answered. On a thread of the dialer, or the caller's
  // when too many wait; never once the dialer ends.
  using OnProven = std::function<void(Result<Address> found)>;
  void prove(const IslandId& island, const Address& named, const std::string& host, OnProven on_proven);

 private:
  struct Target {
    IslandId island;
    Address address;
    std::string named_from = {};  // where the island comes from that named it
    OnProven on_proven = {};      // empty: on_dialled_ is told
  };
  IslandDialer(TlsContext context, OnDialled on_dialled);
  void run();
  bool answers(const IslandId& island, const Address& address);
  Result<Address> find(const Target& target);

  const TlsContext context_;
  const OnDialled on_dialled_;
  Mailbox<Target> waiting_{kMostWaiting};
  AbortSignal stop_;
  LogLimit lines_;                     // of islands that do not answer
  std::vector<std::jthread> threads_;  // last
};

}  // namespace atl
