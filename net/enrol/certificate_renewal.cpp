#include "net/enrol/certificate_renewal.h"

#include <fmt/format.h>

#include "net/https/https_fetcher.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kStall{10};
constexpr std::uint64_t kMaxAnswerBytes = 8 * 1024;
constexpr long kStatusOk = 200;

Result<std::string> ask(HttpsFetcher& fetcher, const Address& hub, Deadline deadline, const AbortSignal& abort) {
  std::string answer;
  HttpsRequest request;
  request.peer = IslandId{kHubName};
  request.address = hub;
  request.path = "/certificate";
  request.max_bytes = kMaxAnswerBytes;
  request.on_body = [&](ByteView bytes, bool) -> Status {
    answer += to_string(bytes);
    return ok_status();
  };
  const TransferId id = fetcher.start(std::move(request));
  const auto outcomes = fetcher.wait(deadline, abort);
  if (!outcomes.ok() || outcomes->empty()) {
    fetcher.cancel(id);
    return outcomes.ok() ? Error{ErrorCode::kTimeout, "no answer within the time allowed"} : outcomes.error();
  }
  const HttpsOutcome& outcome = outcomes->front();
  if (outcome.error) return *outcome.error;
  if (outcome.http_status == kStatusOk) return answer;
  return Error{ErrorCode::kProtocol, fmt::format("HTTP status {}", outcome.http_status)};
}

}  // namespace

Result<Identity> renew_certificate(const Identity& self, const std::vector<Address>& hub, Deadline deadline,
                                   const AbortSignal& abort) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, kStall));
  Error failure{ErrorCode::kInvalidArgument, "no address of the hub is known"};
  for (const Address& address : hub) {
    const Result<std::string> pem = ask(fetcher, address, deadline, abort);
    if (pem.ok()) return with_certificate(self, *pem);
    failure = pem.error().with_context("the hub at " + to_string(address));
    if (failure.code == ErrorCode::kAborted) break;
  }
  return failure.with_context("cannot renew this island's certificate");
}

}  // namespace atl
