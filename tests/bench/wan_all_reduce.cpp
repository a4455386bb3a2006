// The all-reduce over an emulated internet: N islands, each a process in a network namespace of its own, with the rate,
// round-trip time and losses asked for. Verified first; then each all-reduce's time beside its ideal, 2 (N-1)/N x bytes
// / rate, where a parameter is 4 bytes in fp32, 2 in bf16 and 1 in int8 (scales and headers count against us). Needs
// root and /dev/net/tun.
//
//   wan_all_reduce --islands 4 --rate 500 --rtt 80 --payload 1GiB --wire int8-block --congestion bbr --repeat 6
//   wan_all_reduce --rate 100 --rtt 80 --loss 0.001 --payload 256MiB
//   wan_all_reduce --rate 100 --rtt 300 --loss 0.01 --payload 64MiB --schedule direct
//   wan_all_reduce --payload 512MiB --idle 60
//
// Before the first one, and before each that comes after a rest, the islands dial ahead, as they do in a run while they
// train; `--cold`: they do not.
// `--idle`: each but the first comes after so many seconds of idleness, as in a run. `--payload 16MiB,64MiB,256MiB`:
// what is fixed of an all-reduce too, and what grows with the bytes. Links that differ, in a given order; random ones
// (from --rate / 20 to --rate) in the order that the hub would choose, or in a random one beside the same ideal:
//
//   wan_all_reduce --pairs 0-1:50,2-0:20 --order 0,2,1,3
//   wan_all_reduce --islands 6 --unequal 1 [--shuffled]
//   wan_all_reduce --islands 14 --unequal 1 --rtt 60 --longest-rtt 250 --loss 0.001
//
// Several of these may rest at the same time, and work by turns: `--turns FILE`, the same for all.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/bench_island.h"
#include "app/cli/bench/bench_values.h"
#include "net/base/sha256.h"
#include "net/base/unique_fd.h"
#include "net/mesh/ring_order.h"
#include "tests/wan/wan_box.h"

