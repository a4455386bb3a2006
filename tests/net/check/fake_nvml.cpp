// A libnvidia-ml for tests: behaves as the environment variable FAKE_NVML says. Two cards unless told otherwise. In the
// directory FAKE_NVML_DIR, if there is one: "celsius", the second card's temperature; "watts.0" and "watts.1", the
// power limits (700 W while there is no file), kept there when they are set; "denied", if nobody may set them; "draws",
// what each card draws in watts; "computing.0" to "drawing.1", who uses a card: a process and its MB a line.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace {

std::string_view mode() {
  const char* value = std::getenv("FAKE_NVML");
  return value != nullptr ? value : "";
}
void* const kCards[] = {reinterpret_cast<void*>(0x10), reinterpret_cast<void*>(0x20)};
bool is_second(void* card) { return card == kCards[1]; }

std::string path(const std::string& name) {
  const char* directory = std::getenv("FAKE_NVML_DIR");
  return (directory != nullptr ? directory : "/nowhere") + ("/" + name);
}
std::string watts_file(void* card) { return path(is_second(card) ? "watts.1" : "watts.0"); }
unsigned number_in(const std::string& file, unsigned otherwise) {
  std::ifstream stream(file);
  unsigned number = otherwise;
  return stream >> number ? number : otherwise;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (mode() == "hang") ::sleep(600);
  if (mode() == "crash") std::abort();
  return mode() == "mismatch" ? 18 : 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : code == 4 ? "Insufficient Permissions" : "GPU is lost";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.95.05");
  return 0;
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = mode() == "many" ? 100'000 : mode() == "none" ? 0 : 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** card) {
  *card = kCards[index];
  return mode() == "lost" && index == 1 ? 15 : 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  if (mode() == "endless name") {
    std::memset(text, 'x', size);  // without an end
  } else {
    std::snprintf(text, size, "NVIDIA H100 80GB HBM3");
  }
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 85'520'809'984ull;  // total, free, used
  memory[1] = 1;
  memory[2] = 1'000'000;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* card, unsigned* percent) {
  percent[0] = is_second(card) ? 98 : 7;
  percent[1] = 50;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = number_in(path("draws"), 0) * 1000;
  if (*milliwatts == 0) *milliwatts = 612'500;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* megahertz) {
  *megahertz = type == 1 ? 1980 : 0;  // of the multiprocessors
  return 0;
}
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int value_type, result;
  unsigned long long value;
};
// The second card has links, over which 1 MiB goes each way between two readings.
int nvmlDeviceGetFieldValues(void* card, int count, FieldValue* values) {
  static unsigned long long kib = 0;
  kib += 1024;
  for (int i = 0; i < count; ++i) {
    values[i].result = is_second(card) && values[i].scope == ~0u ? 0 : 3;
    values[i].value = kib;
  }
  return 0;
}
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
int list_processes(const std::string& file, unsigned* count, Process* processes) {
  std::ifstream stream(file);
  unsigned found = 0, megabytes = 0;
  for (Process process{}; stream >> process.pid >> megabytes; ++found) {
    if (found == *count) return 7;  // too small
    process.memory = megabytes * 1'000'000ull;
    processes[found] = process;
  }
  *count = found;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* card, unsigned* count, Process* processes) {
  return list_processes(path(is_second(card) ? "computing.1" : "computing.0"), count, processes);
}
// As drivers of 2021 have it.
int nvmlDeviceGetGraphicsRunningProcesses_v2(void* card, unsigned* count, Process* processes) {
  return list_processes(path(is_second(card) ? "drawing.1" : "drawing.0"), count, processes);
}
int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
  *current = *pending = 1;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* card, int error, int, unsigned long long* count) {
  *count = error == 1 && is_second(card) ? 3 : 0;
  return 0;
}
int nvmlDeviceGetRemappedRows(void* card, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = *uncorrected = *failed = 0;
  *pending = is_second(card) ? 1 : 0;
  return 0;
}
int nvmlDeviceGetTemperature(void* card, int, unsigned* celsius) {
  *celsius = is_second(card) ? number_in(path("celsius"), 85) : 40;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* card, unsigned long long* reasons) {
  *reasons = is_second(card) ? 0x40 : 0x1;  // heat; idle
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetPowerManagementLimit(void* card, unsigned* milliwatts) {
  *milliwatts = number_in(watts_file(card), 700) * 1000;
  return 0;
}
int nvmlDeviceGetPowerManagementLimitConstraints(void*, unsigned* least, unsigned* most) {
  *least = 200'000;
  *most = 700'000;
  return 0;
}
int nvmlDeviceSetPowerManagementLimit(void* card, unsigned milliwatts) {
  if (std::ifstream(path("denied"))) return 4;
  std::ofstream(watts_file(card)) << milliwatts / 1000;
  return 0;
}
// nvmlDeviceGetNvLinkState is missing here, as in old drivers.

}  // extern "C"
