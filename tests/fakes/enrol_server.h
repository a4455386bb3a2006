// A hub that knows enrolment alone: real TLS at a port of 127.0.0.1, one connection after the other, on a thread of its
// own. For tests; the set-up aborts the program when it fails.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/tls/context.h"
#include "net/tls/identity.h"
#include "net/wire/enrol.h"

namespace atl {

class EnrolServer {
 public:
  // On the server's thread.
  using Handler = std::function<EnrolResponse(const EnrolRequest&)>;
  using About = std::function<AboutResponse(const AboutRequest&)>;

  // Without `about` it is a hub of before, which knows no such request.
  EnrolServer(const Identity& hub, Handler handler, About about = {});
  ~EnrolServer();

  Address address() const;
  int requests() const { return requests_; }
  void lose_answers(int next) { to_lose_ = next; }  // of so many requests: handled, and the connection closed
  std::string last_body() const {                   // of the last request, as it came
    MutexLock lock(mutex_);
    return last_body_;
  }

 private:
  void run(const std::stop_token& stop);
  void serve(int socket);
  Bytes answer(ByteView body) const;

  const TlsContext context_;
  const Handler handler_;
  const About about_;
  const UniqueFd listening_;
  AbortSignal stopped_;
  std::atomic<int> requests_{0};
  std::atomic<int> to_lose_{0};
  mutable Mutex mutex_;
  std::string last_body_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace atl