namespace {

using namespace atl;

constexpr std::uint16_t kPort = 47'000;  // of every island, in its own namespace
constexpr std::chrono::minutes kLongest{10};

struct Options {
  int islands = 4;
  double rate_mbit = 500;
  double rtt_ms = 80;
  double longest_rtt_ms = 0;  // of unequal links; 0: all have the same
  double loss = 0;
  int queue_ms = 100;
  std::vector<std::string> payloads{"256MiB"};
  std::string wire = "int8-block";
  std::string schedule = "ring";
  int connections = 0;
  std::string congestion = "bbr";
  int repeat = 5;
  double idle_s = 0;
  bool cold = false;
  std::string pairs;
  std::string turns;
  unsigned unequal = 0;
  bool shuffled = false;
  double ideal_mbit = 0;
  std::vector<int> order;
  bool small_packets = false;
  bool json = false;
  std::vector<std::string> member;  // of a child: its directory and rank
};

Result<std::vector<std::uint64_t>> payload_bytes(const Options& options) {
  std::vector<std::uint64_t> payloads;
  for (const std::string& text : options.payloads) {
    ATOLL_ASSIGN_OR_RETURN(const std::uint64_t bytes, parse_size(text));
    payloads.push_back(bytes);
  }
  return payloads;
}

// ---- a member: one process

AllReduceSpec spec_of(const Options& options, WireFormat wire, Schedule schedule) {
  AllReduceSpec spec;
  spec.round = OuterStep{1};
  spec.schedule = schedule;
  spec.wire = wire;
  spec.connections_per_edge = options.connections;
  spec.congestion_control = options.congestion;
  for (int host : options.order) {
    spec.order.push_back({IslandId{fmt::format("isl-{:016x}", host)}, {wan::host_address(host), kPort}, 1.0});
  }
  return spec;
}

// As the hub's advice does before a round is averaged. The others may be told a little later.
constexpr std::chrono::seconds kLongestPreparing{5};
constexpr std::chrono::seconds kRestBeforeFirst{1};  // training goes on

void prepare(BenchIsland& island, const AllReduceSpec& spec, std::uint64_t payload_bytes) {
  NextAttempts next;
  next.order = spec.order;
  next.schedule = spec.schedule;
  next.connections_per_edge = spec.connections_per_edge;
  next.congestion_control = spec.congestion_control;
  const auto numel = static_cast<std::int64_t>(payload_bytes / sizeof(float));
  const auto bytes = static_cast<std::uint64_t>(encoded_bytes(spec.wire, numel));
  const std::uint64_t islands = spec.order.size();
  next.bytes_to_each = (spec.schedule == Schedule::kDirect ? 2 : 2 * (islands - 1)) * bytes / islands;
  island.ring().prepare(std::move(next));
  (void)island.ring().await_prepared(Deadline::after(kLongestPreparing));
  std::cout << "prepared" << std::endl;
}

// One all-reduce. `canonical` is there before, as a trainer's is: members that get memory from the kernel first would
// not begin at once.
Status average(BenchIsland& island, const AllReduceSpec& spec, std::span<const float> input,
               std::span<std::byte> canonical, bool verify) {
  const auto numel = std::ssize(input);
  const std::uint64_t resident = process_use().resident_bytes;
  reset_peak();
  const double cpu = process_use().cpu_seconds;
  const AbortSignal never;
  const auto outcome = island.ring().run(spec, input, canonical, never);
  const ProcessUse use = process_use();
  if (const auto* failure = std::get_if<AllReduceFailure>(&outcome)) return failure->error;
  const auto& report = std::get<AllReduceReport>(outcome);
  if (report.congestion_control != spec.congestion_control) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("the kernel gives {} in place of {}", report.congestion_control, spec.congestion_control)};
  }
  if (verify) {
    const auto islands = static_cast<int>(spec.order.size());
    const double error = sampled_error(spec.wire, canonical, numel, islands);
    if (!(error <= tolerated_error(spec.wire, islands))) {
      return Error{ErrorCode::kCorrupt, fmt::format("the mean is wrong: relative error {:.3g}", error)};
    }
  }
  std::ranges::fill(canonical, std::byte{0});  // so that nothing passes the next time for its mean
  std::cout << fmt::format("done {} {} {} {} {} {} {}", report.duration.count(), use.cpu_seconds - cpu,
                           use.peak_resident_bytes - std::min(use.peak_resident_bytes, resident), report.hops,
                           report.bytes_retransmitted, report.phases.connect.count(), to_hex(report.digest))
            << std::endl;
  return ok_status();
}

Status run_member(const Options& options) {
  const int host = std::stoi(options.member[1]);
  ATOLL_ASSIGN_OR_RETURN(const auto payloads, payload_bytes(options));
  ATOLL_ASSIGN_OR_RETURN(const WireFormat wire, parse_wire_format(options.wire));
  ATOLL_ASSIGN_OR_RETURN(const Identity identity, load_identity(options.member[0]));
  ATOLL_ASSIGN_OR_RETURN(const auto island, BenchIsland::start(identity, {"0.0.0.0", kPort}));
  std::vector<float> input(std::ranges::max(payloads) / sizeof(float));
  fill_bench_values(host, input);
  ATOLL_ASSIGN_OR_RETURN(const Schedule schedule, parse_schedule(options.schedule));
  AllReduceSpec spec = spec_of(options, wire, schedule);
  Bytes canonical(static_cast<std::size_t>(encoded_bytes(wire, std::ssize(input))));
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {  // each line: average so many bytes once more
    std::istringstream in(line);
    std::string word;
    std::uint64_t bytes = 0;
    if (!(in >> word >> bytes)) return Error{ErrorCode::kInternal, "a member was told " + line};
    if (word == "prepare") {
      prepare(*island, spec, bytes);
      continue;
    }
    spec.attempt = Attempt{spec.attempt.value + 1};
    const std::span values = std::span(input).first(bytes / sizeof(float));
    const std::span encoded =
        std::span(canonical).first(static_cast<std::size_t>(encoded_bytes(wire, std::ssize(values))));
    ATOLL_RETURN_IF_ERROR(average(*island, spec, values, encoded, word == "verify"));
  }
  return ok_status();
}

// ---- the measurement: what starts them

