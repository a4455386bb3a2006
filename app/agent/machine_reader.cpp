#include "app/agent/machine_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "net/base/file.h"
#include "net/base/unix_time.h"
#include "net/check/probe_child.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kBusTime{5};
constexpr std::size_t kMaxStatBytes = 1u << 20;

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
      {"busctl", arguments, Deadline::after(kBusTime)}, abort,
      [&](std::string_view line) { values.emplace_back(line.substr(std::min(line.size(), line.find(' ') + 1))); });
  return asked.ok() ? values : std::vector<std::string>();
}

std::optional<bool> asks_battery(const AbortSignal& abort) {
  const auto values =
      bus_values({"org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower", "OnBattery"}, abort);
  return values.size() == 1 ? std::optional(values[0] == "true") : std::nullopt;
}

// NMMetered: 1 is yes, 3 is a guess of yes; all else pauses nothing, 0 (unknown) too.
std::optional<bool> asks_metered(const AbortSignal& abort) {
  const auto values = bus_values({"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                                  "org.freedesktop.NetworkManager", "Metered"},
                                 abort);
  return values.size() == 1 ? std::optional(values[0] == "1" || values[0] == "3") : std::nullopt;
}

// logind's word for all sessions together: those of a desktop, and terminals by their input. The time of its last word
// is 0 where a desktop has not said one.
void ask_presence(const AbortSignal& abort, MachineReading& now) {
  const auto values = bus_values({"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                                  "IdleHint", "IdleSinceHint"},
                                 abort);
  if (values.size() != 2) return;
  std::int64_t microseconds = 0;
  std::istringstream(values[1]) >> microseconds;
  const bool idle = values[0] == "true";
  now.unused_seconds = idle ? std::max<std::int64_t>(0, unix_seconds_now() - microseconds / 1'000'000) : 0;
  now.presence_never_said = !idle && microseconds == 0;
}

std::optional<double> number_in(const std::filesystem::path& file) {
  double number = 0;
  std::istringstream word(word_in(file));
  return word >> number ? std::optional(number) : std::nullopt;
}

void take_hotter(std::optional<double>& hottest, const std::optional<double>& milli_celsius) {
  if (milli_celsius) hottest = std::max(hottest.value_or(*milli_celsius / 1000), *milli_celsius / 1000);
}

// Of one chip. AMD's Tctl is higher than the silicon on some processors, where Tdie stands beside it.
std::optional<double> hottest_of_chip(const std::filesystem::path& chip) {
  std::optional<double> hottest, die;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(chip, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("temp") || !name.ends_with("_input")) continue;
    const std::string label = word_in(chip / (name.substr(0, name.size() - 5) + "label"));
    take_hotter(label == "Tdie" ? die : hottest, number_in(entry.path()));
  }
  return die ? die : hottest;
}

// A number that the kernel counts up; empty where it may not be read.
std::optional<std::uint64_t> count_in(const std::filesystem::path& file) {
  std::uint64_t count = 0;
  std::istringstream word(word_in(file));
  return word >> count ? std::optional(count) : std::nullopt;
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

std::optional<double> hottest_processor(const std::filesystem::path& hwmon, const std::filesystem::path& thermal) {
  constexpr std::array kChips{"coretemp", "k10temp", "zenpower", "cpu_thermal"};
  constexpr std::array kZones{"x86_pkg_temp", "cpu-thermal", "cpu_thermal"};
  std::optional<double> hottest;
  std::error_code failed;
  for (const auto& chip : std::filesystem::directory_iterator(hwmon, failed)) {
    if (std::ranges::find(kChips, word_in(chip.path() / "name")) == kChips.end()) continue;
    if (const auto celsius = hottest_of_chip(chip.path())) hottest = std::max(hottest.value_or(*celsius), *celsius);
  }
  if (hottest) return hottest;
  for (const auto& zone : std::filesystem::directory_iterator(thermal, failed)) {
    if (std::ranges::find(kZones, word_in(zone.path() / "type")) == kZones.end()) continue;
    take_hotter(hottest, number_in(zone.path() / "temp"));
  }
  return hottest;
}

std::vector<PackageEnergy> package_energies(const std::filesystem::path& powercap) {
  std::vector<PackageEnergy> energies;
  std::error_code failed;
  for (const auto& zone : std::filesystem::directory_iterator(powercap, failed)) {
    // Zones within a package (its cores, its memory) are in its count; intel-rapl-mmio counts the same once more.
    const bool counts = zone.path().filename().string().starts_with("intel-rapl:");
    if (!counts || !word_in(zone.path() / "name").starts_with("package")) continue;
    const auto microjoules = count_in(zone.path() / "energy_uj");
    if (!microjoules) continue;
    energies.push_back(
        {zone.path().filename().string(), *microjoules, count_in(zone.path() / "max_energy_range_uj").value_or(0)});
  }
  return energies;
}

std::optional<double> watts_between(const std::vector<PackageEnergy>& before, const std::vector<PackageEnergy>& now,
                                    double seconds) {
  std::optional<double> microjoules;
  for (const PackageEnergy& energy : now) {
    const auto then = std::ranges::find(before, energy.package, &PackageEnergy::package);
    if (then == before.end()) continue;
    const bool anew = energy.microjoules < then->microjoules;
    const std::uint64_t used = energy.microjoules - then->microjoules + (anew ? energy.range : 0);
    microjoules = microjoules.value_or(0) + static_cast<double>(used);
  }
  return microjoules && seconds > 0 ? std::optional(*microjoules / 1e6 / seconds) : std::nullopt;
}

MachineReader::MachineReader(OwnersRulesSettings wanted, Places places)
    : places_(std::move(places)),
      wanted_(std::move(wanted)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

MachineReader::~MachineReader() {
  stop_.raise("the agent ends");
  thread_.request_stop();
}

void MachineReader::set_trainer(pid_t pid) {
  const MutexLock lock(mutex_);
  trainer_ = pid;
}

void MachineReader::set_wanted(OwnersRulesSettings wanted) {
  const MutexLock lock(mutex_);
  wanted_ = std::move(wanted);
  reading_.reset();
  ++changes_;
  changed_.notify_all();
}

std::optional<MachineReading> MachineReader::reading() const {
  const MutexLock lock(mutex_);
  return reading_;
}

void MachineReader::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const pid_t trainer = trainer_;
    const OwnersRulesSettings wanted = wanted_;
    const std::uint64_t change = changes_;
    const auto is_another = [&]() ATOLL_REQUIRES(mutex_) { return changes_ != change; };
    lock.unlock();
    const MachineReading now = read(wanted, trainer);
    lock.lock();
    if (!is_another()) reading_ = now;
    changed_.wait(lock, stop, Deadline::after(places_.period), is_another);
  }
}

MachineReading MachineReader::read(const OwnersRulesSettings& wanted, pid_t trainer) {
  MachineReading now;
  if (wanted.load) now.others_load = others_load(trainer);
  if (wanted.cpu_celsius) now.cpu_celsius = hottest_processor(places_.hwmon, places_.thermal);
  if (wanted.watts) now.cpu_watts = processors_watts();
  if (wanted.battery) {
    now.on_battery = asks_battery(stop_);
    if (!now.on_battery) now.on_battery = battery_of(places_.power_supplies);
  }
  if (wanted.metered) now.metered = asks_metered(stop_);
  if (wanted.idle_seconds) ask_presence(stop_, now);
  return now;
}

std::optional<double> MachineReader::processors_watts() {
  std::vector<PackageEnergy> now = package_energies(places_.powercap);
  const Clock::time_point at = Clock::now();
  const double seconds = Seconds(at - std::exchange(energies_at_, at)).count();
  const auto watts = watts_between(energies_before_, now, seconds);
  energies_before_ = std::move(now);
  return watts;
}

// Between two readings; what waits for a processor is not counted, for beside a trainer everything waits.
std::optional<double> MachineReader::others_load(pid_t trainer) {
  const auto stat = read_file(places_.proc / "stat", kMaxStatBytes);
  const auto own = read_file(places_.proc / std::to_string(trainer) / "stat", kMaxStatBytes);
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
