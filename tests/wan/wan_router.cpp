#include "tests/wan/wan_router.h"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "net/base/mutex.h"

namespace atl::wan {
namespace {

constexpr std::chrono::microseconds kTick{200};
constexpr std::chrono::milliseconds kBusyFor{2};  // ticks go on so long after the last packet
constexpr int kBurst = 256;                       // packets of one host a tick

WanTime now() { return Clock::now().time_since_epoch(); }

timespec as_timespec(std::chrono::nanoseconds duration) {
  const auto count = std::max<std::int64_t>(duration.count(), 0);
  return {.tv_sec = count / 1'000'000'000, .tv_nsec = count % 1'000'000'000};
}

}  // namespace

WanRouter::WanRouter(std::span<const HostNetwork> hosts, WanEmulator emulator)
    : hosts_(hosts), emulator_(std::move(emulator)), thread_([this] { run(); }) {}

WanRouter::~WanRouter() { stop_.raise("the emulation ends"); }

std::chrono::nanoseconds WanRouter::cpu_time() const { return std::chrono::nanoseconds(cpu_nanoseconds_.load()); }

void WanRouter::run() {
  (void)::prctl(PR_SET_TIMERSLACK, 10'000UL);  // ns
  WanTime last_packet{0};
  while (!stop_.raised()) {
    if (read_packets()) last_packet = now();
    deliver_due();
    sleep(now() - last_packet < kBusyFor);
    timespec used{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    cpu_nanoseconds_ = used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
  }
}

bool WanRouter::read_packets() {
  MutexLock lock(mutex_);
  bool any = false;
  for (const HostNetwork& host : hosts_) {
    for (int burst = 0; burst < kBurst; ++burst) {
      PacketArena::Slice slice = arena_.reserve();
      const ssize_t size = ::read(host.tun(), slice.view().data(), slice.bytes);
      if (size <= 0) break;
      any = true;
      slice = arena_.keep(std::move(slice), static_cast<std::size_t>(size));
      const auto shape = shape_of(slice.view());
      if (!shape) continue;  // IPv6 neighbour discovery and the like
      const int to = host_of(shape->destination);
      if (to < 0 || to >= emulator_.hosts() || to == host.index()) continue;
      emulator_.accept(host.index(), to, std::move(slice), *shape, now(), arena_);
    }
  }
  return any;
}

void WanRouter::deliver_due() {
  MutexLock lock(mutex_);
  emulator_.advance(now(), [this](int to, std::span<const std::byte> packet) {
    // A host whose own queue is full loses the packet, as a real one does.
    [[maybe_unused]] const auto written =
        ::write(hosts_[static_cast<std::size_t>(to)].tun(), packet.data(), packet.size());
  });
}

void WanRouter::sleep(bool busy) {
  if (busy) {
    const timespec tick = as_timespec(kTick);
    (void)::nanosleep(&tick, nullptr);
    return;
  }
  std::vector<pollfd> watched{{stop_.fd(), POLLIN, 0}};
  for (const HostNetwork& host : hosts_) watched.push_back({host.tun(), POLLIN, 0});
  const auto due = with_emulator([](const WanEmulator& emulator) { return emulator.next_due(); });
  const timespec timeout = as_timespec(due ? *due - now() : std::chrono::seconds(1));
  (void)::ppoll(watched.data(), watched.size(), &timeout, nullptr);
}

}  // namespace atl::wan
