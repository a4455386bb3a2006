#include "net/https/hub_get.h"

#include <fmt/format.h>

#include "net/https/http_status.h"
#include "net/https/https_fetcher.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kStall{10};

Result<std::string> ask(HttpsFetcher& fetcher, const Address& hub, const std::string& path, std::uint64_t max_bytes,
                        Deadline deadline, const AbortSignal& abort) {
  std::string answer;
  HttpsRequest request;
  request.peer = IslandId{kHubName};
  request.address = hub;
  request.path = path;
  request.max_bytes = max_bytes;
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

Result<std::string> get_from_hub(const Identity& self, const std::vector<Address>& hub, const std::string& path,
                                 std::uint64_t max_bytes, Deadline deadline, const AbortSignal& abort) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, kStall));
  Error failure{ErrorCode::kInvalidArgument, "no address of the hub is known"};
  for (const Address& address : hub) {
    auto answer = ask(fetcher, address, path, max_bytes, deadline, abort);
    if (answer.ok()) return answer;
    failure = answer.error().with_context("the hub at " + to_string(address));
    if (failure.code == ErrorCode::kAborted) break;
  }
  return failure;
}

}  // namespace atl
