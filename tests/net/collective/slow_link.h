// A TCP link between two islands that a test can make bad: forwards bytes to `target`, from the dialler to the listener
// at a given rate at most, until it is told to black out or cut. Owns its thread.
#pragma once

#include <atomic>
#include <list>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/unique_fd.h"

namespace atl {

class SlowLink {
 public:
  explicit SlowLink(Address target, std::size_t bytes_per_second = std::size_t{1} << 40);
  ~SlowLink();

  Address address() const { return address_; }
  // From now on connections stay open and carry nothing.
  void black_out() { black_ = true; }
  // After so many more bytes: the same of itself, or the end of every connection.
  void black_out_after(std::size_t bytes) { bytes_until_black_ = bytes; }
  void cut_after(std::size_t bytes) { bytes_until_cut_ = bytes; }
  // The same for one end alone: the other is not told, and what it sends vanishes.
  void half_close_after(std::size_t bytes, bool dialler) {
    half_closes_dialler_ = dialler;
    bytes_until_half_closed_ = bytes;
  }

 private:
  struct Pair {
    UniqueFd dialler;
    UniqueFd listener;
  };
  void run();
  void accept();
  void half_close();
  bool forward(int from, int to, std::size_t most, bool counted);  // false: an end closed

  const Address target_;
  const std::size_t bytes_per_second_;
  UniqueFd socket_;
  Address address_;
  std::atomic<bool> black_{false};
  std::atomic<std::size_t> bytes_until_black_{std::size_t{1} << 60};
  std::atomic<std::size_t> bytes_until_cut_{std::size_t{1} << 60};
  std::atomic<std::size_t> bytes_until_half_closed_{std::size_t{1} << 60};
  std::atomic<bool> half_closes_dialler_{false};
  AbortSignal stop_;
  std::list<Pair> pairs_;
  std::jthread thread_;
};

}  // namespace atl