struct Measured {
  double seconds = 0;             // of the slowest member
  double cpu_seconds = 0;         // a member, mean
  std::uint64_t extra_bytes = 0;  // resident above what was there before, the largest member
  int hops = 0;
  std::uint64_t retransmitted = 0;  // bytes, all members
  double connect_seconds = 0;       // until bytes could move, the slowest member
};

class Members {
 public:
  static Result<std::unique_ptr<Members>> start(const Options& options, wan::WanBox& box, char** argv) {
    auto members = std::make_unique<Members>();
    ATOLL_ASSIGN_OR_RETURN(const auto identities, make_bench_identities(options.islands));
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    for (int host = 0; host < options.islands; ++host) {
      const auto directory = members->directory_.path / std::to_string(host);
      ATOLL_RETURN_IF_ERROR(save_identity(directory, identities[static_cast<std::size_t>(host)]));
      std::vector<std::string> arguments{program};
      for (char** argument = argv + 1; *argument != nullptr; ++argument) arguments.emplace_back(*argument);
      arguments.insert(arguments.end(), {"--member", directory, std::to_string(host)});
      ATOLL_ASSIGN_OR_RETURN(wan::WanProcess process, box.run_in(host, arguments));
      members->processes_.push_back(std::move(process));
    }
    for (wan::WanProcess& process : members->processes_) {
      ATOLL_ASSIGN_OR_RETURN(const std::string line, process.read_line(Deadline::after(kLongest)));
      if (line != "ready") return Error{ErrorCode::kInternal, "a member says " + line};
    }
    return members;
  }

  Status prepare(std::uint64_t bytes) {
    for (wan::WanProcess& process : processes_) {
      ATOLL_RETURN_IF_ERROR(process.write_line(fmt::format("prepare {}", bytes)));
    }
    for (wan::WanProcess& process : processes_) {
      ATOLL_ASSIGN_OR_RETURN(const std::string line, process.read_line(Deadline::after(kLongest)));
      if (line != "prepared") return Error{ErrorCode::kInternal, "a member says " + line};
    }
    return ok_status();
  }

  Result<Measured> all_reduce(std::uint64_t bytes, bool verify) {
    const std::string order = fmt::format("{} {}", verify ? "verify" : "go", bytes);
    for (wan::WanProcess& process : processes_) ATOLL_RETURN_IF_ERROR(process.write_line(order));
    Measured measured;
    std::string first_digest;
    for (wan::WanProcess& process : processes_) {
      ATOLL_ASSIGN_OR_RETURN(const std::string line, process.read_line(Deadline::after(kLongest)));
      std::istringstream in(line);
      std::string word, digest;
      double seconds = 0, cpu = 0, connect = 0;
      std::uint64_t extra = 0, retransmitted = 0;
      if (!(in >> word >> seconds >> cpu >> extra >> measured.hops >> retransmitted >> connect >> digest) ||
          word != "done") {
        return Error{ErrorCode::kInternal, "a member says " + line};
      }
      if (first_digest.empty()) first_digest = digest;
      if (digest != first_digest) return Error{ErrorCode::kCorrupt, "the members hold different bytes"};
      measured.seconds = std::max(measured.seconds, seconds);
      measured.cpu_seconds += cpu / static_cast<double>(processes_.size());
      measured.extra_bytes = std::max(measured.extra_bytes, extra);
      measured.retransmitted += retransmitted;
      measured.connect_seconds = std::max(measured.connect_seconds, connect);
    }
    return measured;
  }

 private:
  struct TemporaryDirectory {
    std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("atoll-wan-{}", ::getpid());
    ~TemporaryDirectory() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  TemporaryDirectory directory_;
  std::vector<wan::WanProcess> processes_;
};

std::chrono::microseconds one_way(double rtt_ms) {
  return std::chrono::microseconds(static_cast<std::int64_t>(rtt_ms * 500));
}

Status set_pairs(const std::string& text, wan::WanBox& box) {
  std::istringstream in(text);
  for (std::string entry; std::getline(in, entry, ',');) {
    int from = 0, to = 0;
    double mbit = 0, rtt_ms = -1;
    const int read = std::sscanf(entry.c_str(), "%d-%d:%lf:%lf", &from, &to, &mbit, &rtt_ms);
    if (read < 3 || from < 0 || to < 0 || from >= box.hosts() || to >= box.hosts() || !(mbit > 0)) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no pair; write FROM-TO:MBIT[:RTT]", entry)};
    }
    box.change_path(from, to, [&](wan::WanPath& path) {
      path.bits_per_second = mbit * 1e6;
      if (rtt_ms >= 0) path.delay = one_way(rtt_ms);
    });
  }
  return ok_status();
}

