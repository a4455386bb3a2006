#include "app/cli/bench/all_reduce_bench.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/bench_island.h"
#include "app/cli/bench/bench_values.h"
#include "kernels/wire_codec.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr int kReferenceRepeats = 3;
constexpr std::size_t kTcpBlock = 256 * 1024;
constexpr std::chrono::seconds kTcpTimeout{60};

struct Islands {
  std::vector<std::unique_ptr<BenchIsland>> islands;
  std::vector<std::vector<float>> inputs;
  std::vector<Bytes> results;
  std::vector<std::vector<float>> means;
};

// What all islands together hold, and as much again as the kernel and the ring need at most.
Status check(const AllReduceBenchOptions& options) {
  if (options.payload_bytes < sizeof(float)) {
    return Error{ErrorCode::kInvalidArgument, "a payload of no value cannot be averaged: choose at least 4 bytes"};
  }
  const auto numel = static_cast<std::int64_t>(options.payload_bytes / sizeof(float));
  const auto each_needs = 2 * options.payload_bytes + static_cast<std::uint64_t>(encoded_bytes(options.wire, numel));
  const std::uint64_t needed = each_needs * static_cast<std::uint64_t>(options.islands);
  const std::uint64_t available = available_memory_bytes();
  if (available == 0 || needed < available) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} islands with this payload need {:.1f} GiB of memory and {:.1f} GiB are free: choose "
                           "fewer islands or a smaller --payload",
                           options.islands, static_cast<double>(needed) / (1 << 30),
                           static_cast<double>(available) / (1 << 30))};
}

Result<Islands> set_up(const AllReduceBenchOptions& options) {
  Islands all;
  ATOLL_ASSIGN_OR_RETURN(const auto identities, make_bench_identities(options.islands));
  for (const Identity& identity : identities) {
    ATOLL_ASSIGN_OR_RETURN(auto island, BenchIsland::start(identity, {"127.0.0.1", 0}));
    all.islands.push_back(std::move(island));
  }
  const std::size_t numel = options.payload_bytes / sizeof(float);
  all.inputs.resize(all.islands.size());
  all.results.resize(all.islands.size());
  all.means.resize(all.islands.size());
  seconds_on_threads(options.islands, [&](std::size_t i) {
    all.inputs[i].resize(numel);
    all.means[i].resize(numel);
    fill_bench_values(static_cast<int>(i), all.inputs[i]);
    all.results[i].resize(static_cast<std::size_t>(encoded_bytes(options.wire, static_cast<std::int64_t>(numel))));
  });
  return all;
}

AllReduceSpec spec_of(const AllReduceBenchOptions& options, const Islands& all) {
  AllReduceSpec spec;
  spec.round = OuterStep{1};
  spec.wire = options.wire;
  spec.schedule = options.schedule;
  spec.connections_per_edge = options.connections_per_edge;
  spec.threads = options.threads;
  for (const auto& island : all.islands) spec.order.push_back({island->id(), {"127.0.0.1", island->port()}, 1.0});
  return spec;
}

Result<AllReduceReport> average_once(const AllReduceSpec& spec, Islands& all, const AbortSignal& interrupt) {
  std::vector<std::variant<AllReduceReport, AllReduceFailure>> outcomes(all.islands.size());
  seconds_on_threads(static_cast<int>(all.islands.size()), [&](std::size_t i) {
    outcomes[i] = all.islands[i]->ring().run(spec, all.inputs[i], all.results[i], interrupt);
    decode_values(spec.wire, all.results[i], all.means[i]);
  });
  for (const auto& outcome : outcomes) {
    if (const auto* failure = std::get_if<AllReduceFailure>(&outcome)) return failure->error;
    if (std::get<0>(outcome).digest != std::get<0>(outcomes[0]).digest) {
      return Error{ErrorCode::kCorrupt, "the islands hold different bytes after the all-reduce"};
    }
  }
  return std::get<0>(outcomes[0]);
}

// ---- the same bytes as plain TCP

struct TcpEdge {
  UniqueFd sender;
  UniqueFd receiver;
};

