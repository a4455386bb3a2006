#include "tests/fakes/stream_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>

#include "net/step/operands.h"
#include "trainer/device/cpu_library.h"

namespace atl::test {
namespace {

constexpr int kSpoilt = 0xff;  // all ones are NaN in every floating-point type

std::size_t index_of(StreamId stream) { return static_cast<std::size_t>(stream); }
std::size_t index_of(Arena arena) { return static_cast<std::size_t>(arena); }

ArenaRange range_of(const Tensor& tensor) { return {tensor.arena, tensor.byte, tensor.byte + tensor.extent_bytes()}; }

// For each byte of an arena, which task was the last to touch it.
class LastTouches {
 public:
  struct Touch {
    std::int64_t end = 0;
    std::ptrdiff_t task = -1;           // -1: none
    std::array<bool, kStreams> read{};  // by which streams, since it was written
  };

  // visit(ArenaRange, Touch&) for all of the range, in pieces of one history.
  template <class Visit>
  void visit(const ArenaRange& range, Visit&& visit) {
    if (range.begin >= range.end) return;
    auto& pieces = arenas_[index_of(range.arena)];
    split(pieces, range.begin);
    split(pieces, range.end);
    for (auto it = pieces.find(range.begin); it != pieces.end() && it->first < range.end; ++it) {
      visit(ArenaRange{range.arena, it->first, it->second.end}, it->second);
    }
  }

 private:
  using Pieces = std::map<std::int64_t, Touch>;

  static void split(Pieces& pieces, std::int64_t at) {
    constexpr std::int64_t kEnd = std::int64_t{1} << 62;
    if (pieces.empty()) pieces.emplace(0, Touch{.end = kEnd});
    const auto it = std::prev(pieces.upper_bound(at));
    if (it->first == at) return;
    const Touch behind = it->second;
    it->second.end = at;
    pieces.emplace(at, behind);
  }