// Random links, each way of each pair: --rate / 20 to --rate, evenly on a logarithmic scale, and --rtt to
// --longest-rtt. The slowest edge of the best ring, which becomes the rate of the ideal, in Mbit/s.
constexpr double kUnequalFactor = 20;

double make_unequal(Options& options) {
  std::mt19937 random(options.unequal);
  const auto uniform = [&] { return static_cast<double>(random()) / static_cast<double>(std::mt19937::max()); };
  RingQuestion question(options.islands);
  for (int from = 0; from < options.islands; ++from) {
    for (int to = 0; to < options.islands; ++to) {
      if (from == to) continue;
      const double mbit = options.rate_mbit * std::pow(kUnequalFactor, uniform() - 1);
      const double most_ms = std::max(options.longest_rtt_ms, options.rtt_ms);
      const double rtt_ms = most_ms > options.rtt_ms ? std::lerp(options.rtt_ms, most_ms, uniform()) : options.rtt_ms;
      question.edge(from, to) = {mbit * 1e6 / 8, rtt_ms / 1000};
      options.pairs += fmt::format("{}{}-{}:{:.1f}:{:.1f}", options.pairs.empty() ? "" : ",", from, to, mbit, rtt_ms);
    }
  }
  const RingOrder best = order_ring(question);
  options.order = best.order;
  if (options.shuffled) std::shuffle(options.order.begin(), options.order.end(), random);
  const auto mbit = [](double bytes_per_second) { return bytes_per_second * 8e-6; };
  if (!options.member.empty()) return mbit(best.slowest_bytes_per_second);  // the parent has said it
  fmt::print("links {}\norder {}: slowest edge {:.1f} Mbit/s; best order: {:.1f} Mbit/s\n", options.pairs,
             fmt::join(options.order, ","), mbit(slowest_edge(question, options.order)),
             mbit(best.slowest_bytes_per_second));
  return mbit(best.slowest_bytes_per_second);
}

double ideal_seconds(const Options& options, std::uint64_t payload_bytes, WireFormat wire) {
  const double values = static_cast<double>(payload_bytes) / sizeof(float);
  const double bytes = values * std::floor(static_cast<double>(encoded_bytes(wire, 4096)) * 2 / 4096) / 2;
  return 2.0 * (options.islands - 1) / options.islands * bytes * 8 / (options.ideal_mbit * 1e6);
}

// What nothing can go below: the ideal with the scales, the headers of TLS, TCP and IP, and the shortest way for the
// last byte.
double least_seconds(const Options& options, std::uint64_t payload_bytes, WireFormat wire) {
  constexpr double kPacket = 1500, kPacketHeaders = 20 + 20 + 12, kRecord = 16384, kRecordHeaders = 22;
  const auto values = static_cast<std::int64_t>(payload_bytes / sizeof(float));
  const double bytes = static_cast<double>(encoded_bytes(wire, values)) * (kRecord + kRecordHeaders) / kRecord *
                       kPacket / (kPacket - kPacketHeaders);
  return 2.0 * (options.islands - 1) / options.islands * bytes * 8 / (options.ideal_mbit * 1e6) +
         Seconds(one_way(options.rtt_ms)).count();
}

void print(const Options& options, const std::string& which, const Measured& measured, double ideal,
           double router_cpu) {
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"which", which},
                                      {"seconds", measured.seconds},
                                      {"ideal_seconds", ideal},
                                      {"ratio", measured.seconds / ideal},
                                      {"connect_seconds", measured.connect_seconds},
                                      {"hops", measured.hops},
                                      {"bytes_retransmitted", measured.retransmitted},
                                      {"cpu_seconds_per_island", measured.cpu_seconds},
                                      {"extra_bytes_per_island", measured.extra_bytes},
                                      {"emulation_cpu_seconds", router_cpu}}
                           .dump());
  } else {
    fmt::print(
        "{:<12} {:7.2f} s = {:.3f} x ideal ({:.2f} s); connected after {:.2f} s; {} hops; {:.1f} MB sent again; CPU "
        "{:.2f} s and {:.0f} MiB an island; emulation {:.2f} s\n",
        which, measured.seconds, measured.seconds / ideal, ideal, measured.connect_seconds, measured.hops,
        static_cast<double>(measured.retransmitted) / 1e6, measured.cpu_seconds,
        static_cast<double>(measured.extra_bytes) / (1 << 20), router_cpu);
  }
  std::fflush(stdout);
}

