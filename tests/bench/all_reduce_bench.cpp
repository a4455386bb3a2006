// Time of one all-reduce of N islands in this process, over TLS on 127.0.0.1: verified first, then timed beside memcpy.
//   all_reduce_bench [islands = 4] [values = 16777216] [int8-block | fp32] [connections an edge = 2] [repeats = 5]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <cstring>
#include <random>

#include "kernels/wire_codec.h"
#include "tests/net/collective/loopback_ring.h"

using namespace atl;

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double memcpy_seconds(const std::vector<float>& source) {
  std::vector<float> target(source.size());
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    std::memcpy(target.data(), source.data(), source.size() * sizeof(float));
    times.push_back(Seconds(Clock::now() - begin).count());
  }
  return target.back() == source.back() ? median(times) : 0;
}

// Relative to the root mean square of the exact mean.
double relative_error(const std::vector<std::vector<float>>& inputs, WireFormat wire, const Bytes& canonical) {
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
  return std::sqrt(error / norm);
}

}  // namespace

int main(int argc, char** argv) {
  const int islands = argc > 1 ? std::atoi(argv[1]) : 4;
  const auto numel = static_cast<std::size_t>(argc > 2 ? std::atoll(argv[2]) : 16'777'216);
  const WireFormat wire = argc > 3 && std::string(argv[3]) == "fp32" ? WireFormat::kFp32 : WireFormat::kInt8Block;
  const int connections = argc > 4 ? std::atoi(argv[4]) : 2;
  const int repeats = argc > 5 ? std::atoi(argv[5]) : 5;

  LoopbackRing ring(islands);
  AllReduceSpec spec = ring.spec(wire);
  spec.connections_per_edge = connections;
  std::vector<std::vector<float>> inputs(static_cast<std::size_t>(islands), std::vector<float>(numel));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 1e-3f);
  for (auto& input : inputs) std::ranges::generate(input, [&] { return normal(random); });

  if (argc > 6) spec.threads = std::atoi(argv[6]);
  std::vector<Bytes> rooms;
  std::vector<double> times;
  for (int repeat = 0; repeat <= repeats; ++repeat) {  // the first warms up, and is verified
    spec.attempt = Attempt{static_cast<std::uint32_t>(repeat + 1)};
    const auto begin = Clock::now();
    const auto cb = std::clock();
    auto results = ring.run(spec, inputs, {}, std::move(rooms));
    const double seconds = Seconds(Clock::now() - begin).count();
    double inner=0; for (const MemberResult& result : results) if(result.ok()) inner=std::max(inner,result.report().duration.count());
    fmt::print("wall {:.3f} inner {:.3f} cpu {:.3f}\n", seconds, inner, double(std::clock()-cb)/CLOCKS_PER_SEC);
    for (const MemberResult& result : results) {
      if (!result.ok() || result.canonical != results[0].canonical) {
        fmt::print("failed: {}\n", result.ok() ? "members hold different bytes" : result.failure().error.message);
        return 1;
      }
    }
    fmt::print("reused {} cc {}\n", results[0].report().connections_reused, results[0].report().congestion_control);
    if (repeat > 0) times.push_back(seconds);
    if (repeat == 0) fmt::print("relative error {:.3g}\n", relative_error(inputs, wire, results[0].canonical));
    rooms.clear();
    for (auto& result : results) rooms.push_back(std::move(result.canonical));
  }
  const double payload_gb = static_cast<double>(numel * sizeof(float)) / 1e9;
  const double seconds = median(times);
  const double copy = memcpy_seconds(inputs[0]);
  fmt::print(
      "{} islands, {:.3f} GB of fp32, {}, {} connections an edge: {:.3f} s, {:.2f} GB/s; memcpy {:.3f} s ({:.0f} x)\n",
      islands, payload_gb, wire == WireFormat::kFp32 ? "fp32" : "int8-block", connections, seconds,
      payload_gb / seconds, copy, seconds / copy);
  return 0;
}
