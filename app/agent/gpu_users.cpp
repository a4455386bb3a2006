#include "app/agent/gpu_users.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "net/base/file.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr int kMostAncestors = 64;

bool is_there(pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

// 0: it is gone, or may not be read.
pid_t parent_of(pid_t pid) {
  const auto stat = read_file(std::filesystem::path("/proc") / std::to_string(pid) / "stat", 4096);
  const auto name_end = stat.ok() ? stat->rfind(')') : std::string::npos;  // a name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream words(stat->substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  return words >> state >> parent ? parent : 0;
}

std::string name_of(pid_t pid) {
  const auto comm = read_file(std::filesystem::path("/proc") / std::to_string(pid) / "comm", 256);
  const std::string name = comm.ok() ? printable(comm->substr(0, comm->find('\n'))) : std::string();
  return name.empty() ? fmt::format("process {}", pid) : fmt::format("{}, process {}", name, pid);
}

std::optional<GpusReading::Others> others_of(const GpuReading& gpu, pid_t trainer) {
  std::optional<GpusReading::Others> others;
  double most = -1;
  for (const GpuProcess& process : gpu.processes) {
    const auto pid = static_cast<pid_t>(process.pid);
    if (pid <= 0 || !is_there(pid) || is_of_this_agent(pid, trainer)) continue;
    if (!others) others = GpusReading::Others{.gpu = gpu.now.index};
    const double bytes = process.memory_bytes.value_or(0);
    others->bytes += bytes;
    others->bytes_known = others->bytes_known && process.memory_bytes.has_value();
    if (bytes <= most) continue;
    most = bytes;
    others->who = name_of(pid);
  }
  return others;
}

}  // namespace

bool is_of_this_agent(pid_t pid, pid_t trainer) {
  if (trainer > 0 && (pid == trainer || ::getsid(pid) == trainer)) return true;
  for (int i = 0; pid > 1 && i < kMostAncestors; ++i, pid = parent_of(pid)) {
    if (pid == ::getpid()) return true;
  }
  return false;
}

std::optional<GpusReading::Others> others_on(const std::vector<GpuReading>& gpus, pid_t trainer) {
  std::optional<GpusReading::Others> most;
  for (const GpuReading& gpu : gpus) {
    const auto others = others_of(gpu, trainer);
    const bool more = others && (!most || (most->bytes_known && (!others->bytes_known || others->bytes > most->bytes)));
    if (more) most = others;
  }
  return most;
}

}  // namespace atl
