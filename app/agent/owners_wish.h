// The owner's wish (wish.h) as the agent follows it: by this machine's clock, until another is said. Owned by the
// agent, whose loop calls it.
#pragma once

#include <filesystem>
#include <string>

#include "app/agent/wish.h"

namespace atl {

class OwnersWish {
 public:
  // As `file` has it; without one a run.
  explicit OwnersWish(std::filesystem::path file);

  const WishFile& said() const { return said_; }
  Wish now() const;
  bool pause_is_over() const { return said_.wish == Wish::kPause && now() == Wish::kRun; }

  void say(const WishFile& wish);  // which is in the file already, if it could be
  void settle(Wish wish);          // from now on, and written down
  // Whether what was settled last could be written down, for a person; empty: it could.
  const std::string& warning() const { return warning_; }

 private:
  const std::filesystem::path file_;
  WishFile said_;
  std::string warning_;
};

}  // namespace atl
