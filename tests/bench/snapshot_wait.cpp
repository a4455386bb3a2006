// How long training and outer steps wait while a snapshot of the outer state is written (trainer/island/
// snapshot_keeper.h): on this machine's disk, and on one that takes so long for each chunk. A thread that trains says
// every millisecond which state there is and asks the store for it; another takes outer steps on the whole model. What
// an outer step takes beside a snapshot is more than without by what it waits, and by the processor and memory that the
// two share. Of the thread that trains two times are told: its longest call, and the longest in which it gave the
// processor away, that is, waited; a busy machine takes the processor from it in any other. The snapshots are read
// through and verified before anything is printed. Rounds are not logged here.
//
//   snapshot_wait [--parameters 1e8] [--directory DIR] [--slow 100]   # milliseconds for each chunk of 16 MiB
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "kernels/wire_codec.h"
#include "net/base/deadline.h"
#include "net/base/parallel.h"
#include "net/disk/kept_states.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/snapshot_keeper.h"

namespace {

using namespace atl;

constexpr WireFormat kWire = WireFormat::kInt8Block;
constexpr std::size_t kPart = std::size_t{1} << 20;
constexpr double kMostWait = 0.05;  // s, of the thread that trains

struct Options {
  double parameters = 1e8;
  std::filesystem::path directory = std::filesystem::temp_directory_path();
  std::chrono::milliseconds slow{100};
};

// An island's disk that is slower than it is, and on which rounds count as logged.
class TimedDisk final : public SnapshotDisk {
 public:
  TimedDisk(IslandDisk& disk, std::chrono::milliseconds slower) : disk_(disk), slower_(slower) {}
  Status begin(std::uint64_t numel) override { return disk_.begin(numel); }
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) override {
    std::this_thread::sleep_for(slower_);
    return disk_.put(index, chunk, bytes);
  }
  Status flush() override { return disk_.flush(); }
  bool rounds_lead_to(OuterStep, const HeldState&) override { return true; }
  Status finish(const HeldState& state) override { return disk_.finish(state); }
  void give_up() override { disk_.give_up(); }
  bool has_snapshot_of(const HeldState&) const override { return false; }
  bool leads_to(const HeldState&) const override { return true; }
  bool asks_for_snapshot() const override { return true; }

 private:
  IslandDisk& disk_;
  const std::chrono::milliseconds slower_;
};

struct State {
  explicit State(std::int64_t numel)
      : outer(numel), ranges{{0, numel}}, canonical(static_cast<std::size_t>(encoded_bytes(kWire, numel))) {
    std::vector<float> values(static_cast<std::size_t>(numel));
    parallel_for((values.size() + kPart - 1) / kPart, [&](std::size_t part) {
      const std::size_t end = std::min(values.size(), (part + 1) * kPart);
      for (std::size_t i = part * kPart; i < end; ++i) values[i] = static_cast<float>(i % 1009) * 1e-3f;
    });
    encode_values(kWire, values, canonical);
    outer.initialise(std::move(values));
  }
  HeldState step() { return outer.apply(ranges, kWire, canonical, 0.7f, 0.9f); }

  OuterStateStore outer;
  const std::vector<ParameterRange> ranges;
  Bytes canonical;
};

struct Figures {
  std::uint64_t steps = 0;
  double step_mean = 0, step_longest = 0;
  double training_longest = 0, training_waited = 0;
  double seconds = 0;  // of the snapshot
};

// How often this thread gave the processor away.
long waits() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

double seconds_of(auto work) {
  const auto began = Clock::now();
  work();
  return Seconds(Clock::now() - began).count();
}

