#include "net/recovery/state_fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "net/base/backoff.h"
#include "net/https/https_fetcher.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};
constexpr long kStatusOk = 200;
constexpr long kStatusNotFound = 404;
constexpr long kStatusPreconditionFailed = 412;

struct Source {
  StateSourceAddress where;
  int running = 0;                 // transfers
  int failures = 0;                // in a row
  Backoff pause;                   // after each
  Clock::time_point not_before{};  // until then
  std::optional<Error> dropped;    // why it is asked no more
};

// One request under way: a chunk, or the manifest.
struct Flight {
  std::size_t source = 0;
  std::optional<std::uint64_t> chunk;  // empty: the manifest
  std::unique_ptr<Bytes> body;         // filled by the transfer
  Clock::time_point since;
};

// Asks all sources for the manifest until one has the right one, then spreads the chunks over them: whoever is faster
// asks more often and so carries more.
class StateFetch {
 public:
  StateFetch(HttpsFetcher fetcher, const std::vector<StateSourceAddress>& sources, OuterStep version,
             std::string tree_hash_hex, std::uint64_t numel, const StateFetchOptions& options);
  Result<FetchedState> run(const AbortSignal& abort, const FetchProgress& progress);

 private:
  std::uint64_t state_bytes() const { return 2 * sizeof(float) * state_.parameters.size(); }
  bool complete() const { return manifest_ && verified_chunks_ == manifest_->chunk_sha256.size(); }
  bool is_verified(std::uint64_t chunk) const { return verified_[chunk]; }
  bool is_in_flight(std::uint64_t chunk) const;

  void start_flights();
  void start(std::size_t source, std::optional<std::uint64_t> chunk);
  std::optional<std::uint64_t> next_chunk(std::size_t source);
  void land(const HttpsOutcome& outcome);
  Status accept(const Flight& flight);
  Status accept_manifest(const Bytes& body);
  Status accept_chunk(std::uint64_t chunk, const Bytes& body);
  void cancel_flights_of(std::optional<std::uint64_t> chunk);
  void blame(Source& source, const Error& error);
  Error gave_up() const;

  HttpsFetcher fetcher_;
  const std::string tree_hash_hex_;
  const StateFetchOptions options_;
  std::vector<Source> sources_;
  std::map<TransferId, Flight> flights_;
  std::optional<StateManifest> manifest_;
  std::deque<std::uint64_t> pending_;  // chunks that nobody has been asked for, or whose source failed
  std::vector<bool> verified_;
  std::uint64_t verified_chunks_ = 0;
  std::uint64_t verified_bytes_ = 0;
  FetchedState state_;
};

StateFetch::StateFetch(HttpsFetcher fetcher, const std::vector<StateSourceAddress>& sources, OuterStep version,
                       std::string tree_hash_hex, std::uint64_t numel, const StateFetchOptions& options)
    : fetcher_(std::move(fetcher)), tree_hash_hex_(std::move(tree_hash_hex)), options_(options) {
  const auto longest = options.max_failures * options.retry_after;
  for (const StateSourceAddress& where : sources) {
    sources_.push_back({where, 0, 0, {options.retry_after, longest}, {}, std::nullopt});
  }
  state_.version = version;
  state_.parameters.resize(numel);
  state_.momentum.resize(numel);
}

Result<FetchedState> StateFetch::run(const AbortSignal& abort, const FetchProgress& progress) {
  while (!complete()) {
    start_flights();
    const auto is_dropped = [](const Source& source) { return source.dropped.has_value(); };
    if (flights_.empty() && std::ranges::all_of(sources_, is_dropped)) return gave_up();
    ATOLL_ASSIGN_OR_RETURN(const auto outcomes, fetcher_.wait(Deadline::after(kTurn), abort));
    for (const HttpsOutcome& outcome : outcomes) land(outcome);
    if (progress) progress(verified_bytes_, state_bytes());
  }
  return std::move(state_);
}

