#include "net/recovery/base_model_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "net/https/https_fetcher.h"
#include "net/recovery/base_model.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLookAround{200};
constexpr std::chrono::milliseconds kStall{10'000};  // without a byte for so long, a transfer is given up
constexpr std::size_t kTransfers = 3;                // at once, a chunk each
constexpr long kForbidden = 403, kMissing = 404, kNoSuchRange = 416, kAll = 200, kPart = 206;
constexpr std::string_view kMend =
    "the run's operator has to make it anew, of the model with which the run began: `atoll hub base-model DIR`";

// One try, from one of the hub's addresses.
class BaseModelFetch {
 public:
  BaseModelFetch(HttpsFetcher fetcher, const Address& hub, FetchPlan& plan, const AbortSignal& abort,
                 const FetchProgress& progress, const std::function<bool()>& superseded)
      : fetcher_(std::move(fetcher)),
        hub_(hub),
        plan_(plan),
        abort_(abort),
        progress_(progress),
        superseded_(superseded) {}

  Status run() {
    ATOLL_RETURN_IF_ERROR(fetch_manifest());
    for (std::uint64_t i = 0; i < plan_.state().chunks(); ++i) {
      if (plan_.is_right(i)) done_bytes_ += manifest_.range_of_chunk(i).count;
    }
    const Status fetched = fetch_chunks();
    for (const auto& [id, part] : under_way_) {
      fetcher_.cancel(id);
      plan_.give_back_chunk(part.chunk);
    }
    return fetched;
  }

 private:
  struct Part {
    std::uint64_t chunk = 0;
    std::unique_ptr<Bytes> body;  // filled by the transfer
  };

  // All of it, or the range that the fetch asked for.
  TransferId start(std::string path, ByteRange range, std::uint64_t most, Bytes& body) {
    HttpsRequest request;
    request.peer = IslandId{kHubName};
    request.address = hub_;
    request.path = std::move(path);
    request.max_bytes = most;
    if (range.count > 0) {
      request.resume_at = range.first;
      request.range_bytes = range.count;
    }
    request.on_body = [&body, wants_part = range.count > 0](ByteView bytes, bool partial) -> Status {
      if (wants_part && !partial) return Error{ErrorCode::kProtocol, "the hub does not send parts of its base model"};
      body.insert(body.end(), bytes.begin(), bytes.end());
      return ok_status();
    };
    return fetcher_.start(std::move(request));
  }

  // Those that ended; whoever waits too long is told.
  Result<std::vector<HttpsOutcome>> wait() {
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(auto outcomes, fetcher_.wait(Deadline::after(kLookAround), abort_));
      if (superseded_ && superseded_()) {
        return Error{ErrorCode::kNotFound, "another outer state is to be fetched by now"};
      }
      if (!outcomes.empty()) return outcomes;
    }
  }

  static Error damaged() {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the hub's copy of the model with which the run begins is damaged; {}", kMend)};
  }

  // Only an answer that came whole counts: until then nobody knows whose word it is.
  Status judge(const HttpsOutcome& outcome) const {
    if (outcome.error) return *outcome.error;
    if (outcome.http_status == kAll || outcome.http_status == kPart) return ok_status();
    if (outcome.http_status == kForbidden) {
      return Error{ErrorCode::kPermissionDenied,
                   "the hub no longer has this island in its roster: it was removed; join again with a new invite"};
    }
    if (outcome.http_status == kMissing) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the hub has no copy of the model with which the run begins; {}", kMend)};
    }
    if (outcome.http_status == kNoSuchRange) return damaged();
    return Error{ErrorCode::kProtocol, fmt::format("the hub at {} answers to a request for its base model with HTTP "
                                                   "status {}",
                                                   to_string(hub_), outcome.http_status)};
  }

  Status fetch_manifest() {
    Bytes body;
    const TransferId id =
        start(kBaseModelManifestPath, {}, max_base_model_manifest_bytes(plan_.state().state_bytes()), body);
    const auto outcomes = wait();
    if (!outcomes.ok()) {
      fetcher_.cancel(id);
      return outcomes.error();
    }
    ATOLL_RETURN_IF_ERROR(judge(outcomes->front()));
    ATOLL_ASSIGN_OR_RETURN(manifest_, BaseModelManifest::from_json(to_string(body)));
    const std::string state = manifest_.state.to_json();
    if (plan_.take_manifest(as_bytes(state)).ok()) return ok_status();
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the hub's base model is not the one with which the run began; {}", kMend)};
  }

  Status fetch_chunks() {
    for (;;) {
      while (under_way_.size() < kTransfers) {
        const auto chunk = plan_.next_chunk();
        if (!chunk) break;
        auto body = std::make_unique<Bytes>();
        const ByteRange range = manifest_.range_of_chunk(*chunk);
        body->reserve(range.count);
        const TransferId id = start(kBaseModelParametersPath, range, range.count, *body);
        under_way_[id] = {*chunk, std::move(body)};
      }
      if (under_way_.empty()) break;
      ATOLL_ASSIGN_OR_RETURN(const auto outcomes, wait());
      for (const HttpsOutcome& outcome : outcomes) ATOLL_RETURN_IF_ERROR(land(outcome));
    }
    if (plan_.complete()) return ok_status();
    return Error{ErrorCode::kInternal, "chunks of the base model are missing, and none is to be fetched"};
  }

  Status land(const HttpsOutcome& outcome) {
    const auto found = under_way_.find(outcome.id);
    if (found == under_way_.end()) return ok_status();
    const std::uint64_t chunk = found->second.chunk;
    const Status answered = judge(outcome);
    Result<bool> taken = false;
    if (answered.ok()) {
      taken = plan_.take_chunk(chunk, plan_.wanted(chunk), base_model_chunk(*found->second.body, manifest_.dtype));
    }
    if (!answered.ok() || !taken.ok()) plan_.give_back_chunk(chunk);
    under_way_.erase(found);
    ATOLL_RETURN_IF_ERROR(answered);
    if (!taken.ok()) return damaged();
    done_bytes_ += manifest_.range_of_chunk(chunk).count;
    if (progress_) progress_(done_bytes_, manifest_.parameters_bytes());
    return ok_status();
  }

  HttpsFetcher fetcher_;
  const Address& hub_;
  FetchPlan& plan_;
  const AbortSignal& abort_;
  const FetchProgress& progress_;
  const std::function<bool()>& superseded_;
  BaseModelManifest manifest_;
  std::uint64_t done_bytes_ = 0;
  std::map<TransferId, Part> under_way_;
};

// Whether another of the hub's addresses may do better.
bool is_of_the_way(ErrorCode code) {
  return code == ErrorCode::kUnreachable || code == ErrorCode::kTimeout || code == ErrorCode::kPeerLost ||
         code == ErrorCode::kCertificate;
}

}  // namespace

Status fetch_base_model(const Identity& self, const std::vector<Address>& hub, const HeldState& target, FetchPlan& plan,
                        const AbortSignal& abort, const FetchProgress& progress,
                        const std::function<bool()>& superseded, DownloadPace* download) {
  plan.aim(target);
  Status fetched = Error{ErrorCode::kInvalidArgument, "no address of the run's hub is known"};
  for (const Address& address : hub) {
    ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, kStall, download));
    fetched = BaseModelFetch(std::move(fetcher), address, plan, abort, progress, superseded).run();
    if (fetched.ok() || !is_of_the_way(fetched.error().code)) break;
  }
  return fetched.ok() ? fetched : Status(fetched.error().with_context("cannot fetch outer step 0 from the hub"));
}

}  // namespace atl