// Outer steps half of the time until `ended`, three at least; and a thread that trains beside them.
Figures measure(State& state, SnapshotKeeper* keeper, const std::atomic<bool>& ended) {
  Figures figures;
  std::atomic<bool> over{false};
  std::jthread training([&] {
    while (!over) {
      const long before = waits();
      const double took = seconds_of([&] {
        const OuterStep now = state.outer.current_version();
        if (keeper != nullptr) keeper->state_is({now, {}});
      });
      figures.training_longest = std::max(figures.training_longest, took);
      if (waits() != before) figures.training_waited = std::max(figures.training_waited, took);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  double sum = 0;
  while (figures.steps < 3 || !ended) {
    const double took = seconds_of([&] { (void)state.step(); });
    sum += took;
    figures.step_longest = std::max(figures.step_longest, took);
    ++figures.steps;
    std::this_thread::sleep_for(Seconds(took));
  }
  figures.step_mean = sum / static_cast<double>(figures.steps);
  over = true;
  training.join();
  return figures;
}

Figures with_snapshot(State& state, IslandDisk& disk, std::chrono::milliseconds slower) {
  TimedDisk timed(disk, slower);
  std::atomic<bool> ended{false};
  const auto began = Clock::now();
  Clock::time_point end;
  SnapshotKeeper keeper(timed, state.outer, [&](const Status& written) {
    if (!written.ok()) {
      fmt::print(stderr, "{}\n", written.error().message);
      std::exit(1);
    }
    if (!ended) end = Clock::now();
    ended = true;
  });
  Figures figures = measure(state, &keeper, ended);
  figures.seconds = Seconds(end - began).count();
  (void)keeper.finish();
  return figures;
}

void print(const char* what, const Figures& figures, double bytes) {
  fmt::print("{:<22} {:>6} {:>11.3f} {:>13.3f} {:>10.2f} {:>10.2f}", what, figures.steps, figures.step_mean,
             figures.step_longest, figures.training_longest * 1e3, figures.training_waited * 1e3);
  if (figures.seconds > 0) fmt::print(" {:>10.1f} s {:>6.2f} GB/s", figures.seconds, bytes / figures.seconds / 1e9);
  fmt::print("\n");
}

int run(const Options& options) {
  const auto numel = static_cast<std::int64_t>(options.parameters);
  const auto directory = options.directory / "snapshot_wait";
  State state(numel);
  IslandDisk disk(directory);
  disk.of_run({}, 1, {.keep = 1, .rounds = {}});
  const double bytes = 8.0 * static_cast<double>(numel);
  const std::atomic<bool> at_once{true};
  const Figures alone = measure(state, nullptr, at_once);
  const Figures fast = with_snapshot(state, disk, std::chrono::milliseconds(0));
  const Figures slow = with_snapshot(state, disk, options.slow);
  const std::vector<KeptState> kept = kept_states(directory);
  const bool is_whole = kept.size() == 1 && verify_snapshot(kept[0].path).ok();
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  if (!is_whole) {
    fmt::print(stderr, "the snapshot is not whole\n");
    return 1;
  }
  fmt::print("{:.2g} parameters, {:.1f} GB of state in {}, verified\n{:<22} {:>6} {:>11} {:>13} {:>10} {:>10} {:>12}\n",
             options.parameters, bytes / 1e9, directory.parent_path().string(), "", "steps", "mean s", "longest s",
             "call ms", "waited ms", "snapshot");
  print("no snapshot", alone, bytes);
  print("this disk", fast, bytes);
  print(fmt::format("{} ms more a chunk", options.slow.count()).c_str(), slow, bytes);
  const double most = std::max(fast.training_waited, slow.training_waited);
  fmt::print("the thread that trains waited {:.2f} ms at most, of {:.0f} ms\n", most * 1e3, kMostWait * 1e3);
  return most <= kMostWait ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--parameters") options.parameters = std::atof(argv[i + 1]);
    if (name == "--directory") options.directory = argv[i + 1];
    if (name == "--slow") options.slow = std::chrono::milliseconds(std::atoi(argv[i + 1]));
  }
  if (options.parameters < 1) {
    fmt::print(stderr, "snapshot_wait [--parameters 1e8] [--directory DIR] [--slow 100]\n");
    return 2;
  }
  return run(options);
}
