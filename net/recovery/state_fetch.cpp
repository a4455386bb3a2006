#include "net/recovery/state_fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};
constexpr std::size_t kMostPieces = 32, kFewestPieces = 4;  // of an average at once: 8 MiB, 1 MiB
constexpr long kStatusOk = 200;
constexpr long kStatusPartial = 206;
constexpr long kStatusNotFound = 404;
constexpr long kStatusPreconditionFailed = 412;

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace

Result<StateFetch> StateFetch::create(const Identity& self, FetchModel model, std::function<void(std::uint64_t)> came,
                                      const StateFetchOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, options.stall));
  return StateFetch(self, std::move(fetcher), std::move(model), std::move(came), options);
}

StateFetch::StateFetch(const Identity& self, HttpsFetcher fetcher, FetchModel model,
                       std::function<void(std::uint64_t)> came, const StateFetchOptions& options)
    : fetcher_(std::move(fetcher)),
      self_(self),
      options_(options),
      plan_(std::make_unique<FetchPlan>(self_, std::move(model), std::move(came))) {}

// What they said of another target is past; their transfers go on.
void StateFetch::name(const std::vector<StateSourceAddress>& sources) {
  for (auto& [id, source] : sources_) source.is_named = false;
  const auto longest = options_.max_failures * options_.retry_after;
  for (const StateSourceAddress& where : sources) {
    const auto found = sources_.find(where.id);
    const int running = found == sources_.end() ? 0 : found->second.running;
    sources_.erase(where.id);
    sources_.emplace(
        where.id,
        Source{.where = where, .is_named = true, .running = running, .pause = Backoff(options_.retry_after, longest)});
  }
}

Status StateFetch::run(const HeldState& target, const std::vector<StateSourceAddress>& sources,
                       const AbortSignal& abort, const FetchProgress& progress,
                       const std::function<bool()>& superseded) {
  plan_->aim(target);
  name(sources);
  while (!plan_->complete()) {
    if (superseded && superseded()) {
      return Error{ErrorCode::kNotFound, fmt::format("outer step {} is no longer the newest", target.outer_step.value)};
    }
    give_up_rounds();
    start_flights();
    if (is_stuck()) return gave_up();
    ATOLL_ASSIGN_OR_RETURN(const auto outcomes, fetcher_.wait(Deadline::after(kTurn), abort));
    look_at_rates(Clock::now());
    for (const HttpsOutcome& outcome : outcomes) land(outcome);
    if (plan_->has_manifest()) plan_->step_ready();
    if (progress && plan_->has_manifest()) progress(counts_.useful(), counts_.useful() + plan_->bytes_to_fetch());
  }
  return ok_status();
}

// ---- requests
// ---------------------------------------------------------------------------------------------------------

void StateFetch::start_flights() {
  const auto now = Clock::now();
  for (auto& [id, source] : sources_) {
    if (!source.is_asked() || now < source.not_before) continue;
    while (source.running < options_.transfers_per_source) {
      std::optional<Purpose> purpose = next_purpose(source);
      if (!purpose) purpose = slow_purpose(source);
      if (!purpose) break;
      start(source, std::move(*purpose));
    }
  }
}

// Rounds before chunks: who steps what is there now fetches the rest of a newer outer step, upon which fewer rounds
// will come.
std::optional<StateFetch::Purpose> StateFetch::next_purpose(const Source& source) {
  if (!plan_->has_manifest()) {
    const bool is_asked = std::ranges::any_of(flights_, [&](const auto& entry) {
      const auto* manifest = std::get_if<ForManifest>(&entry.second.purpose);
      return entry.second.source == source.where.id && manifest && manifest->version == plan_->target().outer_step;
    });
    if (!source.has_target() || is_asked) return std::nullopt;
    return ForManifest{plan_->target().outer_step};
  }
  for (const OuterStep round : plan_->rounds_to_ask()) {
    if (may_ask_for_round(source, round) && !is_asked_for_round(round)) return ForRound{round};
  }
  const auto may_ask = [&](OuterStep round) { return may_ask_for_round(source, round); };
  if (FetchedAverage* average = plan_->average_to_ask(may_ask)) {
    const HubCommit& commit = average->manifest().record.commit;
    return ForPieces{commit.round, commit.digest, average->ask(pieces_at_once())};
  }
  if (!source.has_target()) return std::nullopt;
  const auto chunk = plan_->next_chunk();
  if (!chunk) return std::nullopt;
  return ForChunk{*chunk, plan_->wanted(*chunk)};
}

