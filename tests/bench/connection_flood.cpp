// A thousand connections from one address at every port of a run, none of which ever shakes hands, each replaced as
// soon as it is dropped: how long do rounds take, while islands leave, join and recover all the time? The run is real
// (hub in this process, islands as processes) and goes on for a while without the flood first, islands coming and going
// alike. Ends with 1 when rounds take more than a fifth longer during the flood, or a joiner does not get in.
//
// Half of the connections say nothing, the others the beginning of a TLS handshake.
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <QtCore/QCoreApplication>
#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "net/base/open_files.h"
#include "net/transport/socket.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr double kMostSlower = 1.2;
constexpr std::chrono::milliseconds kLook{50};  // at all connections of a port
constexpr std::chrono::seconds kJoinLimit{120};
constexpr char kBeginning[] = {0x16, 0x03, 0x01};

struct Options {
  double baseline_minutes = 2, minutes = 10;
  std::size_t connections = 1000;
  double rate = 500;
  int islands = 3;
  std::uint32_t inner_steps = 30;
};

// Keeps so many connections open to one port.
class Flood {
 public:
  Flood(Address target, std::size_t connections, double rate)
      : target_(std::move(target)), connections_(connections), a_look_(std::max(1.0, rate * Seconds(kLook).count())) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  std::uint64_t opened() const { return opened_; }
  std::size_t most_open() const { return most_open_; }
  // What the flood itself took: on one machine it takes that from hub and islands.
  Seconds processor_time() const { return Seconds(processor_seconds_.load()); }

 private:
  void run(const std::stop_token& stop) {
    std::vector<UniqueFd> open;
    std::vector<pollfd> polls;
    while (!stop.stop_requested()) {
      polls.clear();
      for (const UniqueFd& fd : open) polls.push_back({fd.get(), POLLIN, 0});
      (void)::poll(polls.data(), polls.size(), 0);
      std::size_t i = 0;
      std::erase_if(open, [&](const UniqueFd&) { return polls[i++].revents != 0; });  // nobody says anything to it
      const auto wanted = std::min(connections_ - open.size(), static_cast<std::size_t>(a_look_));
      for (std::size_t k = 0; k < wanted && !stop.stop_requested(); ++k) dial(open);
      most_open_ = std::max<std::size_t>(most_open_, open.size());
      processor_seconds_ = used_by_this_thread();
      std::this_thread::sleep_for(kLook);
    }
  }
  static double used_by_this_thread() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
  void dial(std::vector<UniqueFd>& open) {
    auto socket = connect_tcp(target_, Deadline::after(std::chrono::seconds(1)), nullptr, "flood");
    if (!socket.ok()) return;
    if (++opened_ % 2 == 0) (void)::send(socket->get(), kBeginning, sizeof kBeginning, MSG_NOSIGNAL);
    open.push_back(std::move(*socket));
  }

  const Address target_;
  const std::size_t connections_;
  const double a_look_;
  std::atomic<std::uint64_t> opened_{0};
  std::atomic<std::size_t> most_open_{0};
  std::atomic<double> processor_seconds_{0};
  std::jthread thread_;
};

struct Phase {
  std::map<std::uint32_t, HubState::Round> rounds;
  int joined = 0, lost = 0;  // newcomers that trained in time, and that did not
};

class Scenario {
 public:
  explicit Scenario(const Options& options) : options_(options), run_(config(options)) {
    for (int i = 0; i < options.islands; ++i) choose_port();
    for (const std::uint16_t port : ports_) islands_.push_back(run_.start_island(fmt::format("first {}", port), port));
    if (!run_.wait_until([&](const HubState& s) { return s.outer_step >= 2 && training(s) >= options.islands; },
                         kJoinLimit)) {
      qFatal("the run does not begin");
    }
  }

  std::vector<Address> ports() const {
    std::vector<Address> all{run_.hub_address()};
    for (const std::uint16_t port : ports_) all.push_back({"127.0.0.1", port});
    return all;
  }

