// Where one local rank computes: two arenas of memory, streams of operations (net/step/operation.h), events between
// them, and the collectives with the other ranks. The seam between the step's programs, which are the same everywhere,
// and what runs them: this processor (cpu_device.h) or a GPU (cuda_device.h). Owned and used by the rank's thread
// alone, but for abort(). Everything may throw std::runtime_error with what was attempted and why it failed;
// CollectiveAborted (trainer/fsdp/communicator.h) where it was another rank that failed.
//
// What is enqueued on one stream happens in that order. Between streams only events order anything: wait(s, e) holds
// back what is enqueued on s later until what was enqueued before the last record(_, e) is done; an event that was
// never recorded holds back nothing. A device may do everything at once when it is enqueued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/step/operation.h"
#include "net/step/program.h"
#include "net/step/step_part.h"

namespace atl {

// Of steps that are enqueued, and whose results are not read.
inline constexpr int kResultSlots = 2;
inline constexpr std::size_t kMostResultBytes = 64;

class Device {
 public:
  virtual ~Device() = default;

  // Before anything that touches it; the step arena again where a program needs more, while nothing is under way: what
  // it held is gone. The kept one is zeroed. Throws when there is not so much memory.
  virtual void take_arena(Arena arena, std::int64_t bytes) = 0;
  // At least so many, while nothing is under way.
  virtual void make_events(int count) = 0;

  virtual void run(StreamId stream, const Operation& operation) = 0;
  virtual void record(StreamId stream, int event) = 0;
  virtual void wait(StreamId stream, int event) = 0;
  // Every stream goes on when all have come to here.
  virtual void join() = 0;
  // Until everything enqueued is done.
  virtual void synchronize() = 0;
  // A mark after what is enqueued on the compute stream; await_mark() waits until the mark before the last is passed,
  // so that the host runs one mark ahead.
  virtual void mark() = 0;
  virtual void await_mark() = 0;

  // In the order of the compute stream. Contiguous tensors. `from` may be changed when upload() returns; download()
  // waits.
  virtual void upload(const Tensor& to, std::span<const std::byte> from) = 0;
  virtual void download(const Tensor& from, std::span<std::byte> to) = 0;

  // What a step leaves goes to one of kResultSlots places of the host's, in the order of the compute stream, and is not
  // waited for: the host reads it when it has enqueued the next step. Contiguous tensors, end to end, kMostResultBytes
  // together at most.
  virtual void send_result(int slot, std::span<const Tensor> from) = 0;
  // Waits until what was sent to the slot last is there. It stays there, also after a reset().
  virtual void await_result(int slot, std::span<std::byte> to) = 0;

  // From here to send_result(slot): how long the operations of each part of a step take. Costs nothing where it is not
  // asked.
  virtual void measure_seconds(int) {}
  // Of what was enqueued between, after await_result(slot); of collectives what computing waited for. Nothing: it was
  // not asked, or this device cannot tell, this time or ever.
  virtual std::optional<StepSeconds> take_seconds(int) { return std::nullopt; }

  // Nothing is under way, and no step comes for a while: the step arena keeps its place but need not hold memory. May
  // do nothing.
  virtual void rest() {}
  // After a failure: what is enqueued and not begun is dropped, and what runs is waited for.
  virtual void reset() noexcept = 0;
  // From any thread: collectives under way, and later ones, throw CollectiveAborted with the reason.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace atl
