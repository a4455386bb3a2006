#include "net/recovery/state_fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/base/round_words.h"
#include "net/https/http_status.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};
constexpr double kMostOfAllowed = 0.5;
constexpr std::size_t kMostPieces = 32, kFewestPieces = 4;  // of an average at once: 8 MiB, 1 MiB

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace

Result<StateFetch> StateFetch::create(const Identity& self, FetchModel model, std::function<void(std::uint64_t)> came,
                                      const StateFetchOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, options.stall, options.download));
  return StateFetch(self, std::move(fetcher), std::move(model), std::move(came), options);
}

StateFetch::StateFetch(const Identity& self, HttpsFetcher fetcher, FetchModel model,
                       std::function<void(std::uint64_t)> came, const StateFetchOptions& options)
    : fetcher_(std::move(fetcher)),
      self_(self),
      options_(options),
      plan_(std::make_unique<FetchPlan>(self_, std::move(model), std::move(came))),
      chunks_(std::make_unique<ChunkFetch>(*plan_)) {}

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
      return Error{ErrorCode::kNotFound,
                   fmt::format("the state {} is no longer the newest", after_round(target.outer_step.value))};
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
  const auto holders = static_cast<std::size_t>(
      std::ranges::count_if(sources_, [](const auto& entry) { return entry.second.has_target(); }));
  return chunks_->next(holders, holders * static_cast<std::size_t>(options_.transfers_per_source));
}

// Nothing is left to ask for the first time: a part of what somebody else is slow with.
std::optional<StateFetch::Purpose> StateFetch::slow_purpose(const Source& source) {
  const auto now = Clock::now();
  const auto slow_since = now - options_.hedge_after;
  double together = 0;
  for (const auto& [id, flight] : flights_) together += flight.rate.bytes_per_second(now);
  // Where the owner's limit is what is slow, nobody else is faster.
  const auto allowed = options_.download != nullptr ? options_.download->allowed() : std::nullopt;
  if (allowed && together > kMostOfAllowed * *allowed) return std::nullopt;
  std::optional<Purpose> best;
  Clock::time_point oldest{};
  for (const auto& [id, flight] : flights_) {
    if (flight.source == source.where.id || flight.since > slow_since || !may_serve(source, flight.purpose)) continue;
    if (best && flight.since >= oldest) continue;
    const double rate = flight.rate.bytes_per_second(now);
    std::optional<Purpose> rest = rest_of(flight, rate <= 0);
    if (!rest || !rates_.is_worth_asking_again(flight.body->enough - flight.came(), rate, bytes_of(*rest), together)) {
      continue;
    }
    best = std::move(rest);
    oldest = flight.since;
  }
  if (!best) return std::nullopt;
  if (const auto* part = std::get_if<ChunkPart>(&*best)) chunks_->ask_again(*part);
  if (const auto* part = std::get_if<ForPieces>(&*best))
    plan_->average(part->round, part->digest)->ask_again(part->pieces);
  return best;
}

// The second half of what has not come of it, all of that where it is silent; but what is asked of two already.
std::optional<StateFetch::Purpose> StateFetch::rest_of(const Flight& flight, bool is_silent) {
  const auto cut = [&](PieceSpan span, std::size_t piece_bytes, const auto& asked) {
    const std::size_t begin = std::min(span.end(), span.first + static_cast<std::size_t>(flight.came() / piece_bytes));
    std::size_t end = span.end();
    while (end > begin && asked(end - 1) > 1) --end;
    const std::size_t count = is_silent ? end - begin : (end - begin + 1) / 2;
    return PieceSpan{end - count, count};
  };
  if (const auto* chunk = std::get_if<ChunkPart>(&flight.purpose)) {
    if (!chunks_->may_be_split(*chunk)) return std::nullopt;
    ChunkPart rest = *chunk;
    rest.pieces =
        cut(chunk->pieces, kChunkPieceBytes, [&](std::size_t piece) { return chunks_->asked(*chunk, piece); });
    return rest.pieces.count > 0 ? std::optional<Purpose>(rest) : std::nullopt;
  }
  const auto* part = std::get_if<ForPieces>(&flight.purpose);
  const FetchedAverage* average = part ? plan_->average(part->round, part->digest) : nullptr;
  if (!average) return std::nullopt;
  ForPieces rest = *part;
  rest.pieces = cut(part->pieces, kDigestPieceBytes, [&](std::size_t piece) { return average->asked(piece); });
  return rest.pieces.count > 0 ? std::optional<Purpose>(rest) : std::nullopt;
}

