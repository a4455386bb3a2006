#include "net/check/probe_host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <ctime>
#include <fstream>

#include "kernels/instruction_set.h"
#include "net/base/memory.h"
#include "net/base/unique_fd.h"
#include "net/check/gpu_bounds.h"

namespace atl {
namespace {

constexpr std::size_t kMaxXids = 256;
constexpr int kMaxRecords = 100'000;  // of the kernel's log

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word.substr(0, 64);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at == text.data()) return std::nullopt;
  return value;
}

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

rlim_t hard_limit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_max : 0;
}

bool may_use_bbr() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kBbr = "bbr";
  return socket && ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kBbr.data(), kBbr.size()) == 0;
}

void read_kernel_log(const std::filesystem::path& path, HostFacts& host) {
  const UniqueFd log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // what the log's times are in
  const double now_microseconds = static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  std::array<char, 8192> record;
  for (int i = 0; i < kMaxRecords && host.xids.size() < kMaxXids; ++i) {
    const ssize_t count = ::read(log.get(), record.data(), record.size());  // one record a read
    if (count < 0 && errno == EPIPE) continue;                              // older ones were overwritten meanwhile
    if (count < 0 && errno != EAGAIN) return;
    host.kernel_log_readable = true;
    if (count <= 0) return;
    const auto xid = parse_xid({record.data(), static_cast<std::size_t>(count)}, now_microseconds);
    if (xid && xid->age_seconds <= kXidAgeThatCounts) host.xids.push_back(*xid);
  }
}

}  // namespace

std::optional<XidEvent> parse_xid(std::string_view record, double now_microseconds) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  const std::size_t mark = record.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  // "priority,sequence,microseconds,flags;message"
  std::size_t at = record.find(',');
  at = at == std::string_view::npos ? at : record.find(',', at + 1);
  if (at == std::string_view::npos || at > mark) return std::nullopt;
  const auto microseconds = parse_number(record.substr(at + 1));
  const std::size_t colon = record.find("): ", mark);
  if (!microseconds || colon == std::string_view::npos) return std::nullopt;
  const auto code = parse_number(record.substr(colon + 3));
  if (!code || *code > 100'000) return std::nullopt;
  const double age = (now_microseconds - static_cast<double>(*microseconds)) / 1e6;
  return XidEvent{static_cast<std::uint32_t>(*code), std::max(0.0, age)};
}

// The last of "least default most".
std::optional<std::uint64_t> most_of(const std::filesystem::path& limits) {
  std::ifstream file(limits);
  std::uint64_t least = 0, usual = 0, most = 0;
  return file >> least >> usual >> most && most > 0 ? std::optional(most) : std::nullopt;
}

HostFacts probe_host(const std::filesystem::path& root) {
  HostFacts host;
  host.cores = usable_cores();
  host.instructions = instruction_set_name(chosen_instruction_set());
  const UsableMemory memory = usable_memory(root);
  host.ram_bytes = memory.total;
  if (memory.available > 0) host.ram_available_bytes = memory.available;
  struct statvfs shm {};
  if (::statvfs((root / "dev/shm").c_str(), &shm) == 0) host.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
  host.nofile = hard_limit(RLIMIT_NOFILE);
  const rlim_t memlock = hard_limit(RLIMIT_MEMLOCK);
  if (memlock != RLIM_INFINITY) host.memlock_bytes = memlock;
  host.congestion_control = first_word(root / "proc/sys/net/ipv4/tcp_congestion_control");
  host.bbr_usable = may_use_bbr();
  host.tcp_send_bytes = most_of(root / "proc/sys/net/ipv4/tcp_wmem");
  host.tcp_receive_bytes = most_of(root / "proc/sys/net/ipv4/tcp_rmem");
  read_kernel_log(root / "dev/kmsg", host);
  return host;
}

}  // namespace atl