// Medians of the warm ones, a payload each.
struct Point {
  double ideal = 0;    // s
  double seconds = 0;  // taken
};

// seconds = fixed + share x ideal, by least squares.
void print_fit(const Options& options, const std::vector<Point>& points) {
  double ideal = 0, seconds = 0, squares = 0, products = 0;
  const auto count = static_cast<double>(points.size());
  for (const Point& point : points) {
    ideal += point.ideal / count;
    seconds += point.seconds / count;
  }
  for (const Point& point : points) {
    squares += (point.ideal - ideal) * (point.ideal - ideal);
    products += (point.ideal - ideal) * (point.seconds - seconds);
  }
  if (squares == 0) return;
  const double share = products / squares, fixed = seconds - share * ideal;
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"fixed_seconds", fixed}, {"seconds_per_ideal_second", share}}.dump());
  } else {
    fmt::print("over the payloads: {:.3f} s fixed, and {:.3f} x ideal\n", fixed, share);
  }
}

Result<std::unique_ptr<wan::WanBox>> make_box(const Options& options) {
  if (const auto reason = wan::WanBox::unavailable()) return Error{ErrorCode::kPermissionDenied, *reason};
  wan::WanOptions wan;
  wan.hosts = options.islands;
  wan.path.delay = one_way(options.rtt_ms);
  wan.path.loss = options.loss;
  wan.queue = std::chrono::milliseconds(options.queue_ms);
  wan.large_packets = !options.small_packets;
  wan.rates = {options.rate_mbit * 1e6, options.rate_mbit * 1e6};
  ATOLL_ASSIGN_OR_RETURN(auto box, wan::WanBox::create(wan));
  ATOLL_RETURN_IF_ERROR(set_pairs(options.pairs, *box));
  return box;
}

// Held as long as the result lives.
Result<UniqueFd> wait_for_turn(const std::string& path) {
  if (path.empty()) return UniqueFd();
  UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX) != 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot lock {}: {}", path, std::strerror(errno))};
  }
  return file;
}

std::string first_name(const Options& options) { return options.cold ? "first, cold" : "first, ahead"; }