bool StateFetch::is_in_flight(std::uint64_t chunk) const {
  return std::ranges::any_of(flights_, [&](const auto& entry) { return entry.second.chunk == chunk; });
}

void StateFetch::start_flights() {
  const auto now = Clock::now();
  for (std::size_t index = 0; index < sources_.size(); ++index) {
    Source& source = sources_[index];
    if (source.dropped || now < source.not_before) continue;
    if (!manifest_) {
      if (source.running == 0) start(index, std::nullopt);
      continue;
    }
    while (source.running < options_.transfers_per_source) {
      const auto chunk = next_chunk(index);
      if (!chunk) break;
      start(index, chunk);
    }
  }
}

std::optional<std::uint64_t> StateFetch::next_chunk(std::size_t source) {
  if (!pending_.empty()) {
    const std::uint64_t chunk = pending_.front();
    pending_.pop_front();
    return chunk;
  }
  // Nothing is left to ask for the first time: ask for what somebody else is slow with, at most twice at once.
  const auto slow_since = Clock::now() - options_.hedge_after;
  std::map<std::uint64_t, int> copies;
  for (const auto& [id, flight] : flights_) {
    if (flight.chunk) copies[*flight.chunk] += 1;
  }
  const Flight* oldest = nullptr;
  for (const auto& [id, flight] : flights_) {
    const bool helps =
        flight.chunk && flight.source != source && flight.since <= slow_since && copies[*flight.chunk] == 1;
    if (helps && (oldest == nullptr || flight.since < oldest->since)) oldest = &flight;
  }
  return oldest != nullptr ? oldest->chunk : std::nullopt;
}

void StateFetch::start(std::size_t index, std::optional<std::uint64_t> chunk) {
  Source& source = sources_[index];
  auto body = std::make_unique<Bytes>();
  HttpsRequest request;
  request.peer = source.where.id;
  request.address = source.where.address;
  request.path = chunk ? fmt::format("/state/{}/{}", state_.version.value, *chunk) : std::string("/state/manifest");
  request.max_bytes = chunk ? manifest_->chunk_bytes(*chunk) : max_manifest_bytes(state_bytes());
  request.on_body = [into = body.get()](ByteView bytes, bool) {
    into->insert(into->end(), bytes.begin(), bytes.end());
    return ok_status();
  };
  const TransferId id = fetcher_.start(std::move(request));
  flights_.emplace(id, Flight{index, chunk, std::move(body), Clock::now()});
  ++source.running;
}

void StateFetch::land(const HttpsOutcome& outcome) {
  auto node = flights_.extract(outcome.id);
  if (node.empty()) return;  // cancelled in this turn: another source was faster
  const Flight flight = std::move(node.mapped());
  Source& source = sources_[flight.source];
  --source.running;
  Status status;
  if (outcome.error) {
    status = *outcome.error;
  } else if (outcome.http_status == kStatusNotFound || outcome.http_status == kStatusPreconditionFailed) {
    status = Error{ErrorCode::kNotFound, "its outer state is of another version"};
  } else if (outcome.http_status != kStatusOk) {
    status = Error{ErrorCode::kProtocol, fmt::format("it answers with HTTP status {}", outcome.http_status)};
  } else {
    status = accept(flight);
  }
  if (status.ok()) {
    source.failures = 0;
    source.pause.reset();
    return;
  }
  if (flight.chunk && !is_verified(*flight.chunk) && !is_in_flight(*flight.chunk)) pending_.push_front(*flight.chunk);
  blame(source, status.error());
}

Status StateFetch::accept(const Flight& flight) {
  if (flight.chunk ? is_verified(*flight.chunk) : manifest_.has_value()) return ok_status();
  ATOLL_RETURN_IF_ERROR(flight.chunk ? accept_chunk(*flight.chunk, *flight.body) : accept_manifest(*flight.body));
  cancel_flights_of(flight.chunk);
  return ok_status();
}