Result<TcpEdge> connect_edge() {
  const Deadline deadline = Deadline::after(kTcpTimeout);
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd listener, listen_tcp({"127.0.0.1", 0}));
  TcpEdge edge;
  ATOLL_ASSIGN_OR_RETURN(edge.sender, connect_tcp({"127.0.0.1", local_port(listener.get())}, deadline, nullptr,
                                                  "plain TCP on this machine"));
  ATOLL_RETURN_IF_ERROR(wait_ready(listener.get(), POLLIN, deadline, nullptr, "plain TCP on this machine"));
  edge.receiver.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!edge.receiver) return Error{ErrorCode::kIo, "plain TCP on this machine: cannot accept"};
  return edge;
}

// False when the connection failed.
bool move_bytes(int fd, std::uint64_t bytes, bool sends) {
  const Deadline deadline = Deadline::after(kTcpTimeout);
  std::vector<char> block(kTcpBlock);
  while (bytes > 0) {
    const std::size_t most = std::min<std::uint64_t>(bytes, block.size());
    const ssize_t count = sends ? ::send(fd, block.data(), most, MSG_NOSIGNAL) : ::recv(fd, block.data(), most, 0);
    if (count > 0) bytes -= static_cast<std::uint64_t>(count);
    if (count == 0) return false;
    if (count < 0 && !wait_ready(fd, sends ? POLLOUT : POLLIN, deadline, nullptr, "plain TCP").ok()) return false;
  }
  return true;
}

Result<double> tcp_ring_seconds(int islands, std::uint64_t bytes) {
  std::vector<TcpEdge> edges;
  for (int i = 0; i < islands; ++i) {
    ATOLL_ASSIGN_OR_RETURN(TcpEdge edge, connect_edge());
    edges.push_back(std::move(edge));
  }
  std::atomic<bool> all_moved = true;
  const double seconds = seconds_on_threads(2 * islands, [&](std::size_t i) {
    const TcpEdge& edge = edges[i / 2];
    if (!move_bytes(i % 2 == 0 ? edge.sender.get() : edge.receiver.get(), bytes, i % 2 == 0)) all_moved = false;
  });
  if (!all_moved) return Error{ErrorCode::kIo, "plain TCP on this machine: a connection failed"};
  return seconds;
}

}  // namespace

Result<AllReduceBenchResult> run_all_reduce_bench(const AllReduceBenchOptions& options, const AbortSignal& interrupt) {
  ATOLL_RETURN_IF_ERROR(check(options));
  ATOLL_ASSIGN_OR_RETURN(Islands all, set_up(options));
  AllReduceSpec spec = spec_of(options, all);
  AllReduceBenchResult result;
  const double islands = options.islands;
  const std::uint64_t resident = process_use().resident_bytes;
  reset_peak();
  for (int i = 0; i <= options.repeat; ++i) {  // the first is verified
    spec.attempt = Attempt{static_cast<std::uint32_t>(i + 1)};
    const double cpu = process_use().cpu_seconds;
    const auto begin = Clock::now();
    ATOLL_ASSIGN_OR_RETURN(const AllReduceReport report, average_once(spec, all, interrupt));
    const double seconds = Seconds(Clock::now() - begin).count();
    result.sent_bytes_per_island = report.bytes_sent;
    result.congestion_control = report.congestion_control;
    if (i == 0) {
      result.relative_error =
          sampled_error(options.wire, all.results[0], static_cast<std::int64_t>(all.inputs[0].size()), options.islands);
      if (result.relative_error <= tolerated_error(options.wire, options.islands)) continue;
      return Error{ErrorCode::kCorrupt, fmt::format("the mean is wrong: relative error {:.3g}", result.relative_error)};
    }
    result.seconds.push_back(seconds);
    result.cpu_seconds_per_island += (process_use().cpu_seconds - cpu) / islands / options.repeat;
  }
  const std::uint64_t peak = process_use().peak_resident_bytes;
  result.extra_bytes_per_island = (peak - std::min(peak, resident)) / all.islands.size();
  all.inputs.clear();
  all.means.clear();
  result.memcpy_seconds =
      static_cast<double>(options.payload_bytes) / memcpy_bytes_per_second(options.payload_bytes, kReferenceRepeats);
  std::vector<double> tcp;
  for (int i = 0; i < kReferenceRepeats && options.islands > 1; ++i) {
    ATOLL_ASSIGN_OR_RETURN(tcp.emplace_back(), tcp_ring_seconds(options.islands, result.sent_bytes_per_island));
  }
  result.tcp_seconds = tcp.empty() ? 0 : median(tcp);
  return result;
}

}  // namespace atl
