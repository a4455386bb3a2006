// What it costs to come back to a run (net/recovery/state_fetch.h), over an emulated internet: bytes and seconds of who
// was away some rounds, beside those of the whole state; then the whole state from three islands at once, each
// behind a third of what the fetching one can take in; then what an all-reduce of those three takes, while nobody
// fetches from them and while somebody does. Each state is compared with the run's, bit for bit. Needs root and
// /dev/net/tun. MB: 1e6 bytes.
//
//   catch_up [--parameters 25e6] [--rate 100] [--rtt 40] [--source-rate 200] [--away 1 5 50] [--all-reduces 5]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <thread>

#include "app/cli/bench/bench_island.h"
#include "app/cli/bench/bench_values.h"
#include "net/base/deadline.h"
#include "tests/net/recovery/committed_run.h"
#include "tests/net/recovery/state_peers.h"
#include "tests/wan/wan_box.h"

namespace {

using namespace atl;

constexpr int kSources = 3;
constexpr double kBitsOfMbit = 1e6;

struct Options {
  double parameters = 25e6;
  double rate_mbit = 100;
  double rtt_ms = 40;
  double source_rate_mbit = 200;
  std::vector<std::uint32_t> away{1, 5, 50};  // rounds
  int all_reduces = 5;                        // of each kind; 0: none
};

// A source in its ring, which what it serves leaves the link to as it does on an island (trainer/island/lane_link.h).
class RingSource {
 public:
  static Result<std::unique_ptr<RingSource>> start(const Identity& identity, int rank, std::int64_t numel,
                                                   const Address& bind, ServingPace& serving) {
    ATOLL_ASSIGN_OR_RETURN(auto island, BenchIsland::start(identity, bind));
    return std::make_unique<RingSource>(std::move(island), rank, numel, serving);
  }
  RingSource(std::unique_ptr<BenchIsland> island, int rank, std::int64_t numel, ServingPace& serving)
      : island_(std::move(island)),
        serving_(serving),
        input_(static_cast<std::size_t>(numel)),
        canonical_(static_cast<std::size_t>(encoded_bytes(WireFormat::kInt8Block, numel))) {
    fill_bench_values(rank, input_);
  }

  const BenchIsland& island() const { return *island_; }

  Status all_reduce(const AllReduceSpec& spec) {
    const AbortSignal never;
    const ServingPace::Attempt attempt(serving_);
    const auto outcome = island_->ring().run(spec, input_, canonical_, never);
    if (const auto* failure = std::get_if<AllReduceFailure>(&outcome)) return failure->error;
    const auto& report = std::get<AllReduceReport>(outcome);
    serving_.saw_link(std::max(report.link_bytes_per_second, report.bytes_per_second));
    return ok_status();
  }

 private:
  const std::unique_ptr<BenchIsland> island_;
  ServingPace& serving_;
  std::vector<float> input_;
  Bytes canonical_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Host 0 fetches; the others serve.
class Bench {
 public:
  Bench(const Options& options, wan::WanBox& box, const std::filesystem::path& directory)
      : options_(options), box_(box), committed_(run_, static_cast<std::uint64_t>(options.parameters), 1, directory) {}

  Status run() {
    std::cout << fmt::format("{:.0f} M parameters, a state of {:.1f} MB, an average of {:.1f} MB; round trip {} ms\n",
                             options_.parameters / 1e6, options_.parameters * 8 / 1e6,
                             static_cast<double>(committed_.average_bytes(0)) / 1e6, options_.rtt_ms);
    serve();
    std::cout << fmt::format("one link of {} Mbit/s\n", options_.rate_mbit);
    receives(options_.rate_mbit);
    ATOLL_RETURN_IF_ERROR(fetch("  the whole state", nullptr, options_.rate_mbit));
    for (const std::uint32_t rounds : options_.away) {
      if (rounds == 0) continue;
      const HeldStateSource own(committed_.copy());
      committed_.commit(static_cast<int>(rounds));
      const std::string what = fmt::format("  away {} round{}", rounds, rounds == 1 ? "" : "s");
      ATOLL_RETURN_IF_ERROR(fetch(what, &own, options_.rate_mbit));
    }
    const double all = kSources * options_.source_rate_mbit;
    std::cout << fmt::format("{} sources of {} Mbit/s each, behind {} Mbit/s\n", kSources, options_.source_rate_mbit,
                             all);
    receives(all);
    for (int host = 1; host <= kSources; ++host) {
      box_.change_host(
          host, [&](wan::WanHostRates& rates) { rates.up_bits_per_second = options_.source_rate_mbit * kBitsOfMbit; });
    }
    ATOLL_RETURN_IF_ERROR(fetch("  the whole state", nullptr, all));
    return options_.all_reduces == 0 ? ok_status() : ring_beside_fetch();
  }