// Nothing is left to ask for the first time: what somebody else is slow with, at most twice at once.
std::optional<StateFetch::Purpose> StateFetch::slow_purpose(const Source& source) {
  const auto now = Clock::now();
  const auto slow_since = now - options_.hedge_after;
  double together = 0;
  for (const auto& [id, flight] : flights_) together += flight.rate.bytes_per_second(now);
  const Flight* oldest = nullptr;
  for (const auto& [id, flight] : flights_) {
    if (flight.source == source.where.id || flight.since > slow_since || flight.body->size() >= flight.bytes) continue;
    const bool helps = may_serve(source, flight.purpose) && twins_of(flight.purpose) == 1 &&
                       rates_.is_worth_asking_again(flight.bytes - flight.body->size(),
                                                    flight.rate.bytes_per_second(now), flight.bytes, together);
    if (helps && (oldest == nullptr || flight.since < oldest->since)) oldest = &flight;
  }
  if (oldest == nullptr) return std::nullopt;
  if (const auto* chunk = std::get_if<ForChunk>(&oldest->purpose)) plan_->ask_again(chunk->index);
  return oldest->purpose;
}

void StateFetch::look_at_rates(Clock::time_point now) {
  std::uint64_t bytes = landed_bytes_;
  for (auto& [id, flight] : flights_) {
    flight.rate.look(flight.body->size(), now);
    bytes += flight.body->size();
  }
  rates_.look(bytes, now);
}

// Few where few are left: so all sources have their part of them.
std::size_t StateFetch::pieces_at_once() const {
  const auto asked = [](const auto& entry) { return entry.second.is_asked(); };
  const auto ways = static_cast<std::uint64_t>(std::ranges::count_if(sources_, asked) * options_.transfers_per_source);
  const std::uint64_t share = plan_->open_pieces() / (2 * std::max<std::uint64_t>(ways, 1));
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(share, kFewestPieces, kMostPieces));
}

// What is fetched of it is of use, and it has it as far as is known.
bool StateFetch::may_serve(const Source& source, const Purpose& purpose) {
  if (!plan_->has_manifest()) return false;
  if (const auto* chunk = std::get_if<ForChunk>(&purpose)) {
    return source.has_target() && chunk->is == plan_->wanted(chunk->index);
  }
  const auto* part = std::get_if<ForPieces>(&purpose);
  return part && may_ask_for_round(source, part->round) && plan_->average(part->round, part->digest);
}

// Requests under way for the same.
int StateFetch::twins_of(const Purpose& purpose) const {
  return static_cast<int>(
      std::ranges::count_if(flights_, [&](const auto& entry) { return is_same(entry.second.purpose, purpose); }));
}

bool StateFetch::is_same(const Purpose& one, const Purpose& other) {
  const auto *chunk = std::get_if<ForChunk>(&one), *other_chunk = std::get_if<ForChunk>(&other);
  if (chunk && other_chunk) return chunk->index == other_chunk->index && chunk->is == other_chunk->is;
  const auto *part = std::get_if<ForPieces>(&one), *other_part = std::get_if<ForPieces>(&other);
  if (!part || !other_part) return false;
  return part->round == other_part->round && part->digest == other_part->digest &&
         part->pieces.first == other_part->pieces.first;
}

// Who is not named may be out of reach; it is asked for what none of those that are has.
bool StateFetch::may_ask_for_round(const Source& source, OuterStep round) const {
  if (source.lacks.contains(round)) return false;
  return source.where.holds_target || std::ranges::none_of(sources_, [&](const auto& entry) {
           const Source& other = entry.second;
           return other.is_asked() && other.where.holds_target && !other.lacks.contains(round);
         });
}

bool StateFetch::is_asked_for_round(OuterStep round) const {
  return std::ranges::any_of(flights_, [&](const auto& entry) {
    const auto* asked = std::get_if<ForRound>(&entry.second.purpose);
    return asked && asked->round == round;
  });
}

void StateFetch::start(Source& source, Purpose purpose) {
  auto body = std::make_unique<Bytes>();
  HttpsRequest request;
  request.peer = source.where.id;
  request.address = source.where.address;
  bool wants_part = false;
  std::visit(Match{[&](const ForManifest&) {
                     request.path = "/state/manifest";
                     request.max_bytes = max_manifest_bytes(plan_->state().state_bytes());
                   },
                   [&](const ForChunk& chunk) {
                     request.path = fmt::format("/state/{}/{}", chunk.is.step.value, chunk.index);
                     request.max_bytes = plan_->state().chunk_bytes(chunk.index);
                   },
                   [&](const ForRound& round) {
                     request.path = fmt::format("/rounds/{}/manifest", round.round.value);
                     request.max_bytes = max_round_manifest_bytes(plan_->average_numel(round.round));
                   },
                   [&](const ForPieces& part) {
                     const RoundManifest& manifest = plan_->average(part.round, part.digest)->manifest();
                     const std::size_t last = part.pieces.end() - 1;
                     request.path = fmt::format("/rounds/{}/{}/average", part.round.value, part.digest);
                     request.resume_at = part.pieces.first * kDigestPieceBytes;
                     request.range_bytes = (part.pieces.count - 1) * kDigestPieceBytes + manifest.piece_bytes(last);
                     request.max_bytes = request.range_bytes;
                     wants_part = true;
                   }},
             purpose);
  request.on_body = [into = body.get(), wants_part](ByteView bytes, bool partial) {
    if (wants_part && !partial) return Status(Error{ErrorCode::kProtocol, "it sends all in place of a range"});
    into->insert(into->end(), bytes.begin(), bytes.end());
    return ok_status();
  };
  const std::uint64_t request_bytes = request.max_bytes;
  const TransferId id = fetcher_.start(std::move(request));
  const auto now = Clock::now();
  flights_.emplace(id,
                   Flight{source.where.id, std::move(purpose), request_bytes, std::move(body), now, FlightRate(now)});
  ++source.running;
}

