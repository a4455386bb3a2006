#include "app/config/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "app/config/cap_hours.h"
#include "app/config/gpu_list.h"
#include "app/config/quantity.h"
#include "app/config/training_hours.h"
#include "net/base/address.h"

namespace atl {
namespace {

constexpr std::size_t kMaxValueBytes = 1024, kMaxTextBytes = 64;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;

Error not_a(const ConfigKey& key, std::string_view text, std::string_view wanted) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} = '{}': must be {}", key.name, text.substr(0, kMaxTextBytes), wanted)};
}

Result<std::string> normalise_bytes(const ConfigKey& key, std::string_view text) {
  auto quantity = parse_quantity(text);
  const auto bytes = quantity ? bytes_of(*quantity) : std::nullopt;
  if (!bytes || *bytes > static_cast<double>(kMaxBytes)) {
    return not_a(key, text, "a size with its unit, for instance 200 MB or 1.5 GB");
  }
  if (quantity->unit.empty()) quantity->unit = "B";
  return quantity->text();
}

Result<std::string> normalise_rate(const ConfigKey& key, std::string_view text) {
  auto cap = normalised_cap(text);
  if (!cap) return not_a(key, text, kCapWanted);
  return std::move(*cap);
}

Result<std::string> normalise_duration(const ConfigKey& key, std::string_view text) {
  if (!parse_duration(text)) return not_a(key, text, kDurationWanted);
  std::string value(text);
  std::erase_if(value, [](char c) { return c == ' ' || c == '\t'; });
  return value;
}

Result<std::string> normalise_hours(const ConfigKey& key, std::string_view text) {
  const auto hours = parse_training_hours(text);
  if (hours.ok()) return to_string(*hours);
  return not_a(key, text, "hours of the day, for instance 22:00-06:00, several apart by commas");
}

Result<std::string> normalise_cap_hours(const ConfigKey& key, std::string_view text) {
  const auto hours = parse_cap_hours(text);
  if (hours.ok()) return to_string(*hours);
  return hours.error().with_context(key.name);
}

Result<std::string> normalise_whole(const ConfigKey& key, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < key.low || number > key.high) {
    return not_a(key, text, fmt::format("a whole number from {} to {}", key.low, key.high));
  }
  return std::to_string(number);
}

Result<std::string> normalise_word(const ConfigKey& key, std::string_view text) {
  std::istringstream words{key.words};
  for (std::string word; words >> word;) {
    if (word == text) return word;
  }
  return not_a(key, text, fmt::format("one of: {}", key.words));
}

// Nothing where one is no outer step.
std::optional<std::set<std::uint32_t>> parse_steps(std::string_view text) {
  std::set<std::uint32_t> steps;
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = trimmed(text.substr(0, comma));
    text.remove_prefix(std::min(text.size(), comma + 1));
    std::uint32_t step = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), step);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    steps.insert(step);
  }
  return steps;
}

Result<std::string> normalise_steps(const ConfigKey& key, std::string_view text) {
  const auto steps = parse_steps(text);
  if (!steps) return not_a(key, text, "rounds, for instance 12, several apart by commas");
  return fmt::format("{}", fmt::join(*steps, ", "));
}

Result<std::string> normalise_endpoint(const ConfigKey& key, std::string_view text) {
  std::string_view host = text;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) host.remove_prefix(scheme.size());
  }
  if (host.ends_with('/')) host.remove_suffix(1);
  const bool good = text.empty() || (host.size() < text.size() && (is_host(host) || parse_address(host).ok()));
  if (!good) return not_a(key, text, "https://HOST or https://HOST:PORT (http:// for a store of one's own), or empty");
  return std::string(text);
}