 private:
  using Ring = std::vector<std::unique_ptr<RingSource>>;

  // In turn, so that what else the machine does meets both.
  Status ring_beside_fetch() {
    AllReduceSpec spec;
    ATOLL_ASSIGN_OR_RETURN(const Ring ring, make_ring(spec));
    ATOLL_ASSIGN_OR_RETURN([[maybe_unused]] const double first, all_reduce(ring, spec));  // connects, sees the links
    std::vector<double> alone, beside;
    for (int i = 0; i < options_.all_reduces; ++i) {
      ATOLL_ASSIGN_OR_RETURN(const double seconds, all_reduce(ring, spec));
      alone.push_back(seconds);
      AbortSignal enough;
      std::thread joiner([&] { fetch_until(enough); });
      while (fetched_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const std::uint64_t before = fetched_;
      const auto result = all_reduce(ring, spec);
      beside_bytes_ += fetched_ - before;
      enough.raise("measured");
      joiner.join();
      if (!result.ok()) return result.error();
      beside.push_back(*result);
    }
    double beside_seconds = 0;
    for (const double seconds : beside) beside_seconds += seconds;
    const double kept_from_ring = median(beside) / median(alone) - 1;
    std::cout << fmt::format("all-reduce of the three, medians of {}\n{:<20}{:8.2f} s\n", options_.all_reduces,
                             "  nobody fetches", median(alone))
              << fmt::format("{:<20}{:8.2f} s, {:+.1f} %; {:.1f} Mbit/s are fetched meanwhile\n", "  somebody fetches",
                             median(beside), 100 * kept_from_ring,
                             8e-6 * static_cast<double>(beside_bytes_) / beside_seconds);
    return ok_status();
  }

  Result<Ring> make_ring(AllReduceSpec& spec) {
    Ring ring;
    spec.wire = WireFormat::kInt8Block;
    spec.connections_per_edge = 0;
    for (int host = 1; host <= kSources; ++host) {
      box_.change_host(host, [&](wan::WanHostRates& rates) {
        rates.down_bits_per_second = options_.source_rate_mbit * kBitsOfMbit;
      });
      const wan::InsideHost inside(box_.host(host));
      ServingPace& serving = peers_[static_cast<std::size_t>(host - 1)]->serving_pace();
      ATOLL_ASSIGN_OR_RETURN(auto source,
                             RingSource::start(run_.island(host), host, static_cast<std::int64_t>(options_.parameters),
                                               {box_.address(host), 0}, serving));
      spec.order.push_back({source->island().id(), {box_.address(host), source->island().port()}, 1.0});
      ring.push_back(std::move(source));
    }
    return ring;
  }

  // Seconds.
  Result<double> all_reduce(const Ring& ring, AllReduceSpec& spec) {
    spec.attempt = Attempt{spec.attempt.value + 1};
    const auto began = Clock::now();
    std::vector<Status> outcomes(ring.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      threads.emplace_back([&, i] {
        const wan::InsideHost inside(box_.host(static_cast<int>(i) + 1));
        outcomes[i] = ring[i]->all_reduce(spec);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& outcome : outcomes) ATOLL_RETURN_IF_ERROR(outcome);
    return Seconds(Clock::now() - began).count();
  }

  // The whole state, again and again.
  void fetch_until(const AbortSignal& enough) {
    const wan::InsideHost inside(box_.host(0));
    fetched_ = 0;
    std::uint64_t before = 0;
    while (!enough.raised()) {
      auto fetch = StateFetch::create(run_.island(9), committed_.model());
      if (!fetch.ok()) return;
      const auto came = [&](std::uint64_t done, std::uint64_t) { fetched_ = before + done; };
      static_cast<void>(fetch->run(committed_.held(), sources(), enough, came));
      before = fetched_;
    }
  }

  void receives(double mbit) {
    box_.change_host(0, [&](wan::WanHostRates& rates) { rates.down_bits_per_second = mbit * kBitsOfMbit; });
  }

  void serve() {
    for (int host = 1; host <= kSources; ++host) {
      const wan::InsideHost inside(box_.host(host));
      peers_.push_back(std::make_unique<StatePeer>(run_.island(host), committed_, Behaviour::kGood, HttpsPaceLimits{},
                                                   &committed_.log(), std::optional<double>{}, box_.address(host)));
    }
  }

  std::vector<StateSourceAddress> sources() const {
    std::vector<StateSourceAddress> sources;
    for (const auto& peer : peers_) sources.push_back(peer->address());
    return sources;
  }

  Status fetch(const std::string& what, const HeldStateSource* own, double rate_mbit) {
    const wan::InsideHost inside(box_.host(0));
    ATOLL_ASSIGN_OR_RETURN(StateFetch fetch, StateFetch::create(run_.island(9), committed_.model()));
    if (own != nullptr) fetch.state().copy_from(*own, own->version());
    const AbortSignal never;
    const auto began = Clock::now();
    ATOLL_RETURN_IF_ERROR(fetch.run(committed_.held(), sources(), never, {}));
    const double seconds = Seconds(Clock::now() - began).count();
    const double megabytes = static_cast<double>(fetch.counts().useful()) / 1e6;
    const double mbit = 8 * megabytes / seconds;
    std::cout << fmt::format("{:<20}{:8.1f} MB {:7.2f} s {:7.0f} Mbit/s, {:.0f} % of the link; in vain {:.2f} MB\n",
                             what, megabytes, seconds, mbit, 100 * mbit / rate_mbit,
                             static_cast<double>(fetch.counts().lost_bytes) / 1e6)
              << std::flush;
    if (committed_.is(fetch.state().release(committed_.held().outer_step))) return ok_status();
    return Error{ErrorCode::kCorrupt, "what was fetched is not the run's state"};
  }

  const Options options_;
  wan::WanBox& box_;
  TestRun run_;
  CommittedRun committed_;
  std::vector<std::unique_ptr<StatePeer>> peers_;
  std::atomic<std::uint64_t> fetched_{0};  // bytes, by who fetches beside the ring
  std::uint64_t beside_bytes_ = 0;         // while the ring ran
};

Status run(const Options& options) {
  if (const auto why = wan::WanBox::unavailable()) return Error{ErrorCode::kPermissionDenied, *why};
  wan::WanOptions network{.hosts = 1 + kSources};
  network.path.delay = std::chrono::microseconds(static_cast<std::int64_t>(options.rtt_ms * 500));
  ATOLL_ASSIGN_OR_RETURN(const auto box, wan::WanBox::create(network));
  std::string place = std::filesystem::temp_directory_path() / "catch_up.XXXXXX";
  if (::mkdtemp(place.data()) == nullptr) return Error{ErrorCode::kIo, "cannot make a temporary directory"};
  const Status status = Bench(options, *box, place).run();
  std::error_code ignored;
  std::filesystem::remove_all(place, ignored);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What it costs to come back to a run, over an emulated internet");
  app.add_option("--parameters", options.parameters)->check(CLI::Range(1e6, 1e9));
  app.add_option("--rate", options.rate_mbit, "Mbit/s")->check(CLI::PositiveNumber);
  app.add_option("--rtt", options.rtt_ms, "ms")->check(CLI::NonNegativeNumber);
  app.add_option("--source-rate", options.source_rate_mbit, "Mbit/s, of each of three")->check(CLI::PositiveNumber);
  app.add_option("--away", options.away, "rounds, of each way back; 0: none");
  app.add_option("--all-reduces", options.all_reduces, "of each kind; 0: none")->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (!status.ok()) std::cerr << status.error().message << std::endl;
  return status.ok() ? 0 : 1;
}