// ---- answers
// ----------------------------------------------------------------------------------------------------------

void StateFetch::land(const HttpsOutcome& outcome) {
  auto node = flights_.extract(outcome.id);
  if (node.empty()) return;  // cancelled in this turn: another source was faster
  const Flight flight = std::move(node.mapped());
  landed_bytes_ += flight.body->size();
  Source& source = sources_.at(flight.source);
  --source.running;
  const bool is_missing = outcome.http_status == kStatusNotFound || outcome.http_status == kStatusPreconditionFailed;
  if (!outcome.error && is_missing) {
    lose(flight);
    return has_not(source, flight.purpose);
  }
  Status status = ok_status();
  if (outcome.error) {
    status = *outcome.error;
    // What came of several pieces before it broke off is as good.
    const auto* part = std::get_if<ForPieces>(&flight.purpose);
    if (part != nullptr) {
      if (const Status taken = take(*part, *flight.body); !taken.ok()) status = taken;
    }
  } else {
    status = accept(flight, outcome.http_status);
  }
  if (status.ok()) {
    source.failures = 0;
    source.pause.reset();
    return;
  }
  lose(flight);
  const auto* manifest = std::get_if<ForManifest>(&flight.purpose);
  if (manifest != nullptr && status.error().code == ErrorCode::kNotFound) {
    source.moved_on = status.error();
    return;
  }
  blame(source, status.error());
}

Status StateFetch::accept(const Flight& flight, long http_status) {
  if (http_status != kStatusOk && http_status != kStatusPartial) {
    return Error{ErrorCode::kProtocol, fmt::format("it answers with HTTP status {}", http_status)};
  }
  ATOLL_RETURN_IF_ERROR(std::visit([&](const auto& purpose) { return take(purpose, *flight.body); }, flight.purpose));
  cancel_twins(flight);
  return ok_status();
}

Status StateFetch::take(const ForManifest& purpose, const Bytes& body) {
  if (plan_->has_manifest() || purpose.version != plan_->target().outer_step) return ok_status();
  ATOLL_RETURN_IF_ERROR(plan_->take_manifest(body));
  for (const std::uint64_t chunk : plan_->wrong()) {
    spdlog::warn("recovery outer_step={} wrong_chunk={} parameters={}-{}", plan_->target().outer_step.value, chunk,
                 chunk * kStateChunkNumel, std::min((chunk + 1) * kStateChunkNumel, plan_->state().numel()) - 1);
  }
  return ok_status();
}

Status StateFetch::take(const ForChunk& purpose, const Bytes& body) {
  ATOLL_ASSIGN_OR_RETURN(const bool was_wanted, plan_->take_chunk(purpose.index, purpose.is, body));
  (was_wanted ? counts_.chunk_bytes : counts_.lost_bytes) += body.size();
  return ok_status();
}

Status StateFetch::take(const ForRound& purpose, const Bytes& body) {
  if (!plan_->rounds_to_ask().contains(purpose.round)) {
    counts_.lost_bytes += body.size();
    return ok_status();
  }
  ATOLL_RETURN_IF_ERROR(plan_->take_round(purpose.round, body));
  counts_.round_bytes += body.size();
  return ok_status();
}

// Of a part that broke off, too.
Status StateFetch::take(const ForPieces& purpose, const Bytes& body) {
  FetchedAverage* average = plan_->average(purpose.round, purpose.digest);
  if (average == nullptr) {
    counts_.lost_bytes += body.size();
    return ok_status();
  }
  const FetchedAverage::Accepted accepted = average->accept(purpose.pieces, body);
  average->give_back(purpose.pieces);
  counts_.average_bytes += accepted.fresh_bytes;
  counts_.lost_bytes += body.size() - accepted.fresh_bytes;
  return accepted.status;
}

