// Runs programs on a device. Owned and used by one rank's thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "net/step/program.h"
#include "trainer/device/device.h"

namespace atl {

// As Device::upload takes them.
template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

class ProgramRunner {
 public:
  explicit ProgramRunner(Device& device) : device_(device) {}

  // Enqueues it; does not wait. Two runs in a row of one program overlap as far as its waits let them, and between
  // different ones all streams meet.
  void run(const Program& program);
  // What the host enqueues itself comes after everything before, on all streams.
  void join();
  // As run(program) begins: what the host uploads for it comes after another program's end, not after its own run
  // before.
  void join_before(const Program& program) {
    if (last_ != &program) join();
  }
  void forget() { last_ = nullptr; }  // after a failure

 private:
  Device& device_;
  const Program* last_ = nullptr;  // that was run since the streams met; compared alone
  int events_ = 0;
};

}  // namespace atl
