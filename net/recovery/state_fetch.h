// Fetches the outer state from islands over HTTPS (libcurl), every byte verified: averages of the rounds that are
// missing from what is there, whole chunks where that is fewer bytes (fetch_plan.h). One for as long as an island
// recovers: what came for one target is of use for the next. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/backoff.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/https/https_fetcher.h"
#include "net/recovery/chunk_fetch.h"
#include "net/recovery/fetch_plan.h"
#include "net/recovery/fetch_rates.h"
#include "net/tls/identity.h"

namespace atl {

struct StateSourceAddress {
  IslandId id;  // its certificate must carry this name
  Address address;
  bool holds_target = true;  // else it is asked for averages alone, which none of those that do has
};

struct StateFetchOptions {
  std::chrono::milliseconds stall{10'000};  // without a byte for so long, a transfer is given up
  std::chrono::milliseconds retry_after{
      500};  // a source that failed is tried again, later after every failure in a row
  std::chrono::milliseconds hedge_after{3'000};  // what takes longer is shared with an idle source
  int max_failures = 4;                          // in a row, then a source is dropped
  int transfers_per_source = 3;  // one waits for its next answer meanwhile; an island has four places for a member, of
                                 // which probes take one (ServingTurns)
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives the fetch
};

// Of bodies, since it began.
struct FetchCounts {
  std::uint64_t chunk_bytes = 0, average_bytes = 0;  // verified, and of use
  std::uint64_t round_bytes = 0;                     // of records and piece hashes
  std::uint64_t lost_bytes = 0;                      // came in vain: cut off, wrong, or twice
  std::uint64_t useful() const { return chunk_bytes + average_bytes + round_bytes; }
};

class StateFetch {
 public:
  // `self` outlives this. `came`: a chunk of the target is right, after fetching or stepping; may be empty.
  static Result<StateFetch> create(const Identity& self, FetchModel model,
                                   std::function<void(std::uint64_t chunk)> came = {},
                                   const StateFetchOptions& options = {});

  // Before the first run(): what is there already goes in here.
  PartialState& state() { return plan_->state(); }
  FetchPlan& plan() { return *plan_; }
  const FetchCounts& counts() const { return counts_; }

  // The state with this outer step and tree hash (both from the hub), whole in state(). A source that stalls (no byte
  // for 10 s) or sends what is wrong is replaced; kNotFound when all that hold it have moved on to a newer one, or
  // `superseded` says that the hub names another: ask it again, and run() goes on from what came.
  Status run(const HeldState& target, const std::vector<StateSourceAddress>& sources, const AbortSignal& abort,
             const FetchProgress& progress, const std::function<bool()>& superseded = {});

 private:
  struct Source {
    StateSourceAddress where;
    bool is_named = false;               // for this target
    int running = 0;                     // transfers
    int failures = 0;                    // in a row
    Backoff pause;                       // after each
    Clock::time_point not_before{};      // until then
    std::optional<Error> dropped = {};   // why it is asked no more
    std::optional<Error> moved_on = {};  // why it is asked for averages alone
    std::set<OuterStep> lacks = {};      // rounds

    bool is_asked() const { return is_named && !dropped; }
    bool has_target() const { return is_asked() && where.holds_target && !moved_on; }
  };
  // What a request is for.
  struct ForManifest {
    OuterStep version;
  };
  struct ForRound {
    OuterStep round;
  };
  struct ForPieces {
    OuterStep round;
    std::string digest;
    PieceSpan pieces;
  };
  using Purpose = std::variant<ForManifest, ChunkPart, ForRound, ForPieces>;
  // Filled by the transfer.
  struct Body {
    Bytes bytes;
    std::uint64_t enough = 0;  // what is asked for, or less when others brought the rest: it ends there
  };
  struct Flight {
    IslandId source;
    Purpose purpose;
    std::uint64_t bytes = 0;  // of all that is asked for
    std::unique_ptr<Body> body;
    Clock::time_point since;
    FlightRate rate;

    std::uint64_t came() const { return body->bytes.size(); }
    bool has_enough() const { return came() >= body->enough; }
  };

  StateFetch(const Identity& self, HttpsFetcher fetcher, FetchModel model, std::function<void(std::uint64_t)> came,
             const StateFetchOptions& options);

  void name(const std::vector<StateSourceAddress>& sources);
  void start_flights();
  std::optional<Purpose> next_purpose(const Source& source);
  std::optional<Purpose> slow_purpose(const Source& source);
  bool may_serve(const Source& source, const Purpose& purpose);
  std::optional<Purpose> rest_of(const Flight& flight, bool is_silent);
  std::uint64_t bytes_of(const Purpose& purpose) const;
  void look_at_rates(Clock::time_point now);
  std::size_t pieces_at_once() const;
  void start(Source& source, Purpose purpose);
  bool may_ask_for_round(const Source& source, OuterStep round) const;
  bool is_asked_for_round(OuterStep round) const;
  void land(const HttpsOutcome& outcome);
  Status accept(Flight& flight, long http_status);
  Status take_parts(Flight& flight);
  Status take(const ForManifest& purpose, const Bytes& body);
  Status take(const ChunkPart& purpose, Bytes& body, const IslandId& source);
  Status take(const ForRound& purpose, const Bytes& body);
  Status take(const ForPieces& purpose, const Bytes& body);
  void give_back(const Flight& flight);
  void shorten_others();
  std::uint64_t needed_of(const Flight& flight);
  void has_not(Source& source, const Purpose& purpose);
  void give_up_rounds();
  void blame(Source& source, const Error& error);
  bool is_stuck() const;
  Error gave_up() const;

  HttpsFetcher fetcher_;
  const Identity& self_;
  const StateFetchOptions options_;
  std::unique_ptr<FetchPlan> plan_;
  std::unique_ptr<ChunkFetch> chunks_;
  FetchCounts counts_;
  FetchRates rates_;
  std::uint64_t landed_bytes_ = 0;  // of bodies
  std::map<IslandId, Source> sources_;
  std::map<TransferId, Flight> flights_;
};

}  // namespace atl