  // Islands leave and come, one after the other, at the same ports.
  Phase go_on(double minutes) {
    Phase phase;
    const std::uint32_t first = run_.state().outer_step + 1;
    const Deadline end = Deadline::after(std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(minutes * 60)));
    for (std::size_t turn = 0; !end.expired(); ++turn) {
      watch(phase, first, 5, end);
      const std::size_t leaves = turn % islands_.size();
      turn % 2 == 0 ? islands_[leaves]->terminate() : islands_[leaves]->kill();
      islands_[leaves]->waitForFinished();
      watch(phase, first, 2, end);
      islands_[leaves] = run_.start_island(fmt::format("newcomer {}", ++started_), ports_[leaves]);
      const bool trains = run_.wait_until(
          [&](const HubState& s) {
            learn(phase, s, first);
            return training(s) >= options_.islands;
          },
          kJoinLimit);
      trains ? ++phase.joined : ++phase.lost;
    }
    return phase;
  }

 private:
  static RunConfig config(const Options& options) {
    RunConfig run = small_run(2);
    run.inner_steps = options.inner_steps;
    return run;
  }
  static std::ptrdiff_t training(const HubState& state) {
    return std::ranges::count_if(state.islands,
                                 [](const auto& island) { return island.state == HubIslandState::kTraining; });
  }
  static void learn(Phase& phase, const HubState& state, std::uint32_t first) {
    for (const HubState::Round& round : state.rounds) {
      if (round.round >= first) phase.rounds[round.round] = round;
    }
  }
  void watch(Phase& phase, std::uint32_t first, int rounds, Deadline end) {
    const std::uint32_t until = run_.state().outer_step + static_cast<std::uint32_t>(rounds);
    while (!end.expired() && run_.state().outer_step < until) {
      learn(phase, run_.state(), first);
      QThread::msleep(50);
    }
  }
  void choose_port() {
    const UniqueFd listener = require(listen_tcp({"127.0.0.1", 0}));
    ports_.push_back(local_port(listener.get()));
  }

  const Options options_;
  LocalRun run_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::unique_ptr<QProcess>> islands_;
  int started_ = 0;
};

double median_seconds(const Phase& phase) {
  std::vector<double> seconds;
  for (const auto& [number, round] : phase.rounds) seconds.push_back(round.seconds);
  if (seconds.empty()) return 0;
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

void print(const char* name, const Phase& phase) {
  std::uint32_t failed = 0;
  double all = 0;
  for (const auto& [number, round] : phase.rounds) {
    failed += round.attempts - 1;
    all += round.seconds;
  }
  const auto count = phase.rounds.size();
  fmt::print("{:<10} {:>5} rounds, median {:.3f} s, mean {:.3f} s, {} failed attempts, {} newcomers, {} not in time\n",
             name, count, median_seconds(phase), count == 0 ? 0 : all / static_cast<double>(count), failed,
             phase.joined, phase.lost);
  std::fflush(stdout);
}

int run(const Options& options) {
  Scenario scenario(options);
  const Phase before = scenario.go_on(options.baseline_minutes);
  print("before", before);
  std::vector<std::unique_ptr<Flood>> floods;
  for (const Address& port : scenario.ports()) {
    floods.push_back(std::make_unique<Flood>(port, options.connections, options.rate));
  }
  const Phase during = scenario.go_on(options.minutes);
  print("flooded", during);
  Seconds flood_time{0};
  for (std::size_t i = 0; i < floods.size(); ++i) {
    fmt::print("{}: {} connections opened, at most {} at once\n", to_string(scenario.ports()[i]), floods[i]->opened(),
               floods[i]->most_open());
    flood_time += floods[i]->processor_time();
  }
  fmt::print("the flood itself took {:.1f} % of a core, {} are shared with hub and islands\n",
             100 * flood_time.count() / (60 * options.minutes), std::thread::hardware_concurrency());
  const double ratio = median_seconds(during) / std::max(median_seconds(before), 1e-9);
  fmt::print("rounds take {:.2f} of what they took (at most {:.1f})\n", ratio, kMostSlower);
  return ratio > 0 && ratio <= kMostSlower && during.lost == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  raise_open_file_limit();
  spdlog::set_level(spdlog::level::warn);
  QCoreApplication application(argc, argv);
  Options options;
  CLI::App app("Rounds of a run whose ports are flooded with connections that never shake hands");
  app.add_option("--baseline-minutes", options.baseline_minutes, "without the flood")->capture_default_str();
  app.add_option("--minutes", options.minutes, "with it")->capture_default_str();
  app.add_option("--connections", options.connections, "at each port")->capture_default_str();
  app.add_option("--rate", options.rate, "new connections a second at each port, at most")->capture_default_str();
  app.add_option("--islands", options.islands, "that train at once")->capture_default_str();
  app.add_option("--inner-steps", options.inner_steps, "of a round")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
