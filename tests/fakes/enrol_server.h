// A hub that knows enrolment alone: real TLS at a port of 127.0.0.1, one connection after the other, on a thread of its
// own. For tests; the set-up aborts the program when it fails.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/unique_fd.h"
#include "net/tls/context.h"
#include "net/tls/identity.h"
#include "net/wire/enrol.h"

namespace atl {

class EnrolServer {
 public:
  using Handler = std::function<EnrolResponse(const EnrolRequest&)>;  // on the server's thread

  EnrolServer(const Identity& hub, Handler handler);
  ~EnrolServer();

  Address address() const;
  int requests() const { return requests_; }

 private:
  void run(const std::stop_token& stop);
  void serve(int socket);

  const TlsContext context_;
  const Handler handler_;
  const UniqueFd listening_;
  AbortSignal stopped_;
  std::atomic<int> requests_{0};
  std::jthread thread_;
};

}  // namespace atl
