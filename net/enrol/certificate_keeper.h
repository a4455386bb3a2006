// Keeps the certificate of a running island valid: looks now and then whether it is due, asks the hub for a new one,
// stores it, and has all connections from then on show it (Identity::renewed); those that are open go on. Owns its
// thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/tls/identity.h"

namespace atl {

class CertificateKeeper {
 public:
  struct Options {
    std::filesystem::path directory;  // of save_identity
    std::vector<Address> hub;
    std::chrono::milliseconds period{std::chrono::hours(1)};  // of looking; a hub that does not answer is asked sooner
  };

  // Looks at once.
  CertificateKeeper(Identity identity, Options options);
  ~CertificateKeeper();  // cuts a request under way short

 private:
  void run();
  Status renew_if_due();

  Identity identity_;  // the thread's
  const Options options_;
  AbortSignal stop_;
  std::jthread thread_;  // last
};

}  // namespace atl
