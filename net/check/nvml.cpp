#include "net/check/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>

#include "net/base/deadline.h"

namespace atl {
namespace {

// The part of nvml.h that is used. Its binary interface is stable: sizes and values are those of NVML 11 and later.
using Device = struct NvmlDeviceTag*;
using Return = int;
constexpr Return kSuccess = 0;
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kEnabled = 1;
constexpr int kTemperatureGpu = 0;
constexpr int kErrorUncorrected = 1;
constexpr int kCounterVolatile = 0;
constexpr unsigned long long kHeatReasons = 0x20 | 0x40;  // software's and hardware's thermal slowdown
// Why a clock is lower than it could be. Not among them: an idle card, and clocks that somebody chose.
struct ThrottleReason {
  unsigned long long mask;
  const char* name;
};
constexpr ThrottleReason kThrottleReasons[] = {
    {kHeatReasons, "heat"}, {0x4, "power cap"}, {0x80, "power brake"}, {0x8, "hardware slowdown"}};
struct Utilisation {
  unsigned gpu, memory;  // percent
};
struct Process {
  unsigned pid;
  unsigned long long memory;  // bytes; all ones: not known
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);
using ListProcesses = Return(Device, unsigned* count, Process*);
constexpr int kClockSm = 1;
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int value_type;
  Return result;
  unsigned long long value;  // a union, of which this is the largest
};
static_assert(sizeof(FieldValue) == 40);
constexpr unsigned kNvlinkSentKib = 138, kNvlinkReceivedKib = 139;  // data, counted up
constexpr unsigned kAllLinks = ~0u;
constexpr unsigned kMaxLinks = 18;
constexpr unsigned kMaxDevices = 64;

struct Api {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  // Of these, older drivers may lack some:
  Return (*ecc_mode)(Device, int* current, int* pending) = nullptr;
  Return (*ecc_errors)(Device, int error, int counter, unsigned long long*) = nullptr;
  Return (*remapped)(Device, unsigned*, unsigned*, unsigned* pending, unsigned* failed) = nullptr;
  Return (*temperature)(Device, int sensor, unsigned*) = nullptr;
  Return (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  Return (*max_pcie_generation)(Device, unsigned*) = nullptr;
  Return (*max_pcie_width)(Device, unsigned*) = nullptr;
  Return (*nvlink_state)(Device, unsigned link, int*) = nullptr;
  Return (*utilisation)(Device, Utilisation*) = nullptr;
  Return (*power_usage)(Device, unsigned* milliwatts) = nullptr;
  Return (*clock)(Device, int type, unsigned* megahertz) = nullptr;
  ListProcesses *computing = nullptr, *drawing = nullptr;
  Return (*field_values)(Device, int count, FieldValue*) = nullptr;
  Return (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  Return (*power_limit_range)(Device, unsigned* least, unsigned* most) = nullptr;  // milliwatts
  Return (*set_power_limit)(Device, unsigned milliwatts) = nullptr;
};

struct LibraryDeleter {
  void operator()(void* library) const noexcept { ::dlclose(library); }
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// False when a function is missing that every NVML has.
bool load(void* library, Api& api) {
  const bool whole =
      find(library, "nvmlInit_v2", api.init) && find(library, "nvmlShutdown", api.shutdown) &&
      find(library, "nvmlErrorString", api.error_string) &&
      find(library, "nvmlSystemGetDriverVersion", api.driver_version) &&
      find(library, "nvmlDeviceGetCount_v2", api.count) && find(library, "nvmlDeviceGetHandleByIndex_v2", api.handle) &&
      find(library, "nvmlDeviceGetName", api.name) && find(library, "nvmlDeviceGetMemoryInfo", api.memory);
  find(library, "nvmlSystemGetCudaDriverVersion", api.cuda_version);
  find(library, "nvmlDeviceGetEccMode", api.ecc_mode);
  find(library, "nvmlDeviceGetTotalEccErrors", api.ecc_errors);
  find(library, "nvmlDeviceGetRemappedRows", api.remapped);
  find(library, "nvmlDeviceGetTemperature", api.temperature);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", api.throttle_reasons);
  find(library, "nvmlDeviceGetMaxPcieLinkGeneration", api.max_pcie_generation);
  find(library, "nvmlDeviceGetMaxPcieLinkWidth", api.max_pcie_width);
  find(library, "nvmlDeviceGetNvLinkState", api.nvlink_state);
  find(library, "nvmlDeviceGetUtilizationRates", api.utilisation);
  find(library, "nvmlDeviceGetPowerUsage", api.power_usage);
  find(library, "nvmlDeviceGetClockInfo", api.clock);
  find(library, "nvmlDeviceGetFieldValues", api.field_values);
  // The second version has the same layout as the third; the first, of drivers before 2021, another.
  if (!find(library, "nvmlDeviceGetComputeRunningProcesses_v3", api.computing)) {
    find(library, "nvmlDeviceGetComputeRunningProcesses_v2", api.computing);
  }
  if (!find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", api.drawing)) {
    find(library, "nvmlDeviceGetGraphicsRunningProcesses_v2", api.drawing);
  }
  find(library, "nvmlDeviceGetPowerManagementLimit", api.power_limit);
  find(library, "nvmlDeviceGetPowerManagementLimitConstraints", api.power_limit_range);
  find(library, "nvmlDeviceSetPowerManagementLimit", api.set_power_limit);
  return whole;
}

// Calls a function that may be missing.
template <class Function, class... Arguments>
bool ask(Function* function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

std::string text_of(const char* buffer, std::size_t size) { return {buffer, ::strnlen(buffer, size)}; }

void read_health(const Api& api, Device handle, GpuDevice& device) {
  int current = 0, pending_mode = 0;
  if (ask(api.ecc_mode, handle, &current, &pending_mode)) device.ecc = current == kEnabled;
  unsigned long long errors = 0;
  if (device.ecc == true && ask(api.ecc_errors, handle, kErrorUncorrected, kCounterVolatile, &errors)) {
    device.uncorrected_errors = errors;
  }
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (ask(api.remapped, handle, &corrected, &uncorrected, &pending, &failed)) {
    device.remap_pending = pending != 0;
    device.remap_failed = failed != 0;
  }
  unsigned celsius = 0;
  if (ask(api.temperature, handle, kTemperatureGpu, &celsius)) device.celsius = celsius;
  unsigned milliwatts = 0;
  if (ask(api.power_limit, handle, &milliwatts)) device.power_limit_watts = milliwatts / 1e3;
  unsigned long long reasons = 0;
  if (ask(api.throttle_reasons, handle, &reasons)) device.throttled = (reasons & kHeatReasons) != 0;
}

void read_links(const Api& api, Device handle, GpuDevice& device) {
  unsigned value = 0;
  if (ask(api.max_pcie_generation, handle, &value)) device.pcie_generation = value;
  if (ask(api.max_pcie_width, handle, &value)) device.pcie_lanes = value;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int active = 0;
    if (!ask(api.nvlink_state, handle, link, &active)) break;
    device.nvlinks += active == kEnabled ? 1 : 0;
  }
}

std::string read_devices(const Api& api, GpuFacts& gpu) {
  std::array<char, 128> text{};
  const auto says = [&](const char* what, Return code) {
    return fmt::format("NVML: cannot {}: {}", what, api.error_string(code));
  };
  if (const Return code = api.driver_version(text.data(), text.size()); code != kSuccess) {
    return says("tell the driver's version", code);
  }
  gpu.driver = text_of(text.data(), text.size());
  int cuda = 0;
  if (ask(api.cuda_version, &cuda) && cuda > 0) gpu.cuda_version = static_cast<std::uint32_t>(cuda);
  unsigned count = 0;
  if (const Return code = api.count(&count); code != kSuccess) return says("count the GPUs", code);
  if (count > kMaxDevices) return fmt::format("NVML names {} GPUs, which cannot be", count);
  for (unsigned i = 0; i < count; ++i) {
    Device handle = nullptr;
    if (const Return code = api.handle(i, &handle); code != kSuccess) {
      return says(fmt::format("reach GPU {}", i).c_str(), code);
    }
    GpuDevice device;
    if (const Return code = api.name(handle, text.data(), text.size()); code != kSuccess) {
      return says(fmt::format("name GPU {}", i).c_str(), code);
    }
    device.name = text_of(text.data(), text.size());
    Memory memory{};
    if (const Return code = api.memory(handle, &memory); code != kSuccess) {
      return says(fmt::format("tell the memory of GPU {}", i).c_str(), code);
    }
    device.memory_bytes = memory.total;
    read_health(api, handle, device);
    read_links(api, handle, device);
    gpu.devices.push_back(std::move(device));
  }
  return {};
}

// Empty when it is set.
std::string limit_power_of(const Api& api, const GpuPower& power) {
  Device handle = nullptr;
  if (const Return code = api.handle(power.gpu, &handle); code != kSuccess) return api.error_string(code);
  unsigned least = 0, most = 0;
  const bool bounded = ask(api.power_limit_range, handle, &least, &most);
  if (bounded && (power.watts < least / 1e3 || power.watts > most / 1e3)) {
    return fmt::format("takes a power limit from {} to {} W, not {} W", least / 1e3, most / 1e3, power.watts);
  }
  if (api.set_power_limit == nullptr) return "its driver is too old to set a power limit";
  const Return code = api.set_power_limit(handle, static_cast<unsigned>(power.watts * 1e3));
  return code == kSuccess ? std::string() : api.error_string(code);
}

// ---- what the cards do now

std::string throttling_of(unsigned long long reasons) {
  std::string text;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if ((reasons & reason.mask) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", reason.name);
  }
  return text;
}

// Of all links, both ways, counted up; empty when the card has none or does not say.
std::optional<double> nvlink_bytes(const Api& api, Device handle) {
  FieldValue values[] = {{kNvlinkSentKib, kAllLinks, 0, 0, 0, kSuccess, 0},
                         {kNvlinkReceivedKib, kAllLinks, 0, 0, 0, kSuccess, 0}};
  if (!ask(api.field_values, handle, 2, static_cast<FieldValue*>(values))) return std::nullopt;
  if (values[0].result != kSuccess || values[1].result != kSuccess) return std::nullopt;
  return 1024.0 * (static_cast<double>(values[0].value) + static_cast<double>(values[1].value));
}

// Of a list that is longer than this the driver tells nothing.
void add_processes(ListProcesses* list, Device handle, std::vector<GpuProcess>& processes) {
  std::array<Process, 256> found{};
  auto count = static_cast<unsigned>(found.size());
  if (!ask(list, handle, &count, found.data())) return;
  for (unsigned i = 0; i < std::min<std::size_t>(count, found.size()) && processes.size() < kMostGpuProcesses; ++i) {
    const std::optional<double> memory =
        found[i].memory == ~0ull ? std::nullopt : std::optional(static_cast<double>(found[i].memory));
    const auto known = std::ranges::find(processes, found[i].pid, &GpuProcess::pid);  // one may compute and draw
    if (known == processes.end()) processes.push_back({found[i].pid, memory});
  }
}

// One card over time.
class WatchedGpu {
 public:
  WatchedGpu(const Api& api, Device handle, std::string name) : api_(api), handle_(handle), name_(std::move(name)) {}

  GpuReading read(Clock::time_point now) {
    GpuReading reading;
    GpuSample& gpu = reading.now;
    gpu.name = name_;
    Utilisation utilisation{};
    if (ask(api_.utilisation, handle_, &utilisation)) gpu.utilisation = utilisation.gpu / 100.0;
    Memory memory{};
    if (ask(api_.memory, handle_, &memory)) {
      gpu.memory_bytes = static_cast<double>(memory.used);
      gpu.memory_total_bytes = static_cast<double>(memory.total);
    }
    unsigned value = 0;
    if (ask(api_.power_usage, handle_, &value)) gpu.power_watts = value / 1e3;
    if (ask(api_.power_limit, handle_, &value)) gpu.power_limit_watts = value / 1e3;
    if (ask(api_.temperature, handle_, kTemperatureGpu, &value)) gpu.temperature_celsius = value;
    if (ask(api_.clock, handle_, kClockSm, &value)) gpu.sm_clock_hertz = value * 1e6;
    unsigned long long count = 0;
    if (ask(api_.throttle_reasons, handle_, &count)) gpu.throttling = throttling_of(count);
    if (ask(api_.ecc_errors, handle_, kErrorUncorrected, kCounterVolatile, &count)) gpu.ecc_errors = count;
    read_nvlink(gpu, now);
    add_processes(api_.computing, handle_, reading.processes);
    add_processes(api_.drawing, handle_, reading.processes);
    return reading;
  }

 private:
  void read_nvlink(GpuSample& gpu, Clock::time_point now) {
    const std::optional<double> bytes = nvlink_bytes(api_, handle_);
    const double seconds = Seconds(now - nvlink_at_).count();
    if (bytes && nvlink_ && *bytes >= *nvlink_ && seconds > 0) {
      gpu.nvlink_bytes_per_second = (*bytes - *nvlink_) / seconds;
    }
    nvlink_ = bytes;
    nvlink_at_ = now;
  }

  const Api& api_;
  const Device handle_;
  const std::string name_;
  std::optional<double> nvlink_;
  Clock::time_point nvlink_at_{};
};

// NVML, started; what is missing or wrong is a problem.
class Nvml {
 public:
  explicit Nvml(const std::string& library)
      : loaded_(::dlopen(library.empty() ? "libnvidia-ml.so.1" : library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!loaded_) {
      problem_ = fmt::format("cannot load NVML: {}", ::dlerror());
    } else if (!load(loaded_.get(), api_)) {
      problem_ = "the NVML of this machine lacks functions that every driver has had since 2013";
    } else if (const Return code = api_.init(); code != kSuccess) {
      problem_ = fmt::format("NVML does not start: {}", api_.error_string(code));
    }
  }
  ~Nvml() {
    if (problem_.empty()) api_.shutdown();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool found() const { return loaded_ != nullptr; }
  const std::string& problem() const { return problem_; }
  const Api& api() const { return api_; }

 private:
  const std::unique_ptr<void, LibraryDeleter> loaded_;
  Api api_;
  std::string problem_;
};

}  // namespace

GpuFacts read_nvml(const std::string& library) {
  GpuFacts gpu;
  const Nvml nvml(library);
  gpu.driver_found = nvml.found();
  // A machine without the system's NVML has no NVIDIA GPU, which is no problem.
  if (nvml.found() || !library.empty()) gpu.problem = nvml.problem();
  if (!nvml.problem().empty()) return gpu;
  gpu.problem = read_devices(nvml.api(), gpu);
  if (!gpu.problem.empty()) gpu.devices.clear();
  return gpu;
}

std::string watch_gpus(std::chrono::milliseconds period,
                       const std::function<bool(const std::vector<GpuReading>& gpus)>& tell,
                       const std::string& library) {
  const Nvml nvml(library);
  if (!nvml.problem().empty()) return nvml.problem();
  GpuFacts gpu;
  if (std::string problem = read_devices(nvml.api(), gpu); !problem.empty()) return problem;
  std::vector<WatchedGpu> cards;
  for (unsigned i = 0; i < gpu.devices.size(); ++i) {
    Device handle = nullptr;
    if (nvml.api().handle(i, &handle) != kSuccess) return fmt::format("NVML: cannot reach GPU {} any more", i);
    cards.emplace_back(nvml.api(), handle, gpu.devices[i].name);
  }
  if (cards.empty()) return "this machine has no GPU that NVML knows";
  for (;;) {
    std::vector<GpuReading> readings;
    for (WatchedGpu& card : cards) {
      readings.push_back(card.read(Clock::now()));
      readings.back().now.index = static_cast<std::uint32_t>(readings.size() - 1);
    }
    if (!tell(readings)) return {};
    std::this_thread::sleep_for(period);
  }
}

std::vector<std::string> limit_power(const std::vector<GpuPower>& wanted, const std::string& library) {
  const Nvml nvml(library);
  if (!nvml.problem().empty()) return {nvml.problem()};
  std::vector<std::string> problems;
  for (const GpuPower& power : wanted) {
    const std::string problem = limit_power_of(nvml.api(), power);
    if (!problem.empty()) problems.push_back(fmt::format("GPU {}: {}", power.gpu, problem));
  }
  return problems;
}

}  // namespace atl
