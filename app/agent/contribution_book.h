// What this machine gave to runs, to each and in all, over every restart of trainer and agent: people come back for it.
// A trainer counts since it started; here the differences are summed. Kept in a file that says also how far the trainer
// that ran was counted, so that an agent that takes it over counts nothing twice. Thread-safe; turn() and flush(),
// which block on the disk, are the agent's loop's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/control/node_state.h"

namespace atl {

// What came on top of `before`. A state that came late says less, and nothing is taken back.
Contribution contributed_since(const Contribution& before, const Contribution& now);

struct ContributionFile {
  static constexpr int kVersion = 1;
  static constexpr std::size_t kMaxRuns = 256;  // of more the oldest are in `life` alone

  struct Run {
    std::string run_id = {};
    Contribution given = {};
  };
  struct Trainer {
    std::int64_t pid = 0;  // 0: none was counted
    Contribution counted = {};
  };

  Contribution life = {};
  std::vector<Run> runs = {};  // the one that was trained last is the last
  Trainer trainer = {};

  std::string to_json() const;
  static Result<ContributionFile> from_json(std::string_view text);
};

class ContributionBook {
 public:
  // What `file` holds is read; one that cannot be read stays as it is, trouble() says so, and nothing is kept.
  explicit ContributionBook(std::filesystem::path file);

  // The trainer that runs from now on, before it is heard. One that is not new has been counted, if it is the file's.
  void follow(std::int64_t pid, bool is_new);
  void take(const IslandState& state);  // of another trainer than that: ignored
  ContributionView of(const std::string& run_id) const;

  void turn(Clock::time_point now);  // writes now and then
  void flush();
  std::string trouble() const;  // for a person; empty: all is well

 private:
  ContributionFile::Run& run(const std::string& run_id) ATOLL_REQUIRES(mutex_);

  const std::filesystem::path file_;
  Clock::time_point write_at_{};  // the loop's
  mutable Mutex mutex_;
  ContributionFile book_ ATOLL_GUARDED_BY(mutex_);
  bool is_written_ ATOLL_GUARDED_BY(mutex_) = true;
  bool may_write_ ATOLL_GUARDED_BY(mutex_) = true;
  std::string trouble_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
