// What the hub says of its run on the control socket (`state.get`): read by `atoll hub status` and the demo's display.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/hub_words.h"
#include "net/wire/learning_rate.h"
#include "net/wire/told_past.h"

namespace atl {

struct HubState {
  struct Round {  // committed
    std::uint32_t round = 0;
    std::uint32_t attempts = 1;
    std::uint32_t members = 0;
    std::uint64_t tokens = 0;
    double seconds = 0;         // from its beginning to its commit
    double mean_loss_nats = 0;  // of its inner phases, weighted by tokens
    // Of parameters and momentum after it; empty until every live member has reported.
    std::optional<bool> outer_hashes_equal;
  };

  using Past = PastRounds;

  struct Island {
    std::string id;    // "isl-..."
    std::string name;  // for people
    HubIslandState state = HubIslandState::kUnknown;
    std::optional<IslandPhase> phase;  // of its last heartbeat
    // What it does, in one word: as the hub has it, and while that is training, as it says itself.
    std::string_view word() const {
      return state == HubIslandState::kTraining && phase ? word_of(*phase) : word_of(state);
    }
    // It takes no part, and nobody waits for it.
    bool is_gone() const { return state == HubIslandState::kGone || state == HubIslandState::kRemoved; }
    std::uint32_t inner_step = 0;
    double loss_nats = 0;  // 0 before its first inner step
    double tokens_per_second = 0;
    std::uint64_t tokens = 0;  // these four: since it started
    std::uint64_t bytes_sent = 0;
    double inner_seconds = 0;
    double sync_seconds = 0;
    double last_seen_seconds = 0;  // ago
    std::uint32_t rounds_accepted = 0;
  };

  using Validation = PastValidation;

  // What a task of the run's came to, over outer steps.
  struct Evaluation {
    struct Point {
      std::uint32_t outer_step = 0;
      double value = 0;
    };
    struct Figure {
      std::string metric;
      double value = 0;
    };
    std::string task;
    std::string metric;          // which the points are of: "acc", "bits_per_byte"
    std::vector<Point> points;   // at most kMaxPoints, evenly over the run; the first and the last are among them
    std::vector<Figure> newest;  // all metrics of the last point's state
  };

  struct Mixture {                                 // of a run with several sources; "NAME=SHARE,NAME=SHARE"
    std::string weights;                           // of what is leased now
    std::optional<std::uint32_t> next_round = {};  // from then on, as the organiser decided:
    std::string next_weights = {};
  };

  struct Standstill {  // the run has islands and cannot go on by itself
    std::string kind;  // "lost", "undecided", "split_state", "split_average", "spoiled", "quorum", "stragglers",
                       // "no_data"
    std::string text;  // for a person: why, and which command settles it
    std::optional<std::uint32_t> back_to;  // the newest outer state to which it can go back
    double seconds = 0;                    // for so long what it names has been so
  };

  std::string run_id;
  std::string name;
  std::vector<std::string> addresses;  // that invites carry, HOST:PORT
  HubPhase phase = HubPhase::kUnknown;
  std::uint32_t outer_step = 0;   // committed so far
  bool round_open = false;        // round `outer_step` is under way
  std::uint32_t inner_steps = 0;  // H
  std::uint32_t fragments = 1;    // F: each round averages one of them
  std::uint32_t max_rounds = 0;   // 0: until stopped
  std::uint32_t min_islands = 1;
  bool finished = false;
  std::optional<Standstill> standstill;
  std::string
      waits_for;  // before that is one: nobody here holds the committed state, and who has it; empty: all is well
  std::string
      fetch_wait;  // for whose fetch of the model the next round waits, and how long at most; empty: for nobody's
  // Islands, here or away, whose disks have outer state `outer_step`.
  std::uint32_t disks_with_committed = 0;
  // The newest that as many islands as the run asks for have on their disks; and that is in its object store.
  std::optional<std::uint32_t> safe_outer_step, uploaded_outer_step;
  std::optional<DecidedDecay> decay;  // of the learning rate, as the organiser decided while the run lives
  std::optional<Mixture> mixture;
  std::vector<Round> rounds;  // the last kMaxRounds, oldest first
  std::vector<Past> past;     // all of them, from the first on, in at most kMaxPast pieces of the same length
  std::vector<Island> islands;
  std::optional<Validation> first_validation, last_validation;
  std::vector<Validation>
      validations;  // at most kMaxPoints, evenly over the run; the first and the last are among them
  std::vector<Evaluation> evaluations;  // a task each, in the run's order

  static constexpr std::size_t kMaxRounds = 32;
  static constexpr std::size_t kMaxPast = kMaxPastRounds;
  static constexpr std::size_t kMaxIslands = 1024;
  static constexpr std::size_t kMaxPoints = kMaxPastValidations;

  std::uint64_t tokens() const;  // of all rounds
  double seconds() const;        // that they took
  // Until the run ends, as the newest rounds went; empty: it has no end, or none was committed here.
  std::optional<double> seconds_left() const;

  nlohmann::json to_json() const;
  static Result<HubState> from_json(const nlohmann::json& json);
};

}  // namespace atl