Status StateFetch::accept_manifest(const Bytes& body) {
  ATOLL_ASSIGN_OR_RETURN(StateManifest manifest, StateManifest::from_json(to_string(body)));
  if (manifest.version != state_.version) {
    return Error{ErrorCode::kNotFound, fmt::format("its outer state is of outer step {}", manifest.version.value)};
  }
  if (to_hex(manifest.tree_hash()) != tree_hash_hex_ || manifest.state_bytes != state_bytes()) {
    return Error{ErrorCode::kCorrupt, "its outer state is not the one that the hub names"};
  }
  for (std::uint64_t chunk = 0; chunk < manifest.chunk_sha256.size(); ++chunk) pending_.push_back(chunk);
  verified_.assign(manifest.chunk_sha256.size(), false);
  manifest_ = std::move(manifest);
  return ok_status();
}

Status StateFetch::accept_chunk(std::uint64_t chunk, const Bytes& body) {
  if (body.size() != manifest_->chunk_bytes(chunk) || sha256(body) != manifest_->chunk_sha256[chunk]) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("chunk {} of outer step {} has a wrong hash", chunk, state_.version.value)};
  }
  const auto parameters = std::as_writable_bytes(of_chunk(std::span(state_.parameters), chunk));
  const auto momentum = std::as_writable_bytes(of_chunk(std::span(state_.momentum), chunk));
  std::ranges::copy(std::span(body).first(parameters.size()), parameters.begin());
  std::ranges::copy(std::span(body).subspan(parameters.size()), momentum.begin());
  verified_[chunk] = true;
  verified_chunks_ += 1;
  verified_bytes_ += body.size();
  return ok_status();
}

void StateFetch::cancel_flights_of(std::optional<std::uint64_t> chunk) {
  std::erase_if(flights_, [&](const auto& entry) {
    const Flight& flight = entry.second;
    if (flight.chunk != chunk) return false;
    fetcher_.cancel(entry.first);
    --sources_[flight.source].running;
    return true;
  });
}

// Only its own word ends a source at once. What happens to its connections anybody on the way may cause.
void StateFetch::blame(Source& source, const Error& error) {
  const bool is_final = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt;
  ++source.failures;
  source.not_before = Clock::now() + source.pause.next();
  if (is_final || source.failures >= options_.max_failures) source.dropped = error;
  spdlog::warn("recovery source={} outer_step={} dropped={} reason={} message=\"{}\"", source.where.id.value,
               state_.version.value, source.dropped.has_value(), to_string(error.code), error.message);
}

Error StateFetch::gave_up() const {
  std::string reasons;
  bool moved_on = false;
  bool same_code = true;
  for (const Source& source : sources_) {
    moved_on = moved_on || source.dropped->code == ErrorCode::kNotFound;
    same_code = same_code && source.dropped->code == sources_.front().dropped->code;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", source.where.id.value, source.dropped->message);
  }
  const std::string what = fmt::format("cannot fetch the outer state of outer step {}", state_.version.value);
  if (sources_.empty()) return Error{ErrorCode::kNotFound, what + ": no island has it; ask the hub again"};
  if (moved_on) return Error{ErrorCode::kNotFound, fmt::format("{}: {}; ask the hub for the newest", what, reasons)};
  return Error{same_code ? sources_.front().dropped->code : ErrorCode::kUnreachable,
               fmt::format("{}: {}", what, reasons)};
}

}  // namespace

Result<FetchedState> fetch_state(const Identity& self, const std::vector<StateSourceAddress>& sources,
                                 OuterStep version, const std::string& tree_hash_hex, std::uint64_t numel,
                                 const AbortSignal& abort, const FetchProgress& progress,
                                 const StateFetchOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, options.stall));
  StateFetch fetch(std::move(fetcher), sources, version, tree_hash_hex, numel, options);
  return fetch.run(abort, progress);
}

}  // namespace atl
