// What the passes that end a round cost (net/recovery/outer_step.h), beside what this machine's memory and OpenSSL's
// SHA-256 give on all processors, measured in the same run, and beside the same work done by one thread, a pass at a
// time. The best of some repetitions counts. GB: 1e9 bytes.
//
//   outer_path [--parameters 1e9] [--repeats 3]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/base/deadline.h"
#include "net/base/parallel.h"
#include "net/recovery/outer_state.h"
#include "net/recovery/outer_step.h"

namespace {

using namespace atl;

constexpr double kTenBillion = 1e10;
constexpr unsigned kCoresThere = 64;
constexpr std::size_t kPart = std::size_t{1} << 20;  // values that a thread copies or encodes at once
constexpr WireFormat kWire = WireFormat::kInt8Block;
constexpr OuterSgd kHyper{0.7f, 0.9f};

double best_seconds(int repeats, const std::function<void()>& pass) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const auto began = Clock::now();
    pass();
    best = std::min(best, Seconds(Clock::now() - began).count());
  }
  return best;
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

struct Island {
  explicit Island(std::size_t numel)
      : theta(numel),
        velocity(numel),
        local(numel),
        canonical(static_cast<std::size_t>(encoded_bytes(kWire, static_cast<std::int64_t>(numel)))),
        ranges{{0, static_cast<std::int64_t>(numel)}},
        chunks(state_chunks(numel)) {
    parallel_for((numel + kPart - 1) / kPart, [&](std::size_t part) {
      const std::size_t end = std::min(numel, (part + 1) * kPart);
      for (std::size_t i = part * kPart; i < end; ++i) {
        theta[i] = static_cast<float>(i % 1009) * 1e-3f;
        local[i] = theta[i] + static_cast<float>(i % 503) * 1e-6f;
      }
    });
    encode_values(kWire, std::span(local).first(numel), canonical);
  }
  std::vector<float> theta, velocity, local;
  Bytes canonical;
  std::vector<ParameterRange> ranges;
  std::vector<Digest> chunks;
};

void report(const char* what, double seconds, double bytes, double per_second, const char* of, double numel) {
  const double there = seconds * kTenBillion / numel * std::thread::hardware_concurrency() / kCoresThere;
  fmt::print("{:<44} {:>8.3f} s {:>8.2f} GB/s {:>7.2f} of {:<8} {:>8.2f} s\n", what, seconds, bytes / seconds / 1e9,
             bytes / seconds / per_second, of, there);
}

void one_thread(Island& island) {
  std::transform(island.theta.begin(), island.theta.end(), island.local.begin(), island.local.begin(), std::minus());
  if (!finite_squared_norm(island.local)) std::abort();
}

int run(std::size_t numel, int repeats) {
  Island island(numel);
  const auto n = static_cast<double>(numel);
  const std::size_t parts = (numel + kPart - 1) / kPart;
  const auto in_part = [&](std::size_t part) { return std::min(kPart, numel - part * kPart); };
  fmt::print("{} parameters, {} processors; at the right: ten billion on {} such cores\n", numel,
             std::thread::hardware_concurrency(), kCoresThere);
  // The mix of the pseudo-gradient's pass: two streams are read, one of them is written.
  const double memory_seconds = best_seconds(repeats, [&] {
    parallel_for(parts, [&](std::size_t part) {
      const float* from = island.theta.data() + part * kPart;
      float* to = island.velocity.data() + part * kPart;
      for (std::size_t i = 0, end = in_part(part); i < end; ++i) to[i] += from[i];
    });
  });
  const double memory = 12 * n / memory_seconds;
  report("memory: y += x", memory_seconds, 12 * n, memory, "memory", n);
  const std::span<const float> theta(island.theta), velocity(island.velocity);
  const double sha_seconds = best_seconds(repeats, [&] {
    parallel_for(island.chunks.size(),
                 [&](std::size_t i) { island.chunks[i] = chunk_digest(of_chunk(theta, i), of_chunk(velocity, i)); });
  });
  const double sha = 8 * n / sha_seconds;
  report("SHA-256 of the state, by OpenSSL", sha_seconds, 8 * n, memory, "memory", n);
  report("the same, several chunks in step",
         best_seconds(repeats, [&] { make_state_manifest(OuterStep{}, island.theta, island.velocity); }), 8 * n, sha,
         "OpenSSL", n);
  report("pseudo-gradient + norm",
         best_seconds(repeats,
                      [&] {
                        if (!pseudo_gradient(island.theta, island.ranges, island.local)) std::abort();
                      }),
         12 * n, memory, "memory", n);
  report("norm of the average",
         best_seconds(repeats,
                      [&] {
                        if (!average_squared_norm(kWire, island.canonical, static_cast<std::int64_t>(numel)))
                          std::abort();
                      }),
         static_cast<double>(island.canonical.size()), memory, "memory", n);
  report("decode + Nesterov + hash",
         best_seconds(repeats,
                      [&] {
                        outer_step(island.theta, island.velocity, island.ranges, kWire, island.canonical, kHyper,
                                   island.chunks);
                      }),
         8 * n, sha, "OpenSSL", n);
  fmt::print("{:<44} {:>8.2f} bytes a parameter\n", "peak memory of all of it", peak_bytes() / n);
  report("one thread: difference, then norm", best_seconds(1, [&] { one_thread(island); }), 12 * n, memory, "memory",
         n);
  report("one thread: decode + Nesterov, then hash",
         best_seconds(1,
                      [&] {
                        outer_nesterov(island.theta, island.velocity, kWire, island.canonical, kHyper);
                        for (std::size_t i = 0; i < island.chunks.size(); ++i) {
                          island.chunks[i] = chunk_digest(of_chunk(theta, i), of_chunk(velocity, i));
                        }
                      }),
         8 * n, sha, "OpenSSL", n);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  double numel = 1e9;
  int repeats = 3;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--parameters") == 0) numel = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::atoi(argv[i + 1]);
  }
  if (argc % 2 == 0 || numel < 1 || numel > 1e11 || repeats < 1) {
    fmt::print(stderr, "usage: outer_path [--parameters 1e9] [--repeats 3]\n");
    return 2;
  }
  return run(static_cast<std::size_t>(numel), repeats);
}
