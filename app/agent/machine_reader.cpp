#include "app/agent/machine_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "net/base/file.h"
#include "net/base/unix_time.h"
#include "net/check/probe_child.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAskTime{5};
constexpr std::size_t kMaxBytes = 1u << 20;

std::string word_in(const std::filesystem::path& file) {
  const auto text = read_file(file, 256);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

// The values of properties, without their types; none where the service is not there or does not answer.
std::vector<std::string> bus_values(std::vector<std::string> of, const AbortSignal& abort) {
  std::vector<std::string> arguments{"--system", "--auto-start=no", "get-property"};
  arguments.insert(arguments.end(), of.begin(), of.end());
  std::vector<std::string> values;
  const Status asked = run_probe_child(
      {"busctl", arguments, Deadline::after(kAskTime)}, abort,
      [&](std::string_view line) { values.emplace_back(line.substr(std::min(line.size(), line.find(' ') + 1))); });
  return asked.ok() ? values : std::vector<std::string>();
}

std::optional<bool> asks_battery(const AbortSignal& abort) {
  const auto values =
      bus_values({"org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower", "OnBattery"}, abort);
  return values.size() == 1 ? std::optional(values[0] == "true") : std::nullopt;
}

// NMMetered: 1 is yes, 3 is a guess of yes; 0 is unknown.
std::optional<bool> asks_metered(const AbortSignal& abort) {
  const auto values = bus_values({"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                                  "org.freedesktop.NetworkManager", "Metered"},
                                 abort);
  if (values.size() != 1 || values[0] == "0") return std::nullopt;
  return values[0] == "1" || values[0] == "3";
}

// logind's word for all sessions together: those of a desktop, and terminals by their input.
std::optional<std::int64_t> asks_unused(const AbortSignal& abort) {
  const auto values = bus_values({"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                                  "IdleHint", "IdleSinceHint"},
                                 abort);
  if (values.size() != 2) return std::nullopt;
  if (values[0] != "true") return 0;
  std::int64_t microseconds = 0;
  std::istringstream(values[1]) >> microseconds;
  return std::max<std::int64_t>(0, unix_seconds_now() - microseconds / 1'000'000);
}

}  // namespace

std::optional<ProcessorTicks> parse_processor_ticks(std::string_view proc_stat) {
  std::istringstream lines{std::string(proc_stat)};
  ProcessorTicks ticks;
  for (std::string line; std::getline(lines, line) && line.starts_with("cpu");) {
    if (!line.starts_with("cpu ")) {
      ++ticks.processors;
      continue;
    }
    // user nice system idle iowait irq softirq steal; guests are in user already.
    std::istringstream words(line.substr(4));
    std::uint64_t word = 0;
    for (int i = 0; i < 8 && words >> word; ++i) {
      ticks.all += word;
      if (i != 3 && i != 4) ticks.busy += word;
    }
  }
  return ticks.processors > 0 && ticks.all > 0 ? std::optional(ticks) : std::nullopt;
}

std::optional<std::uint64_t> parse_process_ticks(std::string_view pid_stat) {
  const auto name_end = pid_stat.rfind(')');  // a name may hold anything
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream words{std::string(pid_stat.substr(name_end + 1))};
  std::string skipped;
  for (int i = 0; i < 11; ++i) words >> skipped;
  std::uint64_t user = 0, system = 0, children_user = 0, children_system = 0;
  if (!(words >> user >> system >> children_user >> children_system)) return std::nullopt;
  return user + system + children_user + children_system;
}

std::optional<bool> battery_of(const std::filesystem::path& power_supplies) {
  std::error_code failed;
  bool battery = false, discharges = false, mains = false;
  for (const auto& supply : std::filesystem::directory_iterator(power_supplies, failed)) {
    const std::string type = word_in(supply.path() / "type");
    if (type == "Battery" && word_in(supply.path() / "scope") != "Device") {  // not a mouse's
      battery = true;
      discharges = discharges || word_in(supply.path() / "status") == "Discharging";
    } else if (type != "Battery" && word_in(supply.path() / "online") == "1") {
      mains = true;
    }
  }
  return battery ? std::optional(discharges && !mains) : std::nullopt;
}

MachineReader::MachineReader(OwnersRulesSettings wanted, Places places)
    : wanted_(std::move(wanted)),
      places_(std::move(places)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

MachineReader::~MachineReader() {
  stop_.raise("the agent ends");
  thread_.request_stop();
}

void MachineReader::set_trainer(pid_t pid) {
  const MutexLock lock(mutex_);
  trainer_ = pid;
}

MachineReading MachineReader::reading() const {
  const MutexLock lock(mutex_);
  return reading_;
}

void MachineReader::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const pid_t trainer = trainer_;
    lock.unlock();
    const MachineReading now = read(trainer);
    lock.lock();
    reading_ = now;
    changed_.wait(lock, stop, Deadline::after(places_.period), [] { return false; });
  }
}

MachineReading MachineReader::read(pid_t trainer) {
  MachineReading now;
  if (wanted_.load) now.others_load = others_load(trainer);
  if (wanted_.battery) {
    now.on_battery = asks_battery(stop_);
    if (!now.on_battery) now.on_battery = battery_of(places_.power_supplies);
  }
  if (wanted_.metered) now.metered = asks_metered(stop_);
  if (wanted_.idle_seconds) now.unused_seconds = asks_unused(stop_);
  return now;
}

// Between two readings; what waits for a processor is not counted, for beside a trainer everything waits.
std::optional<double> MachineReader::others_load(pid_t trainer) {
  const auto stat = read_file(places_.proc / "stat", kMaxBytes);
  const auto own = read_file(places_.proc / std::to_string(trainer) / "stat", kMaxBytes);
  const auto now = stat.ok() ? parse_processor_ticks(*stat) : std::nullopt;
  const auto own_ticks = (own.ok() ? parse_process_ticks(*own) : std::nullopt).value_or(0);
  const auto before = std::exchange(before_, now);
  const bool same = std::exchange(trainer_before_, trainer) == trainer;
  const std::uint64_t own_before = std::exchange(trainer_ticks_before_, own_ticks);
  // A trainer that began or ended meanwhile: its share is not known.
  if (!now || !before || !same || own_ticks < own_before || now->all <= before->all) return std::nullopt;
  const double busy =
      static_cast<double>(now->busy) - static_cast<double>(before->busy) - static_cast<double>(own_ticks - own_before);
  return std::max(0.0, busy) / static_cast<double>(now->all - before->all) * now->processors;
}

}  // namespace atl