std::uint64_t StateFetch::bytes_of(const Purpose& purpose) const {
  return std::visit(
      Match{[&](const ForManifest&) { return max_manifest_bytes(plan_->state().state_bytes()); },
            [&](const ChunkPart& part) { return chunks_->bytes_of(part); },
            [&](const ForRound& round) { return max_round_manifest_bytes(plan_->average_numel(round.round)); },
            [&](const ForPieces& part) {
              const RoundManifest& manifest = plan_->average(part.round, part.digest)->manifest();
              return (part.pieces.count - 1) * kDigestPieceBytes + manifest.piece_bytes(part.pieces.end() - 1);
            }},
      purpose);
}

void StateFetch::look_at_rates(Clock::time_point now) {
  std::uint64_t bytes = landed_bytes_;
  for (auto& [id, flight] : flights_) {
    flight.rate.look(flight.came(), now);
    bytes += flight.came();
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
  if (const auto* chunk = std::get_if<ChunkPart>(&purpose)) {
    return source.has_target() && chunk->is == plan_->wanted(chunk->index);
  }
  const auto* part = std::get_if<ForPieces>(&purpose);
  return part && may_ask_for_round(source, part->round) && plan_->average(part->round, part->digest);
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
  auto body = std::make_unique<Body>();
  HttpsRequest request;
  request.peer = source.where.id;
  request.address = source.where.address;
  request.max_bytes = body->enough = bytes_of(purpose);
  std::visit(Match{[&](const ForManifest&) { request.path = "/state/manifest"; },
                   [&](const ChunkPart& chunk) {
                     request.path = fmt::format("/state/{}/{}", chunk.is.step.value, chunk.index);
                     if (!chunks_->is_all(chunk)) request.resume_at = chunks_->offset_of(chunk);
                   },
                   [&](const ForRound& round) { request.path = fmt::format("/rounds/{}/manifest", round.round.value); },
                   [&](const ForPieces& part) {
                     request.path = fmt::format("/rounds/{}/{}/average", part.round.value, part.digest);
                     request.resume_at = part.pieces.first * kDigestPieceBytes;
                   }},
             purpose);
  const bool wants_part = request.resume_at.has_value();
  if (wants_part) request.range_bytes = request.max_bytes;
  request.on_body = [into = body.get(), wants_part, all = request.max_bytes](ByteView bytes, bool partial) {
    if (wants_part && !partial) return Status(Error{ErrorCode::kProtocol, "it sends all in place of a range"});
    into->bytes.insert(into->bytes.end(), bytes.begin(), bytes.end());
    const bool is_cut = into->enough < all && into->bytes.size() >= into->enough;
    return is_cut ? Status(Error{ErrorCode::kAborted, "others have brought the rest"}) : ok_status();
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
  if (node.empty()) return;  // ended in this turn: others were faster
  Flight flight = std::move(node.mapped());
  landed_bytes_ += flight.came();
  Source& source = sources_.at(flight.source);
  --source.running;
  const bool is_missing = outcome.http_status == kStatusNotFound || outcome.http_status == kStatusPreconditionFailed;
  Status status = ok_status();
  if (!outcome.error && is_missing) {
    has_not(source, flight.purpose);
  } else if (outcome.error) {
    // What came of several pieces before it broke off is as good; and it ends early where that is enough.
    const bool is_cut = outcome.error->code == ErrorCode::kAborted && flight.has_enough();
    status = take_parts(flight);
    if (status.ok() && !is_cut) status = *outcome.error;
  } else {
    status = accept(flight, outcome.http_status);
  }
  give_back(flight);
  shorten_others();
  if (status.ok()) {
    source.failures = 0;
    source.pause.reset();
    return;
  }
  const auto* manifest = std::get_if<ForManifest>(&flight.purpose);
  if (manifest != nullptr && status.error().code == ErrorCode::kNotFound) {
    source.moved_on = status.error();
    return;
  }
  blame(source, status.error());
}

Status StateFetch::accept(Flight& flight, long http_status) {
  if (http_status != kStatusOk && http_status != kStatusPartialContent) {
    return Error{ErrorCode::kProtocol, fmt::format("it answers with HTTP status {}", http_status)};
  }
  if (const auto* manifest = std::get_if<ForManifest>(&flight.purpose)) return take(*manifest, flight.body->bytes);
  if (const auto* round = std::get_if<ForRound>(&flight.purpose)) return take(*round, flight.body->bytes);
  const bool is_short = !flight.has_enough();
  ATOLL_RETURN_IF_ERROR(take_parts(flight));
  return is_short ? Status(Error{ErrorCode::kProtocol, "it sends less than it was asked for"}) : ok_status();
}

// Of an answer that broke off, too.
Status StateFetch::take_parts(Flight& flight) {
  if (const auto* part = std::get_if<ForPieces>(&flight.purpose)) return take(*part, flight.body->bytes);
  if (const auto* part = std::get_if<ChunkPart>(&flight.purpose)) return take(*part, flight.body->bytes, flight.source);
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

Status StateFetch::take(const ChunkPart& purpose, Bytes& body, const IslandId& from) {
  const ChunkFetch::Taken taken = chunks_->take(purpose, std::move(body), from);
  counts_.chunk_bytes += taken.useful;
  counts_.lost_bytes += taken.lost;
  Status status = ok_status();
  for (const IslandId& liar : taken.liars) {
    const Error wrong{ErrorCode::kCorrupt, fmt::format("chunk {} of the state {} has a wrong hash", purpose.index,
                                                       after_round(purpose.is.step.value))};
    liar == from ? static_cast<void>(status = wrong) : blame(sources_.at(liar), wrong);
  }
  return status;
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
  const FetchedAverage::Accepted accepted = plan_->take_pieces(*average, purpose.pieces, body);
  counts_.average_bytes += accepted.fresh_bytes;
  counts_.lost_bytes += body.size() - accepted.fresh_bytes;
  return accepted.status;
}

// What it did not bring is asked for again.
void StateFetch::give_back(const Flight& flight) {
  if (const auto* chunk = std::get_if<ChunkPart>(&flight.purpose)) chunks_->give_back(*chunk);
  if (const auto* part = std::get_if<ForPieces>(&flight.purpose)) {
    if (FetchedAverage* average = plan_->average(part->round, part->digest)) average->give_back(part->pieces);
  }
}

// Up to the last piece that is still needed.
std::uint64_t StateFetch::needed_of(const Flight& flight) {
  const auto up_to = [&](PieceSpan span, std::size_t piece_bytes, const auto& needs) {
    std::size_t end = span.end();
    while (end > span.first && !needs(end - 1)) --end;
    return std::min<std::uint64_t>((end - span.first) * piece_bytes, flight.bytes);
  };
  if (const auto* chunk = std::get_if<ChunkPart>(&flight.purpose)) {
    return up_to(chunk->pieces, kChunkPieceBytes, [&](std::size_t piece) { return chunks_->needs(*chunk, piece); });
  }
  const auto* part = std::get_if<ForPieces>(&flight.purpose);
  if (!part) return flight.bytes;
  const FetchedAverage* average = plan_->average(part->round, part->digest);
  if (!average) return 0;
  return up_to(part->pieces, kDigestPieceBytes, [&](std::size_t piece) { return average->needs(piece); });
}

// Those of which others have brought a part: they end where theirs ends.
void StateFetch::shorten_others() {
  std::vector<TransferId> ended;
  for (auto& [id, flight] : flights_) {
    flight.body->enough = needed_of(flight);
    if (flight.bytes > flight.body->enough && flight.has_enough()) ended.push_back(id);
  }
  for (const TransferId id : ended) {
    fetcher_.cancel(id);
    land({id, 0, std::nullopt, Error{ErrorCode::kAborted, "others have brought the rest"}});
  }
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
                   [&](const ChunkPart& chunk) {
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
  const std::string what = fmt::format("cannot fetch the state {}", after_round(plan_->target().outer_step.value));
  if (!any) return Error{ErrorCode::kNotFound, what + ": no island has it; ask the hub again"};
  if (moved_on) return Error{ErrorCode::kNotFound, fmt::format("{}: {}; ask the hub for the newest", what, reasons)};
  return Error{*code, fmt::format("{}: {}", what, reasons)};
}

}  // namespace atl