  std::array<Pieces, kArenas> arenas_;
};

}  // namespace

StreamDevice::StreamDevice(Communicator& communicator, std::uint64_t seed) : device_(communicator, 1), random_(seed) {}

void StreamDevice::take_arena(Arena arena, std::int64_t bytes) {
  if (!tasks_.empty()) throw std::logic_error("an arena is taken while something is under way");
  device_.take_arena(arena, bytes);
  if (arena == Arena::kStep) spoil({arena, 0, bytes});
}

void StreamDevice::make_events(int count) {
  if (!tasks_.empty()) throw std::logic_error("events are made while something is under way");
  events_.resize(std::max(events_.size(), static_cast<std::size_t>(count)));
}

void StreamDevice::run(StreamId stream, const Operation& operation) { enqueue(stream, {.operation = operation}); }

void StreamDevice::upload(const Tensor& to, std::span<const std::byte> from) {
  enqueue(StreamId::kCompute, {.upload_to = to, .uploaded = {from.begin(), from.end()}});
}

void StreamDevice::download(const Tensor& from, std::span<std::byte> to) {
  run_until(position(StreamId::kCompute));
  device_.download(from, to);
}

void StreamDevice::send_result(int slot, std::span<const Tensor> from) {
  enqueue(StreamId::kCompute, {.sent_to = slot, .sent = {from.begin(), from.end()}});
  sent_.at(static_cast<std::size_t>(slot)) = position(StreamId::kCompute);
}

void StreamDevice::await_result(int slot, std::span<std::byte> to) {
  run_until(sent_.at(static_cast<std::size_t>(slot)), Eager::kNo);
  device_.await_result(slot, to);
}

void StreamDevice::enqueue(StreamId stream, Task task) {
  const std::size_t s = index_of(stream);
  task.stream = stream;
  task.after = held_back_[s];
  tasks_.push_back(std::make_shared<Task>(std::move(task)));
  streams_[s].push_back(tasks_.back());
  ++enqueued_[s];
}

StreamDevice::Position StreamDevice::position(StreamId stream) const {
  Position position = held_back_[index_of(stream)];
  position[index_of(stream)] = enqueued_[index_of(stream)];
  return position;
}

void StreamDevice::record(StreamId stream, int event) {
  events_.at(static_cast<std::size_t>(event)) = position(stream);
}

void StreamDevice::wait(StreamId stream, int event) {
  Position& mine = held_back_[index_of(stream)];
  const Position& recorded = events_.at(static_cast<std::size_t>(event));
  for (std::size_t s = 0; s < kStreams; ++s) mine[s] = std::max(mine[s], recorded[s]);
}

void StreamDevice::join() { held_back_.fill(enqueued_); }

void StreamDevice::await_mark() {
  if (marks_.size() > 1) run_until(marks_[marks_.size() - 2], Eager::kNo);
}

void StreamDevice::reset() noexcept {
  tasks_.clear();
  for (auto& stream : streams_) stream.clear();
  done_ = enqueued_;
  marks_.clear();
}

bool StreamDevice::ready(std::size_t stream) const {
  if (streams_[stream].empty()) return false;
  const Position& after = streams_[stream].front()->after;
  return std::ranges::equal(done_, after, std::ranges::greater_equal{});
}

// How eager the streams are beside each other is drawn anew each time: mixed, or one as far ahead as it may be.
void StreamDevice::run_until(const Position& position, Eager eager) {
  find_what_to_spoil();
  constexpr std::array kOften{0.0, 0.1, 0.5, 0.9, 1.0};
  std::bernoulli_distribution first(kOften[random_() % kOften.size()]);
  while (!std::ranges::equal(done_, position, std::ranges::greater_equal{})) {
    const std::size_t preferred = first(random_) ? 0 : 1;
    const auto may = [&](std::size_t stream) {
      return ready(stream) && (eager == Eager::kYes || done_[stream] < position[stream]);
    };
    if (may(preferred)) {
      do_next(preferred);
    } else if (may(1 - preferred)) {
      do_next(1 - preferred);
    } else {
      throw std::logic_error("the streams wait for each other");
    }
  }
  std::erase_if(tasks_, [](const std::shared_ptr<Task>& task) { return task->done; });
}

void StreamDevice::do_next(std::size_t stream) {
  const std::shared_ptr<Task> task = streams_[stream].front();
  streams_[stream].pop_front();
  for (const ArenaRange& range : task->fresh) spoil(range);
  if (task->operation) {
    device_.run(task->stream, *task->operation);
  } else if (task->sent_to) {
    device_.send_result(*task->sent_to, task->sent);
  } else {
    device_.upload(task->upload_to, task->uploaded);
  }
  for (const ArenaRange& range : task->dying) spoil(range);
  task->done = true;
  ++done_[stream];
}

// Of the tasks that are queued. What is written may be spoilt before, unless the same task reads it; and after whoever
// touches it last before that, who is waited for: unless another stream reads it as well, whose end that one does not
// know.
void StreamDevice::find_what_to_spoil() {
  LastTouches touches;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = *tasks_[i];
    task.fresh.clear();
    task.dying.clear();
    const auto me = static_cast<std::ptrdiff_t>(i);
    const auto touch = [&](const Tensor& tensor, Access access) {
      touches.visit(range_of(tensor), [&](const ArenaRange& piece, LastTouches::Touch& last) {
        if (access == Access::kWrite && last.task != me) {
          task.fresh.push_back(piece);
          const bool alone = std::ranges::count(last.read, true) <= 1;
          if (last.task >= 0 && alone) tasks_[static_cast<std::size_t>(last.task)]->dying.push_back(piece);
        }
        last.task = me;
        if (access == Access::kRead) {
          last.read[index_of(task.stream)] = true;
        } else {
          last.read.fill(false);
        }
      });
    };
    for (const Tensor& tensor : task.sent) touch(tensor, Access::kRead);
    if (task.sent_to) continue;
    if (!task.operation) {
      touch(task.upload_to, Access::kWrite);
      continue;
    }
    for (const bool writes : {false, true}) {
      for_each_operand(*task.operation, [&](const Tensor& tensor, Access access) {
        if ((access == Access::kWrite) == writes) touch(tensor, access);
      });
    }
  }
}

void StreamDevice::spoil(const ArenaRange& range) {
  if (range.begin >= range.end) return;
  const Tensor first{.arena = range.arena, .byte = range.begin};
  std::memset(device_.at(first), kSpoilt, static_cast<std::size_t>(range.end - range.begin));
}

// --- The group ---

StreamDeviceGroup::StreamDeviceGroup(const StreamDevices& devices)
    : devices_(devices), group_(devices.ranks, std::chrono::minutes(5)) {
  for (int rank = 0; rank < devices.ranks; ++rank) communicators_.push_back(group_.communicator(LocalRank{rank}));
}

StepTraits StreamDeviceGroup::traits_of(const StreamDevices& devices) {
  StepTraits traits = cpu_step_traits(1);
  traits.overlaps = true;
  traits.reduce_scatter_scratch = devices.reduce_scatter_scratch;
  return traits;
}

std::unique_ptr<Device> StreamDeviceGroup::device(LocalRank rank) {
  set_cpu_threads(1);
  const auto r = static_cast<std::size_t>(rank.value);
  return std::make_unique<StreamDevice>(*communicators_[r], 1000 * devices_.seed + r);
}

bool StreamDeviceGroup::reset() {
  group_.reset();
  return true;
}

}  // namespace atl::test
