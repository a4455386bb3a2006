// atoll-gpu-probe: what `atoll check` and the agent ask in a child process, because drivers hang. See
// net/check/gpu_probe.h and net/check/gpu_power.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "net/base/gpu_libraries.h"
#include "net/base/standard_output.h"
#include "net/check/nvml.h"
#include "net/wire/json_archive.h"
#ifdef ATOLL_CUDA
#include "net/check/gpu_measure.h"
#endif

namespace {

constexpr int kUsage = 2;
constexpr double kLongest = 600;

int usage() {
  fmt::print(
      stderr,
      "usage: atoll-gpu-probe list | libraries | limit GPU=WATTS... | measure [--seconds S] | sample SECONDS COUNT\n"
      "                       [--nvml FILE]\n"
      "people use `atoll check` and limits.gpu_power\n");
  return kUsage;
}

int measure([[maybe_unused]] double seconds) {
#ifdef ATOLL_CUDA
  return atl::measure_gpus_with_cuda(seconds);
#else
  fmt::print("{}\n{}\n", R"({"skip":"this atoll was built without CUDA, so it cannot measure GPUs"})",
             R"({"done":true})");
  return 0;
#endif
}

int list(const std::string& nvml) {
  fmt::print("{}\n", atl::dump_json(atl::to_json(atl::read_nvml(nvml))));
  return 0;
}

int libraries() {
  nlohmann::json missing = nlohmann::json::array();
  for (const atl::MissingLibrary& one : atl::missing_gpu_libraries()) {
    missing.push_back({{"name", atl::name_of(one.library)}, {"why", one.why}});
  }
  fmt::print("{}\n", atl::dump_json({{"missing", std::move(missing)}}));
  return 0;
}

// Every so many seconds, so many times: whoever wants more starts it again.
int sample(double seconds, long count, const std::string& nvml) {
  const auto period = std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  const auto tell = [&](const std::vector<atl::GpuReading>& gpus) {
    const bool written = std::puts(atl::dump_json({{"gpus", atl::to_json(gpus)}}).c_str()) >= 0;
    return written && std::fflush(stdout) == 0 && --count > 0;
  };
  const std::string problem = atl::watch_gpus(period, tell, nvml);
  if (!problem.empty()) fmt::print("{}\n", atl::dump_json({{"problem", problem}}));
  return 0;
}

int limit(const std::vector<std::string_view>& arguments, const std::string& nvml) {
  std::vector<atl::GpuPower> wanted;
  for (const std::string_view argument : arguments) {
    const auto power = atl::parse_gpu_power(argument);
    if (!power.ok()) return usage();
    wanted.push_back(*power);
  }
  for (const std::string& problem : atl::limit_power(wanted, nvml)) fmt::print("{}\n", problem);
  return 0;
}

int run(int argc, char** argv) {
  std::vector<std::string_view> arguments(argv + std::min(argc, 1), argv + argc);
  std::string nvml;
  const auto option = std::ranges::find(arguments, "--nvml");
  if (option != arguments.end() && option + 1 != arguments.end()) {
    nvml = *(option + 1);
    arguments.erase(option, option + 2);
  }
  if (arguments.empty()) return usage();
  const std::string_view command = arguments.front();
  arguments.erase(arguments.begin());
  if (command == "list" && arguments.empty()) return list(nvml);
  if (command == "libraries" && arguments.empty()) return libraries();
  if (command == "limit" && !arguments.empty()) return limit(arguments, nvml);
  if (command == "sample" && arguments.size() == 2) {
    const double seconds = std::atof(arguments[0].data());
    const long count = std::atol(arguments[1].data());
    return seconds >= 0.01 && seconds <= kLongest && count > 0 ? sample(seconds, count, nvml) : usage();
  }
  const bool chooses_time = arguments.size() == 2 && arguments[0] == "--seconds";
  if (command == "measure" && (arguments.empty() || chooses_time)) {
    const double seconds = chooses_time ? std::atof(arguments[1].data()) : 30;
    return seconds > 0 && seconds <= kLongest ? measure(seconds) : usage();
  }
  return usage();
}

}  // namespace

int main(int argc, char** argv) {
  atl::StandardOutput output;
  return output.finish(run(argc, argv), "atoll-gpu-probe");
}
