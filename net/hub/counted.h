// Counts itself for as long as it lives: one more connection, one more transfer. The event loop's thread.
#pragma once

#include <memory>

namespace atl {

class Counted {
 public:
  // Shared with the counter's owner, which may be gone before what it counts.
  explicit Counted(std::shared_ptr<int> count) : count_(std::move(count)) { ++*count_; }
  ~Counted() { --*count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  const std::shared_ptr<int> count_;
};

}  // namespace atl
