// A device whose streams are queues: what is enqueued is done only when the host waits for it, in a random order that
// obeys nothing but the order within each stream, the events and the joins. A program that lacks a wait gives other
// results in some of these orders: an operation spoils (fills with NaN) what it is about to overwrite, and what it is
// the last to touch before that is overwritten. It computes on a CpuDevice, and meets other ranks in its collectives.
// Owned and used by the rank's thread.
//
// Ranks meet while each waits for its own device: one that enqueues a collective and never waits keeps the others
// waiting. Marks and results, after which a rank may come back before the others do, are run up to and no further.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "net/step/hazards.h"
#include "trainer/device/cpu_device.h"
#include "trainer/device/device_group.h"
#include "trainer/fsdp/shared_memory_communicator.h"

namespace atl::test {

class StreamDevice final : public Device {
 public:
  // The communicator outlives it.
  StreamDevice(Communicator& communicator, std::uint64_t seed);

  void take_arena(Arena arena, std::int64_t bytes) override;
  void make_events(int count) override;
  void run(StreamId stream, const Operation& operation) override;
  void record(StreamId stream, int event) override;
  void wait(StreamId stream, int event) override;
  void join() override;
  void synchronize() override { run_until(enqueued_); }
  void mark() override { marks_.push_back(position(StreamId::kCompute)); }
  void await_mark() override;
  void upload(const Tensor& to, std::span<const std::byte> from) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void send_result(int slot, std::span<const Tensor> from) override;
  void await_result(int slot, std::span<std::byte> to) override;
  void reset() noexcept override;
  void abort(const std::string& reason) noexcept override { device_.abort(reason); }

 private:
  // How many tasks of each stream, counted from the first one ever.
  using Position = std::array<std::int64_t, kStreams>;

  struct Task {
    StreamId stream = StreamId::kCompute;
    Position after{};                         // not begun before so many are done
    std::optional<Operation> operation = {};  // or else an upload
    Tensor upload_to = {};
    std::vector<std::byte> uploaded = {};
    std::optional<int> sent_to = {};  // or else a step's result
    std::vector<Tensor> sent = {};
    std::vector<ArenaRange> fresh = {};  // spoilt before it
    std::vector<ArenaRange> dying = {};  // spoilt after it
    bool done = false;
  };

  void enqueue(StreamId stream, Task task);
  Position position(StreamId stream) const;       // where all that was enqueued on the stream is done
  enum class Eager : std::uint8_t { kNo, kYes };  // also what comes behind the position, if it may be done now
  void run_until(const Position& position, Eager eager = Eager::kYes);
  bool ready(std::size_t stream) const;
  void do_next(std::size_t stream);
  void find_what_to_spoil();
  void spoil(const ArenaRange& range);

  CpuDevice device_;
  std::mt19937_64 random_;
  std::deque<std::shared_ptr<Task>> tasks_;  // not done, as they were enqueued
  std::array<std::deque<std::shared_ptr<Task>>, kStreams> streams_;
  Position enqueued_{}, done_{};
  std::array<Position, kStreams> held_back_{};  // what a stream's next task comes after
  std::vector<Position> events_;
  std::vector<Position> marks_;
  std::array<Position, kResultSlots> sent_{};  // where each slot's result is there
};

struct StreamDevices {
  int ranks = 1;
  std::uint64_t seed = 0;  // of the orders
  bool reduce_scatter_scratch = false;
};

// Local ranks with such devices, and the traits of one that computes beside its collectives.
class StreamDeviceGroup final : public DeviceGroup {
 public:
  explicit StreamDeviceGroup(const StreamDevices& devices);

  static StepTraits traits_of(const StreamDevices& devices);

  int world_size() const override { return group_.world_size(); }
  StepTraits traits() const override { return traits_of(devices_); }
  std::unique_ptr<Device> device(LocalRank rank) override;
  void abort(const std::string& reason) noexcept override { communicators_.front()->abort(reason); }
  bool reset() override;

 private:
  const StreamDevices devices_;
  SharedMemoryGroup group_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace atl::test
