// atoll-gpu-probe: what `atoll check` asks in a child process, because drivers hang. See net/check/gpu_probe.h.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "net/check/nvml.h"
#include "net/wire/json_archive.h"
#ifdef ATOLL_CUDA
#include "net/check/gpu_measure.h"
#endif

namespace {

constexpr int kUsage = 2;
constexpr double kLongest = 600;

int usage() {
  fmt::print(stderr, "usage: atoll-gpu-probe list [--nvml FILE] | measure [--seconds S]; people use `atoll check`\n");
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

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const std::string_view option = argc == 4 ? argv[2] : "";
  if (argc != 2 && argc != 4) return usage();
  if (command == "list" && (argc == 2 || option == "--nvml")) {
    fmt::print("{}\n", atl::dump_json(atl::to_json(atl::read_nvml(argc == 4 ? argv[3] : ""))));
    return 0;
  }
  if (command == "measure" && (argc == 2 || option == "--seconds")) {
    const double seconds = argc == 4 ? std::atof(argv[3]) : 30;
    return seconds > 0 && seconds <= kLongest ? measure(seconds) : usage();
  }
  return usage();
}
