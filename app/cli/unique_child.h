// Owns a child process by its number: kills and reaps what still runs. One thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

namespace atl {

class UniqueChild {
 public:
  explicit UniqueChild(pid_t pid) : pid_(pid) {}
  UniqueChild(UniqueChild&& other) noexcept : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}
  UniqueChild& operator=(UniqueChild&& other) noexcept;
  ~UniqueChild();

  pid_t pid() const { return pid_; }
  // The exit status (128 + signal when one ended it), once it has ended.
  std::optional<int> poll();
  void send_signal(int signal);  // nothing once it has ended

 private:
  pid_t pid_;
  std::optional<int> exit_;
};

}  // namespace atl
