// Whether a fetch can ever end: the others go on meanwhile, and a link that carries less than the averages of the
// rounds that they commit never catches up. Pure; times are passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/base/id.h"

namespace atl {

class CatchUpPace {
 public:
  static constexpr int kRounds = 3;  // that are seen pass before anything is said
  static constexpr std::chrono::seconds kTime{30};

  // What the hub names, whenever it names another; all bytes that came so far.
  void target_is(OuterStep target, std::uint64_t bytes, Clock::time_point now);

  struct Verdict {
    double bytes_per_second = 0;  // that come
    double needed = 0;            // bytes/s: of the averages alone
    double seconds_of_round = 0;
  };
  // As of the last target. round_bytes: of an average, that of the largest fragment. Nothing: it may end.
  std::optional<Verdict> never_ends(std::uint64_t round_bytes) const;

 private:
  struct Reading {
    OuterStep target;
    std::uint64_t bytes = 0;
    Clock::time_point when;
  };
  std::optional<Reading> first_, last_;
};

// For a person.
std::string text_of(const CatchUpPace::Verdict& verdict);

}  // namespace atl
