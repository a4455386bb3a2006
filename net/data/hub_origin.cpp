#include "net/data/hub_origin.h"

#include <fmt/format.h>

#include "net/https/http_status.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kOriginTurn{200};

class HubOrigin final : public DataOrigin {
 public:
  HubOrigin(std::shared_ptr<HttpsFetcher> fetcher, std::vector<Address> hub, std::string source)
      : fetcher_(std::move(fetcher)), hub_(std::move(hub)), source_(std::move(source)) {}
  std::string name() const override { return "the hub"; }

  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                     const AbortSignal& abort) override {
    Result<Bytes> read = read_from(hub_[turn_ % hub_.size()], file, offset, bytes, abort);
    if (!read.ok()) ++turn_;  // the next try is with its next address
    return read;
  }

 private:
  Result<Bytes> read_from(const Address& hub, const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                          const AbortSignal& abort) {
    Bytes body;
    HttpsRequest request;
    request.peer = IslandId{kHubName};
    request.address = hub;
    request.path = fmt::format("/data/{}/{}", source_, file);
    request.resume_at = offset;
    request.range_bytes = bytes;
    request.max_bytes = bytes;
    request.on_body = [&](ByteView piece, bool) -> Status {
      if (body.size() + piece.size() > bytes) return Error{ErrorCode::kProtocol, "it gives more than was asked for"};
      body.insert(body.end(), piece.begin(), piece.end());
      return ok_status();
    };
    const TransferId id = fetcher_->start(std::move(request));
    for (;;) {
      const auto outcomes = fetcher_->wait(Deadline::after(kOriginTurn), abort);
      if (!outcomes.ok()) {
        fetcher_->cancel(id);
        return outcomes.error();
      }
      if (outcomes->empty()) continue;
      ATOLL_RETURN_IF_ERROR(judge(outcomes->front(), file, offset));
      return body;
    }
  }

  static Status judge(const HttpsOutcome& outcome, const std::string& file, std::uint64_t offset) {
    if (outcome.error) return *outcome.error;
    if (outcome.http_status == kStatusPartialContent || (outcome.http_status == kStatusOk && offset == 0)) {
      return ok_status();
    }
    if (outcome.http_status == kStatusForbidden) {
      return Error{ErrorCode::kPermissionDenied,
                   "it no longer has this island in its roster: it was removed; join again with a new invite"};
    }
    return Error{outcome.http_status == kStatusNotFound ? ErrorCode::kNotFound : ErrorCode::kProtocol,
                 fmt::format("it has no {} (HTTP status {})", file, outcome.http_status)};
  }

  const std::shared_ptr<HttpsFetcher> fetcher_;
  const std::vector<Address> hub_;
  const std::string source_;
  std::size_t turn_ = 0;  // which address is asked
};

}  // namespace

std::unique_ptr<DataOrigin> hub_origin(std::shared_ptr<HttpsFetcher> fetcher, std::vector<Address> hub,
                                       std::string source) {
  return std::make_unique<HubOrigin>(std::move(fetcher), std::move(hub), std::move(source));
}

}  // namespace atl