// It brought nothing: what it was for is asked again.
void StateFetch::lose(const Flight& flight) {
  if (const auto* chunk = std::get_if<ForChunk>(&flight.purpose)) {
    plan_->give_back_chunk(chunk->index);
    counts_.lost_bytes += flight.body->size();
  } else if (const auto* part = std::get_if<ForPieces>(&flight.purpose)) {
    FetchedAverage* average = plan_->average(part->round, part->digest);
    if (average && twins_of(flight.purpose) == 0) average->give_back(part->pieces);
  }
}

// Others that fetch what has come.
void StateFetch::cancel_twins(const Flight& done) {
  const auto is_twin = [&](const Flight& other) {
    const bool is_manifest = std::holds_alternative<ForManifest>(other.purpose) && plan_->has_manifest();
    return is_manifest || is_same(other.purpose, done.purpose);
  };
  std::erase_if(flights_, [&](const auto& entry) {
    const Flight& flight = entry.second;
    if (!is_twin(flight)) return false;
    fetcher_.cancel(entry.first);
    landed_bytes_ += flight.body->size();
    const auto* chunk = std::get_if<ForChunk>(&flight.purpose);
    if (chunk != nullptr) plan_->give_back_chunk(chunk->index);
    if (!std::holds_alternative<ForManifest>(flight.purpose)) counts_.lost_bytes += flight.body->size();
    --sources_.at(flight.source).running;
    return true;
  });
}

// ---- sources
// ----------------------------------------------------------------------------------------------------------

// Its own word, and no failure: others may have it.
void StateFetch::has_not(Source& source, const Purpose& purpose) {
  source.failures = 0;
  std::visit(Match{[&](const ForManifest& manifest) {
                     if (manifest.version != plan_->target().outer_step) return;
                     source.moved_on = Error{ErrorCode::kNotFound, "it holds no outer state"};
                   },
                   [&](const ForChunk& chunk) {
                     if (chunk.is.step != plan_->target().outer_step) return;
                     source.moved_on = Error{ErrorCode::kNotFound, "its outer state is of another version"};
                   },
                   [&](const ForRound& round) { source.lacks.insert(round.round); },
                   [&](const ForPieces& part) { source.lacks.insert(part.round); }},
             purpose);
}

// Those that none of the sources has: what needs them comes whole, from who holds the state.
void StateFetch::give_up_rounds() {
  const auto has_target = [](const auto& entry) { return entry.second.has_target(); };
  if (std::ranges::none_of(sources_, has_target)) return;
  std::set<OuterStep> wanted = plan_->rounds_with_open_pieces();
  wanted.insert(plan_->rounds_to_ask().begin(), plan_->rounds_to_ask().end());
  for (const OuterStep round : wanted) {
    const bool may_come = std::ranges::any_of(
        sources_, [&](const auto& entry) { return entry.second.is_asked() && !entry.second.lacks.contains(round); });
    if (!may_come && !is_asked_for_round(round)) plan_->give_up_round(round);
  }
}

// Only its own word ends a source at once. What happens to its connections anybody on the way may cause.
void StateFetch::blame(Source& source, const Error& error) {
  const bool is_final = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt;
  ++source.failures;
  source.not_before = Clock::now() + source.pause.next();
  if (is_final || source.failures >= options_.max_failures) source.dropped = error;
  spdlog::warn("recovery source={} outer_step={} dropped={} reason={} message=\"{}\"", source.where.id.value,
               plan_->target().outer_step.value, source.dropped.has_value(), to_string(error.code), error.message);
}

// Nothing is under way, and nobody is to be asked again later.
bool StateFetch::is_stuck() const {
  const auto now = Clock::now();
  return flights_.empty() && std::ranges::none_of(sources_, [&](const auto& entry) {
           return entry.second.is_asked() && now < entry.second.not_before;
         });
}

Error StateFetch::gave_up() const {
  std::string reasons;
  bool moved_on = false, any = false;
  std::optional<ErrorCode> code;
  for (const auto& [id, source] : sources_) {
    const std::optional<Error>& why = source.dropped ? source.dropped : source.moved_on;
    if (!source.is_named || !source.where.holds_target || !why) continue;
    any = true;
    moved_on = moved_on || why->code == ErrorCode::kNotFound;
    code = code.value_or(why->code) == why->code ? why->code : ErrorCode::kUnreachable;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", id.value, why->message);
  }
  const std::string what =
      fmt::format("cannot fetch the outer state of outer step {}", plan_->target().outer_step.value);
  if (!any) return Error{ErrorCode::kNotFound, what + ": no island has it; ask the hub again"};
  if (moved_on) return Error{ErrorCode::kNotFound, fmt::format("{}: {}; ask the hub for the newest", what, reasons)};
  return Error{*code, fmt::format("{}: {}", what, reasons)};
}

}  // namespace atl