Result<std::string> normalise_file(const ConfigKey& key, std::string_view text) {
  if (text.empty() || text.starts_with('/')) return std::string(text);
  return not_a(key, text, "an absolute path, or empty");
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

const std::vector<ConfigKey>& config_keys() {
  using enum ConfigType;
  static const std::vector<ConfigKey> keys = {
      {"island.name", kText, "", "What others see; empty: the host's name"},
      {"island.listen", kAddress, "0.0.0.0:0", "Address and port for the other islands; port 0: any free one"},
      {"island.advertise", kText, "", "Host that the other islands dial; empty: the one that the hub sees"},
      {"island.region", kText, "", "Where it stands, for the others to see: a town or country; empty: not said"},
      {"island.threads", kWhole, "0", "Compute threads; 0: all cores", 0, 1024},
      {"island.local_ranks", kWhole, "0",
       "Shards of the model on this machine; 0: one a GPU, or one a core where the processor computes", 0, 64},
      {"island.micro_batch", kWhole, "0",
       "Sequences that a shard computes at once; 0: as many as the memory allows, and no more than make it faster", 0,
       1 << 20},
      {"island.device", kOneOf, "auto",
       "What computes. auto: GPUs, those that island.gpus allows, where there are any that can and the model fits on "
       "them, else the processor; processor; gpu: GPUs, or nothing",
       0, 0, "auto processor gpu"},
      {"island.precision", kOneOf, "auto",
       "In which numbers the model is computed, with fp32 parameters: bf16 on GPUs and processors that have it; auto: "
       "bf16 on GPUs, fp32 on the processor",
       0, 0, "auto fp32 bf16"},
      {"island.gpus", kGpus, "all", "GPUs that the trainer may use: all, none, or for instance 0-3,6"},
      {"island.data_cache", kBytes, "10 GB",
       "What a run's data may take on the disk: it is fetched when it is needed, and what was used least recently "
       "goes"},
      {"island.data_mirrors", kOneOf, "https",
       "Which places that a run names its data may be fetched from, beside its islands and its hub. https: https:// "
       "and "
       "s3:// on the internet; web: http:// and private networks too; all: and paths of this machine",
       0, 0, "none https web all"},
      {"island.credit", kOneOf, "none",
       "How the cards of exported models count this island. name: by its name; none: with all that are not named", 0, 0,
       "none name"},
      {"limits.upload", kRate, "none",
       "What the island may send in all: rounds, what it serves to others, what it publishes"},
      {"limits.upload_by_hours", kCapHours, "",
       "Other limits at given hours of the day, local time, for instance 08:00-18:00 20 Mbit/s, 23:00-06:00 none; "
       "empty: the same at all hours"},
      {"limits.download", kRate, "none", "What the island may receive in all: rounds, states, data, tasks to evaluate"},
      {"limits.download_by_hours", kCapHours, "",
       "Other limits at given hours of the day, local time, as limits.upload_by_hours; empty: the same at all hours"},
      {"limits.gpu_power", kWhole, "0",
       "Watts that each GPU may draw while training (needs root); 0: as the driver has it", 0, 10'000},
      {"limits.gpu_temperature", kWhole, "0", "Degrees Celsius above which training pauses; 0: no limit", 0, 120},
      {"limits.cpu_temperature", kWhole, "0",
       "Degrees Celsius of the processor above which training pauses; 0: no limit", 0, 120},
      {"limits.power", kWhole, "0",
       "Watts that processors and the island's GPUs may draw together, as far as the system tells it, before training "
       "pauses; 0: no limit",
       0, 100'000},
      {"schedule.hours", kDayHours, "", "Hours of the day in which to train, local time; empty: always"},
      {"rules.load", kWhole, "0",
       "Percent of one processor that other programs may keep busy before training pauses, 150: one and a half; 0: "
       "whatever they do",
       0, 102'400},
      {"rules.gpu", kBytes, "0 B",
       "Memory of one of the island's GPUs that other programs may hold before training pauses; 0 B: whatever they do"},
      {"rules.idle", kDuration, "0s",
       "Training waits until nobody has used keyboard or mouse for so long, as the login service says; 0s: it does "
       "not"},
      {"rules.battery", kOneOf, "train", "What is done while the machine runs on its battery", 0, 0, "train pause"},
      {"rules.metered", kOneOf, "train", "What is done while NetworkManager says that the network is metered", 0, 0,
       "train pause"},
      {"checkpoints.work_every", kDuration, "0s",
       "The work of an open round is written to the disk as often, for a crash costs what was trained since; takes 12 "
       "bytes a parameter of memory. 0s: only a pause writes it"},
      {"checkpoints.keep_daily", kWhole, "0",
       "Days back of which the newest outer state of each is kept (UTC), beside those that the run asks for", 0, 3650},
      {"checkpoints.keep_rounds", kSteps, "",
       "Rounds whose states this island can come back to as long as they are named here, for instance 500, 1000"},
      {"store.endpoint", kEndpoint, "",
       "Object store (S3) of outer states, https://HOST:PORT; empty: Amazon's of the region"},
      {"store.region", kText, "", "Its region; empty: us-east-1"},
      {"store.bucket", kText, "",
       "BUCKET or BUCKET/PREFIX there that this machine may write to, for runs that publish their states in it; empty: "
       "none"},
      {"store.credentials_file", kFile, "",
       "Its access key and secret, a file as ~/.aws/credentials that only its owner may read; empty: AWS_ACCESS_KEY_ID "
       "and AWS_SECRET_ACCESS_KEY, or that file"},
      {"store.authorities_file", kFile, "",
       "Certificates (PEM) of the authorities by which object stores and mirrors of data are trusted; empty: this "
       "system's"},
      {"agent.stop_within", kDuration, "90s", "How long a trainer that is ended may take"},
      {"history.max_size", kBytes, "256 MB", "What the history of this island may take on the disk"},
      {"log.level", kOneOf, "info", "What agent and trainer log, from when they start next", 0, 0,
       "error warning info debug"},
      {"log.max_size", kBytes, "50 MB", "What logs may take on the disk"},
  };
  return keys;
}

Result<const ConfigKey*> find_config_key(std::string_view name) {
  const ConfigKey* nearest = nullptr;
  std::size_t least = SIZE_MAX;
  for (const ConfigKey& key : config_keys()) {
    if (name == key.name) return &key;
    // A name without its section is as near as can be.
    const bool ending = std::string_view(key.name).ends_with(fmt::format(".{}", name));
    const std::size_t letters = ending ? 0 : edit_distance(name.substr(0, kMaxTextBytes), key.name);
    if (letters < least) {
      least = letters;
      nearest = &key;
    }
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no key '{}'; did you mean '{}'?", name.substr(0, kMaxTextBytes), nearest->name)};
}

bool changes_while_agent_runs(std::string_view name) {
  constexpr std::array kOthers{
      "island.gpus", "schedule.hours", "limits.gpu_power", "limits.gpu_temperature", "limits.cpu_temperature",
      "limits.power"};
  return name.starts_with("rules.") || std::ranges::find(kOthers, name) != kOthers.end();
}

Result<std::string> normalise_config_value(const ConfigKey& key, std::string_view text) {
  text = trimmed(text);
  const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (text.size() > kMaxValueBytes || control) return not_a(key, "...", "one line");
  switch (key.type) {
    case ConfigType::kText:
      if (text.size() > kMaxTextBytes) return not_a(key, text, fmt::format("of at most {} bytes", kMaxTextBytes));
      return std::string(text);
    case ConfigType::kWhole: return normalise_whole(key, text);
    case ConfigType::kBytes: return normalise_bytes(key, text);
    case ConfigType::kRate: return normalise_rate(key, text);
    case ConfigType::kCapHours: return normalise_cap_hours(key, text);
    case ConfigType::kDuration: return normalise_duration(key, text);
    case ConfigType::kAddress: {
      const auto address = parse_address(text);
      if (!address.ok()) return not_a(key, text, "HOST:PORT");
      return to_string(*address);
    }
    case ConfigType::kDayHours: return normalise_hours(key, text);
    case ConfigType::kGpus: {
      const auto gpus = parse_gpu_list(text);
      if (!gpus.ok()) return gpus.error().with_context(key.name);
      return gpus->text();
    }
    case ConfigType::kOneOf: return normalise_word(key, text);
    case ConfigType::kEndpoint: return normalise_endpoint(key, text);
    case ConfigType::kFile: return normalise_file(key, text);
    case ConfigType::kSteps: return normalise_steps(key, text);
  }
  return not_a(key, text, "of a known type");
}

std::uint64_t config_bytes(std::string_view value) {
  const auto quantity = parse_quantity(value);
  return quantity ? static_cast<std::uint64_t>(bytes_of(*quantity).value_or(0)) : 0;
}

std::uint64_t config_seconds(std::string_view value) { return static_cast<std::uint64_t>(duration_of(value).count()); }

std::set<std::uint32_t> config_steps(std::string_view value) {
  return parse_steps(value).value_or(std::set<std::uint32_t>());
}

std::string environment_name(const ConfigKey& key) {
  std::string name = fmt::format("ATOLL_{}", key.name);
  for (char& c : name) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace atl
