#include "net/collective/bench/all_reduce_bench.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "kernels/wire_codec.h"
#include "net/collective/bench/loopback_islands.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

using Inputs = std::vector<std::vector<float>>;

// Beyond what any wire format of at least 4 bits does to normal data.
constexpr double kImplausibleError = 0.5;
constexpr std::size_t kTcpBytes = std::size_t{256} << 20;

double cpu_seconds_so_far() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

// One island's values drawn, the others' made of them by turning and scaling: drawing all would take longer than all
// that is measured.
Inputs normal_inputs(int islands, std::size_t numel) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0.0f, 1e-3f);
  std::vector<float> drawn(std::min<std::size_t>(numel, 1'000'003));
  std::ranges::generate(drawn, [&] { return normal(random); });
  Inputs inputs(static_cast<std::size_t>(islands));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].resize(numel);
    std::size_t from = drawn.empty() ? 0 : (i * 7919 * 13) % drawn.size();
    for (float& value : inputs[i]) {
      value = drawn[from] * (i % 2 == 0 ? 1.0f : -0.75f);
      if (++from == drawn.size()) from = 0;
    }
  }
  return inputs;
}

double memcpy_seconds(const std::vector<float>& source) {
  std::vector<float> target(source.size());
  std::vector<double> times;
  for (int i = 0; i < 6; ++i) {
    const auto begin = Clock::now();
    std::memcpy(target.data(), source.data(), source.size() * sizeof(float));
    if (i > 0) times.push_back(Seconds(Clock::now() - begin).count());  // the first one touches the pages
  }
  return median(times);
}

Result<double> raw_tcp_bytes_per_second() {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd listening, listen_tcp({"127.0.0.1", 0}));
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd sender,
                         connect_tcp({"127.0.0.1", local_port(listening.get())}, deadline, nullptr, "raw TCP"));
  ATOLL_RETURN_IF_ERROR(wait_ready(listening.get(), POLLIN, deadline, nullptr, "raw TCP"));
  const UniqueFd receiver(::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const auto begin = Clock::now();
  std::jthread sending([&] {
    const Bytes bytes(std::size_t{256} << 10);
    for (std::size_t sent = 0; sent < kTcpBytes;) {
      const auto count = ::send(sender.get(), bytes.data(), std::min(bytes.size(), kTcpBytes - sent), MSG_NOSIGNAL);
      if (count > 0) sent += static_cast<std::size_t>(count);
      if (count <= 0 && !wait_ready(sender.get(), POLLOUT, deadline, nullptr, "raw TCP").ok()) return;
    }
  });
  Bytes bytes(std::size_t{256} << 10);
  for (std::size_t received = 0; received < kTcpBytes;) {
    const auto count = ::recv(receiver.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) received += static_cast<std::size_t>(count);
    if (count <= 0) ATOLL_RETURN_IF_ERROR(wait_ready(receiver.get(), POLLIN, deadline, nullptr, "raw TCP"));
  }
  return static_cast<double>(kTcpBytes) / Seconds(Clock::now() - begin).count();
}

// Relative to the root mean square of the exact mean.
double relative_error(const Inputs& inputs, WireFormat wire, const Bytes& canonical) {
  std::vector<float> values(inputs.front().size());
  decode_values(wire, canonical, values);
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double mean = 0;
    for (const auto& input : inputs) mean += input[i];
    mean /= static_cast<double>(inputs.size());
    error += (values[i] - mean) * (values[i] - mean);
    norm += mean * mean;
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

Status verify(const std::vector<std::variant<AllReduceReport, AllReduceFailure>>& outcomes,
              const std::vector<Bytes>& rooms) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (const auto* failure = std::get_if<AllReduceFailure>(&outcomes[i])) return failure->error;
    if (rooms[i] != rooms[0] ||
        std::get<AllReduceReport>(outcomes[i]).digest != std::get<AllReduceReport>(outcomes[0]).digest) {
      return Error{ErrorCode::kInternal, "members ended with different bytes"};
    }
  }
  return ok_status();
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<AllReduceBenchResults> run_all_reduce_bench(const AllReduceBenchOptions& options) {
  if (options.islands < 1 || options.islands > 64 || options.payload_numel < 1 || options.repeats < 1) {
    return Error{ErrorCode::kInvalidArgument, "1 to 64 islands, a payload of at least one value, at least one repeat"};
  }
  const auto numel = static_cast<std::size_t>(options.payload_numel);
  AllReduceBenchResults results;
  ATOLL_ASSIGN_OR_RETURN(results.raw_tcp_bytes_per_second, raw_tcp_bytes_per_second());
  ATOLL_ASSIGN_OR_RETURN(LoopbackIslands islands, LoopbackIslands::start(options.islands));
  AllReduceSpec spec = islands.spec();
  spec.wire = options.wire;
  spec.connections_per_edge = options.connections_per_edge;
  spec.threads = options.threads;
  const Inputs inputs = normal_inputs(options.islands, numel);
  results.memcpy_seconds = memcpy_seconds(inputs[0]);
  const auto room_bytes = static_cast<std::size_t>(encoded_bytes(options.wire, options.payload_numel));
  std::vector<Bytes> rooms(inputs.size(), Bytes(room_bytes));
  results.held_bytes = inputs.size() * (numel * sizeof(float) + room_bytes);
  for (int repeat = 0; repeat <= options.repeats; ++repeat) {
    spec.attempt = Attempt{static_cast<std::uint32_t>(repeat + 1)};
    const double cpu_before = cpu_seconds_so_far();
    const auto begin = Clock::now();
    const auto outcomes = islands.run(spec, inputs, rooms);
    const double seconds = Seconds(Clock::now() - begin).count();
    const double cpu_seconds = cpu_seconds_so_far() - cpu_before;
    ATOLL_RETURN_IF_ERROR(verify(outcomes, rooms));
    if (repeat == 0) {
      results.relative_error = relative_error(inputs, options.wire, rooms[0]);
      std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak until here, which the verification made
      if (results.relative_error > kImplausibleError) return Error{ErrorCode::kInternal, "the mean is wrong"};
      continue;
    }
    results.seconds.push_back(seconds);
    results.cpu_seconds.push_back(cpu_seconds);
    results.bytes_sent = std::get<AllReduceReport>(outcomes[0]).bytes_sent;
    results.congestion_control = std::get<AllReduceReport>(outcomes[0]).congestion_control;
  }
  results.peak_bytes = peak_resident_bytes();
  return results;
}

}  // namespace atl
