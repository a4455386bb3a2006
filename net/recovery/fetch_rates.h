// Whether it is worth asking a second source for what the first is slow with: only where that is likely to come sooner,
// for what is asked twice comes in vain once, and takes from the link what others need. Pure; times are passed in.
#pragma once

#include <cstdint>

#include "net/base/deadline.h"

namespace atl {

// Of one request.
class FlightRate {
 public:
  explicit FlightRate(Clock::time_point began) : before_{0, began}, mark_{0, began} {}

  void look(std::uint64_t bytes, Clock::time_point now);  // that have come
  double bytes_per_second(Clock::time_point now) const;   // of late; as of the last look

 private:
  struct Reading {
    std::uint64_t bytes = 0;
    Clock::time_point when;
  };
  Reading before_, mark_;
  std::uint64_t bytes_ = 0;
};

// Of all of them together: what the way to this island carries, as far as it was seen.
class FetchRates {
 public:
  void look(std::uint64_t bytes, Clock::time_point now);  // that have come in all
  // One has so many bytes yet to come and brings so many a second; all that are under way bring `together`. Whether
  // `whole` bytes would come at least twice as soon over a way of their own.
  bool is_worth_asking_again(std::uint64_t left, double bytes_per_second, std::uint64_t whole, double together) const;

 private:
  double best_ = 0;  // bytes/s; it fades, for links do
  std::uint64_t bytes_ = 0;
  Clock::time_point when_{};
};

}  // namespace atl
