// How far a pass over a dataset's bytes is, with the time that it still takes: a line that changes on a terminal, else
// a line a minute, for whoever looks at it later. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/console.h"
#include "net/base/deadline.h"

namespace atl {

class HashingLines {
 public:
  explicit HashingLines(Console& console) : console_(console) {}

  // `what` is hashed: a source's name. The first time with what an earlier call had done.
  void show(const std::string& what, std::uint64_t done_bytes, std::uint64_t of_bytes);

 private:
  Console& console_;
  std::string what_;
  std::uint64_t begun_bytes_ = 0, last_bytes_ = 0;
  Clock::time_point began_{}, shown_{};
};

}  // namespace atl