Status run(Options& options, char** argv) {
  ATOLL_ASSIGN_OR_RETURN(const auto payloads, payload_bytes(options));
  ATOLL_ASSIGN_OR_RETURN(const WireFormat wire, parse_wire_format(options.wire));
  ATOLL_ASSIGN_OR_RETURN(const Schedule schedule, parse_schedule(options.schedule));
  ATOLL_ASSIGN_OR_RETURN(const auto box, make_box(options));
  ATOLL_ASSIGN_OR_RETURN(const auto members, Members::start(options, *box, argv));
  const std::string edges = schedule == Schedule::kDirect ? "directly"
                            : options.connections == 0    ? "as many connections an edge as it chooses"
                                                          : fmt::format("{} connections an edge", options.connections);
  if (!options.json) {
    fmt::print(
        "{} islands, {} Mbit/s each way, {} ms round trip, loss {}, {}; {} of fp32 as {}, {}, {} s of idleness before "
        "each but the first\n",
        options.islands, options.rate_mbit, options.rtt_ms, options.loss, options.congestion,
        fmt::join(options.payloads, ", "), options.wire, edges, options.idle_s);
  }
  std::vector<Point> points;
  bool first = true;
  for (std::size_t payload = 0; payload < payloads.size(); ++payload) {
    const double ideal = ideal_seconds(options, payloads[payload], wire);
    const double least = least_seconds(options, payloads[payload], wire);
    if (options.json) {
      fmt::print("{}\n", nlohmann::json{{"least_seconds", least}}.dump());
    } else {
      fmt::print("{} with scales, headers and one way: {:.3f} x ideal\n", options.payloads[payload], least / ideal);
    }
    std::vector<double> seconds;
    for (int i = first ? -1 : 0; i < options.repeat; ++i) {
      const Seconds rest(first ? kRestBeforeFirst : Seconds(options.idle_s));
      if (!options.cold && rest > Seconds::zero()) {
        ATOLL_ASSIGN_OR_RETURN(const UniqueFd turn, wait_for_turn(options.turns));
        ATOLL_RETURN_IF_ERROR(members->prepare(payloads[payload]));
      }
      if (!options.cold || !first) std::this_thread::sleep_for(rest);
      ATOLL_ASSIGN_OR_RETURN(const UniqueFd turn, wait_for_turn(options.turns));
      const double before = Seconds(box->router_cpu_time()).count();
      ATOLL_ASSIGN_OR_RETURN(const Measured measured, members->all_reduce(payloads[payload], i <= 0));
      print(options, first ? first_name(options) : fmt::format("{} {}", options.payloads[payload], i + 1), measured,
            ideal, Seconds(box->router_cpu_time()).count() - before);
      if (!first) seconds.push_back(measured.seconds);
      first = false;
    }
    if (seconds.empty()) continue;
    points.push_back({ideal, median(seconds)});
    if (!options.json) {
      fmt::print("median of {}, {}: {:.3f} x ideal\n", seconds.size(), options.payloads[payload],
                 points.back().seconds / ideal);
      std::fflush(stdout);
    }
  }
  print_fit(options, points);
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("All-reduce over an emulated internet");
  app.add_option("--islands", options.islands)->check(CLI::Range(2, 128));
  app.add_option("--rate", options.rate_mbit, "Mbit/s of each island, each way");
  app.add_option("--rtt", options.rtt_ms, "round trip of every pair, ms");
  app.add_option("--loss", options.loss, "probability of each 1500-byte packet")->check(CLI::Range(0.0, 1.0));
  app.add_option("--queue", options.queue_ms, "of each link, ms of its rate");
  app.add_option("--payload", options.payloads, "bytes of fp32; several: one after the other, with a fit")
      ->delimiter(',');
  app.add_option("--wire", options.wire);
  app.add_option("--schedule", options.schedule, fmt::format("{}", fmt::join(kScheduleNames, ", ")));
  app.add_option("--connections", options.connections, "an edge of the ring; 0: as many as it chooses, as in a run")
      ->check(CLI::Range(0, kMaxConnectionsPerEdge));
  app.add_option("--congestion", options.congestion, "congestion control of what sends");
  app.add_option("--repeat", options.repeat, "of each payload, beside the first one");
  app.add_flag("--cold", options.cold, "the islands dial nothing ahead");
  app.add_option("--idle", options.idle_s, "seconds of idleness before each but the first");
  app.add_option("--pairs", options.pairs, "FROM-TO:MBIT[:RTT],... beside --rate and --rtt");
  app.add_option("--order", options.order, "hosts in ring order")->delimiter(',');
  app.add_option("--unequal", options.unequal, "seed of random links, over a factor 20 up to --rate");
  app.add_option("--longest-rtt", options.longest_rtt_ms, "with --unequal: ms, the round trips from --rtt on")
      ->needs("--unequal");
  app.add_flag("--shuffled", options.shuffled, "with --unequal: in a random order")->needs("--unequal");
  app.add_flag("--small-packets", options.small_packets, "leave the size of packets to the kernel's pacing");
  app.add_option("--turns", options.turns, "a file that is locked while bytes move, beside others that name it");
  app.add_flag("--json", options.json);
  app.add_option("--member", options.member)->expected(2)->group("");
  CLI11_PARSE(app, argc, argv);
  options.ideal_mbit = options.unequal > 0 ? make_unequal(options) : options.rate_mbit;
  for (int host = 0; options.order.empty() && host < options.islands; ++host) options.order.push_back(host);
  for (int host = static_cast<int>(options.order.size()); host < options.islands; ++host) options.order.push_back(host);
  const Status status = options.member.empty() ? run(options, argv) : run_member(options);
  if (!status.ok()) fmt::print(stderr, "wan_all_reduce: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
