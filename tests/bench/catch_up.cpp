// What it costs to come back to a run (net/recovery/state_fetch.h), over an emulated internet: bytes and seconds of who
// was away 1, 5 and 50 rounds, beside those of the whole state; then the whole state from three islands at once, each
// behind a third of what the fetching one can take in. Each result is compared with the run's state, bit for bit. Needs
// root and /dev/net/tun. MB: 1e6 bytes.
//
//   catch_up [--parameters 25e6] [--rate 100] [--rtt 40] [--source-rate 200]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "net/base/deadline.h"
#include "tests/net/recovery/committed_run.h"
#include "tests/net/recovery/state_peers.h"
#include "tests/wan/wan_box.h"

namespace {

using namespace atl;

constexpr int kSources = 3;
constexpr double kBitsOfMbit = 1e6;
constexpr std::uint32_t kAway[] = {1, 5, 50};  // rounds

struct Options {
  double parameters = 25e6;
  double rate_mbit = 100;
  double rtt_ms = 40;
  double source_rate_mbit = 200;
};

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
    for (const std::uint32_t rounds : kAway) {
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
    return fetch("  the whole state", nullptr, all);
  }

 private:
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

  Status fetch(const std::string& what, const HeldStateSource* own, double rate_mbit) {
    const wan::InsideHost inside(box_.host(0));
    std::vector<StateSourceAddress> sources;
    for (const auto& peer : peers_) sources.push_back(peer->address());
    ATOLL_ASSIGN_OR_RETURN(StateFetch fetch, StateFetch::create(run_.island(9), committed_.model()));
    if (own != nullptr) fetch.state().copy_from(*own, own->version());
    const AbortSignal never;
    const auto began = Clock::now();
    ATOLL_RETURN_IF_ERROR(fetch.run(committed_.held(), sources, never, {}));
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
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (!status.ok()) std::cerr << status.error().message << std::endl;
  return status.ok() ? 0 : 1;
}
