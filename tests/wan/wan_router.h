// The thread between the hosts: reads packets from their TUN devices, lets the emulator decide, writes them when they
// are due. While packets flow it looks once a tick instead of at every packet, which is what keeps its share of a core
// small; otherwise it sleeps until one comes.
#pragma once

#include <span>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "tests/wan/host_network.h"
#include "tests/wan/wan_emulator.h"

namespace atl::wan {

class WanRouter {
 public:
  // `hosts` outlive this.
  WanRouter(std::span<const HostNetwork> hosts, WanEmulator emulator);
  ~WanRouter();

  // Any thread: looks at or changes the emulator, between packets.
  template <class Function>
  auto with_emulator(Function function) {
    MutexLock lock(mutex_);
    return function(emulator_);
  }
  std::chrono::nanoseconds cpu_time() const;  // of the thread so far, the kernel's receiving of packets included

 private:
  void run();
  bool read_packets();  // whether there were any
  void deliver_due();
  void sleep(bool busy);

  const std::span<const HostNetwork> hosts_;
  AbortSignal stop_;
  PacketArena arena_;  // of the thread
  Mutex mutex_;
  WanEmulator emulator_ ATOLL_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> cpu_nanoseconds_{0};
  std::jthread thread_;
};

}  // namespace atl::wan
