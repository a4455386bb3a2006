// What a fault in mid-attempt costs, between real programs over an emulated internet: the time from the fault to the
// commit of the round by everybody else, beside the limit that the design sets: the time that the fault takes to be
// known (none for a death, the dead-after time for silence), 1 s, and the time that the whole payload takes around the
// survivors at the links' rate, which is the most that can be left to average.
//
//   ring_faults                     every kind of fault, five times each
//   ring_faults --random 100        random faults in a row, and what hub and islands hold before and after
//
// Needs root and /dev/net/tun.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>

#include "kernels/wire_format.h"
#include "net/transport/socket.h"
#include "tests/wan/wan_run.h"

namespace atl::wan {
namespace {

using std::chrono::milliseconds;

struct Options {
  double rate_mbit = 10;
  int delay_ms = 10;
  int dead_after_ms = 6'000;
  int repeat = 5;
  int random = 0;
  unsigned seed = 1;
  std::vector<std::string> only;
};

constexpr milliseconds kLimit{120'000};  // what takes longer hangs

void wait(milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

struct Scenario {
  std::string name;
  bool silent = false;  // known only by what is not heard
  int survivors = 3;
  std::function<void(WanRun&, int island)> fault;
  std::function<void(WanRun&, int island)> mend;
  milliseconds outage{0};  // that heals by itself; TCP may wait as long again before it tries
};

constexpr milliseconds kShortOutage{1'000};  // less than what counts as silence

std::vector<Scenario> scenarios() {
  // Mended by the same pair that was cut.
  static std::pair<int, int> edge;
  const auto host = [](int island) { return WanRun::host_of_island(island); };
  return {
      {"killed", false, 3, [](WanRun& run, int island) { run.kill(island); },
       [](WanRun& run, int island) { run.start(island); }},
      {"stopped", true, 3, [](WanRun& run, int island) { run.stop(island); },
       [](WanRun& run, int island) { run.resume(island); }},
      {"black-holed", true, 3, [](WanRun& run, int island) { run.cut_off(island); },
       [](WanRun& run, int island) { run.reconnect(island); }},
      {"edge cut", true, 4,
       [host](WanRun& run, int) {
         edge = run.busiest_edge();
         run.box().cut(host(edge.first), host(edge.second));
       },
       [host](WanRun& run, int) { run.box().restore(host(edge.first), host(edge.second)); }},
      {"edge cut one way", true, 4,
       [host](WanRun& run, int) {
         edge = run.busiest_edge();
         run.box().change_path(host(edge.first), host(edge.second), [](WanPath& path) { path.cut = true; });
       },
       [host](WanRun& run, int) { run.box().restore(host(edge.first), host(edge.second)); }},
      {"short outage", false, 4,
       [host](WanRun& run, int) {
         edge = run.busiest_edge();
         run.box().cut(host(edge.first), host(edge.second));
         wait(kShortOutage);
         run.box().restore(host(edge.first), host(edge.second));
       },
       [](WanRun&, int) {}, kShortOutage},
  };
}

double limit_seconds(const Options& options, const WanRun& run, const Scenario& scenario) {
  const double n = scenario.survivors;
  const auto bytes = static_cast<double>(encoded_bytes(WireFormat::kInt8Block, run.numel()));
  const double known = scenario.silent ? options.dead_after_ms / 1e3 : 2 * Seconds(scenario.outage).count();
  return known + 1 + 2 * (n - 1) / n * bytes * 8 / (options.rate_mbit * 1e6);
}

// From the fault to the commit; empty: not within kLimit. Then everything is mended and waited for.
std::optional<double> time_of(const Scenario& scenario, WanRun& run, int island, milliseconds into_the_attempt) {
  const auto round = run.wait_for_ring(kLimit);
  if (!round) return std::nullopt;
  (void)run.busiest_edge();
  wait(into_the_attempt);
  const auto begin = Clock::now();
  scenario.fault(run, island);
  const bool committed = run.wait_until([&](const HubState& state) { return state.outer_step > *round; }, kLimit);
  const Seconds took = Clock::now() - begin;
  const auto record = run.wait_for_commit(*round, kLimit);
  scenario.mend(run, island);
  if (!committed || !record || record->outer_hashes_equal != true) return std::nullopt;
  fmt::print("  {:.2f} s, {} members, {} attempts", took.count(), record->members, record->attempts);
  if (static_cast<int>(record->members) != scenario.survivors) fmt::print(" (expected {} members)", scenario.survivors);
  fmt::print("\n");
  return took.count();
}

int measure(const Options& options, WanRun& run) {
  for (const Scenario& scenario : scenarios()) {
    if (!options.only.empty() && std::ranges::count(options.only, scenario.name) == 0) continue;
    const double limit = limit_seconds(options, run, scenario);
    fmt::print("{}: limit {:.2f} s\n", scenario.name, limit);
    std::vector<double> times;
    for (int i = 0; i < options.repeat; ++i) {
      const auto took = time_of(scenario, run, i % run.islands(), milliseconds(200 + 200 * i));
      if (!took) return fmt::print("  not committed with equal hashes in {} s\n", kLimit.count() / 1000), 1;
      times.push_back(*took);
      if (!run.wait_for_all(kLimit)) return fmt::print("  the island did not come back\n"), 1;
    }
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    fmt::print("{}: median {:.2f} s, worst {:.2f} s, {:.2f} x the limit\n", scenario.name, median, times.back(),
               median / limit);
    std::fflush(stdout);
  }
  return 0;
}

// ---- random faults

class RandomFaults {
 public:
  RandomFaults(WanRun& run, const Options& options)
      : run_(run), random_(options.seed), longest_ms_(options.dead_after_ms * 4 / 3) {}

  // Breaks something for a while, sometimes for longer than what is silent stays alive, and mends it; its name. Island
  // 0 is never killed, so that what it holds at the end has seen all faults.
  std::string one() {
    const int island = below(run_.islands());
    const int other = (island + 1 + below(run_.islands() - 1)) % run_.islands();
    const milliseconds time(200 + below(longest_ms_));
    const int host = WanRun::host_of_island(island);
    switch (island == 0 ? 1 + below(4) : below(5)) {
      case 0:
        run_.kill(island);
        wait(milliseconds(below(2'000)));
        run_.start(island);
        return fmt::format("island {} killed", island);
      case 1:
        run_.stop(island);
        wait(time);
        run_.resume(island);
        return fmt::format("island {} stopped for {} ms", island, time.count());
      case 2:
        run_.cut_off(island);
        wait(time);
        run_.reconnect(island);
        return fmt::format("island {} black-holed for {} ms", island, time.count());
      case 3:
        run_.box().cut(host, WanRun::host_of_island(other));
        wait(time);
        run_.box().restore(host, WanRun::host_of_island(other));
        return fmt::format("edge {}-{} cut for {} ms", island, other, time.count());
      default: say_garbage(island); return fmt::format("garbage to island {}", island);
    }
  }
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

 private:
  void say_garbage(int island) {
    const InsideHost inside(run_.box().host(0));
    const Address address{run_.box().address(WanRun::host_of_island(island)), WanRun::kIslandPort};
    auto socket = connect_tcp(address, Deadline::after(milliseconds(2'000)), nullptr, "garbage");
    if (!socket.ok()) return;
    std::vector<char> garbage(1 + static_cast<std::size_t>(below(4'000)));
    for (char& byte : garbage) byte = static_cast<char>(random_());
    (void)::send(socket->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    wait(milliseconds(below(1'000)));
  }

  WanRun& run_;
  std::mt19937 random_;
  int longest_ms_;
};

void print_holdings(const WanRun& run, const std::string& when) {
  const auto line = [&](const std::string& who, const Holdings& held) {
    fmt::print("  {} {}: {} fds, {} threads, {:.1f} MiB, {:.1f} of them its own\n", when, who, held.fds, held.threads,
               static_cast<double>(held.resident_kib) / 1024, static_cast<double>(held.anonymous_kib) / 1024);
  };
  line("hub", run.hub_holdings());
  for (int island = 0; island < run.islands(); ++island) line(fmt::format("island {}", island), run.holdings(island));
  std::fflush(stdout);
}

int break_at_random(const Options& options, WanRun& run) {
  RandomFaults faults(run, options);
  int committed = 0;
  int equal = 0;
  for (int i = 0; i < options.random; ++i) {
    if (i % 20 == 0) print_holdings(run, i == 0 ? "before" : fmt::format("after {}", i));
    const auto round = run.wait_for_ring(kLimit);
    if (!round) return fmt::print("no round came\n"), 1;
    wait(milliseconds(faults.below(1'500)));
    const auto begin = Clock::now();
    const std::string what = faults.one();
    const auto record = run.wait_for_commit(*round, kLimit);
    const Seconds took = Clock::now() - begin;
    committed += record ? 1 : 0;
    equal += record && record->outer_hashes_equal == true ? 1 : 0;
    fmt::print("{:3}  {:36}  round {} {}", i + 1, what, *round, record ? "committed" : "NOT COMMITTED");
    if (record) fmt::print(" by {} in attempt {}, {:.1f} s", record->members, record->attempts, took.count());
    const bool back = run.wait_for_all(kLimit);
    fmt::print("{}\n", back ? "" : "; NOT ALL CAME BACK");
    std::fflush(stdout);
    if (!record || !back) break;
  }
  print_holdings(run, "after");
  fmt::print("{} faults: {} rounds committed, {} with equal hashes\n", options.random, committed, equal);
  return equal == options.random ? 0 : 1;
}

int run_bench(const Options& options) {
  if (const auto reason = WanBox::unavailable()) return fmt::print(stderr, "ring_faults: {}\n", *reason), 1;
  WanRun run({.bits_per_second = options.rate_mbit * 1e6,
              .delay = milliseconds(options.delay_ms),
              .dead_after = milliseconds(options.dead_after_ms)});
  fmt::print("{} islands, {} Mbit/s and {} ms each way between every two, {} values, dead after {} ms; logs in {}\n",
             run.islands(), options.rate_mbit, options.delay_ms, run.numel(), options.dead_after_ms,
             run.directory().string());
  std::fflush(stdout);
  if (!run.wait_until([](const HubState& state) { return state.outer_step >= 2; }, kLimit)) {
    return fmt::print(stderr, "ring_faults: no round was committed\n"), 1;
  }
  return options.random > 0 ? break_at_random(options, run) : measure(options, run);
}

}  // namespace
}  // namespace atl::wan

int main(int argc, char** argv) {
  atl::wan::Options options;
  CLI::App app("What faults in mid-attempt cost");
  app.add_option("--rate", options.rate_mbit, "Mbit/s between every two islands, each way");
  app.add_option("--delay", options.delay_ms, "ms each way");
  app.add_option("--dead-after", options.dead_after_ms, "ms");
  app.add_option("--repeat", options.repeat, "of each fault");
  app.add_option("--only", options.only,
                 "these faults: killed, stopped, black-holed, 'edge cut', 'edge cut one way', 'short outage'");
  app.add_option("--random", options.random, "so many random faults in a row instead");
  app.add_option("--seed", options.seed, "of the random faults");
  CLI11_PARSE(app, argc, argv);
  return atl::wan::run_bench(options);
}
