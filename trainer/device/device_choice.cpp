#include "trainer/device/device_choice.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <stop_token>
#include <thread>

#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {
namespace {

std::uint64_t free_on(const GpuLook& look) {
  std::uint64_t bytes = 0;
  for (const UsableGpu& gpu : look.usable) bytes += gpu.free_bytes;
  return bytes;
}

void say_when_slow(const SlowGpus& slow, const std::stop_token& stop) {
  Mutex mutex;
  StoppableCondVar never;
  MutexLock lock(mutex);
  (void)never.wait(lock, stop, Deadline::after(slow.after), [] { return false; });
  if (stop.stop_requested()) return;
  slow.say(
      fmt::format("the GPUs have not answered for {:.0f} s: look at their driver with 'atoll check'; the processor "
                  "computes with: atoll config set island.device processor, then atoll join",
                  std::chrono::duration<double>(slow.after).count()));
}

GpuLook watched_look(Gpus& gpus, const SlowGpus& slow) {
  const std::jthread watch([&slow](const std::stop_token& stop) { say_when_slow(slow, stop); });
  return gpus.look();
}

// Two processes may have seen the same free memory, and one of them was first. What is lost of it is little where it is
// the code that this process has loaded since.
Status make_on(GpuLook& look, Gpus& gpus, const std::function<Status(std::span<const UsableGpu>)>& make,
               const SlowGpus& slow) {
  const Status made = make(look.usable);
  if (made.ok()) return made;
  GpuLook now = watched_look(gpus, slow);
  if (now.usable.empty() || free_on(now) >= free_on(look) / 10 * 9) return made;
  spdlog::info("gpus lost free_bytes={} trying_again_after=\"{}\"", free_on(look) - free_on(now), made.error().message);
  look = std::move(now);
  return make(look.usable);
}

}  // namespace

Result<DeviceOutcome> choose_device(DeviceChoice choice, Gpus& gpus,
                                    const std::function<Status(std::span<const UsableGpu>)>& make, SlowGpus slow) {
  DeviceOutcome outcome;
  if (choice == DeviceChoice::kProcessor) return outcome;
  GpuLook look = watched_look(gpus, slow);
  Status made = look.usable.empty() ? Status(Error{ErrorCode::kNotFound, look.why}) : make_on(look, gpus, make, slow);
  const bool there = look.amiss || !look.usable.empty();
  if (made.ok()) {
    outcome.on_gpus = true;
    spdlog::info("computes on gpus={} first=\"{}\"{}", look.usable.size(), look.usable.front().name,
                 look.why.empty() ? "" : fmt::format(" idle=\"{}\"", look.why));
    if (look.amiss) outcome.trouble = "some GPUs are left idle: " + look.why;
    return outcome;
  }
  if (choice == DeviceChoice::kGpu) {
    return Error{made.error().code,
                 fmt::format("GPUs were asked for, and they cannot compute: {} (with --device auto, or island.device "
                             "auto, the processor would)",
                             made.error().message)};
  }
  spdlog::info("computes on=processor gpus=\"{}\"", made.error().message);
  if (there) outcome.trouble = "the GPUs are left idle, and the processor computes: " + made.error().message;
  return outcome;
}

}  // namespace atl
