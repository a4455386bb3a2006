// HTTPS GETs (and POSTs of noise, to measure links) within a run, several at once (libcurl multi): our certificate, the
// run's authority alone, TLS 1.3, the peer's name checked whatever address is dialled. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/bytes.h"
#include "net/base/deadline.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/tls/identity.h"

namespace atl {

struct HttpsRequest {
  IslandId peer;  // what its certificate must carry
  Address address;
  std::string path;
  std::optional<std::uint64_t> resume_at;  // ask for the bytes from here
  std::uint64_t range_bytes = 0;           // and for so many, where that is set; 0: to the end
  std::uint64_t max_bytes = 0;             // of body; more is an error
  std::uint64_t upload_bytes = 0;          // a POST of so much noise, in place of a GET
  double upload_rate = 0;                  // bytes/s at most; 0: as fast as it goes
  bool close_after = false;                // its connection serves no other request
  std::chrono::milliseconds connect{0};    // to be connected; 0: as long as a stall
  // Body bytes of a 200 or 206 (which: `partial`). An error ends the transfer and becomes its outcome.
  std::function<Status(ByteView, bool partial)> on_body;
};

using TransferId = std::uint64_t;

struct HttpsOutcome {
  TransferId id = 0;
  long http_status = 0;              // 0 when none came
  std::optional<double> sent_again;  // of what the connection sent: the part that was lost; empty: not known
  std::optional<Error> error;        // of connection, TLS, stall or on_body; a status like 404 is none
};

class HttpsFetcher {
 public:
  // `self` and `download` outlive it. A transfer without a byte for `stall` ends with kTimeout, and one with fewer than
  // HttpsPaceLimits asks of those who are served: nobody holds up a fetch by dripping.
  // `download`: what the owner lets the island receive; null: no limit. What is held back by it is nobody's stall.
  static Result<HttpsFetcher> create(const Identity& self, std::chrono::milliseconds stall,
                                     DownloadPace* download = nullptr);
  HttpsFetcher(HttpsFetcher&&) noexcept;
  HttpsFetcher& operator=(HttpsFetcher&&) noexcept;
  ~HttpsFetcher();

  TransferId start(HttpsRequest request);
  void cancel(TransferId id);
  // The transfers that ended; empty when `deadline` passes first. kAborted as soon as `abort` is raised.
  Result<std::vector<HttpsOutcome>> wait(Deadline deadline, const AbortSignal& abort);
  // The same, but that what is held back by `download` does not count: for who gives a peer so much time.
  Result<std::vector<HttpsOutcome>> wait_for_peer(Clock::duration patience, const AbortSignal& abort);

 private:
  class Impl;
  explicit HttpsFetcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
