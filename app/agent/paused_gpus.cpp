#include "app/agent/paused_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/config/gpu_list.h"
#include "net/base/file.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxPausedBytes = 16 * 1024;

}  // namespace

void PausedGpus::pause(unsigned gpu, std::optional<std::int64_t> until_seconds) {
  (void)resume(gpu);
  pauses.push_back({gpu, until_seconds});
  std::ranges::sort(pauses, {}, &GpuPause::gpu);
}

bool PausedGpus::resume(unsigned gpu) {
  return std::erase_if(pauses, [&](const GpuPause& pause) { return pause.gpu == gpu; }) > 0;
}

PausedGpus PausedGpus::at(std::int64_t now) const {
  PausedGpus left = *this;
  std::erase_if(left.pauses, [&](const GpuPause& pause) { return pause.until_seconds && now >= *pause.until_seconds; });
  return left;
}

std::vector<unsigned> PausedGpus::numbers() const {
  std::vector<unsigned> numbers;
  for (const GpuPause& pause : pauses) numbers.push_back(pause.gpu);
  return numbers;
}

std::string PausedGpus::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const GpuPause& pause : pauses) {
    nlohmann::json entry = {{"gpu", pause.gpu}};
    if (pause.until_seconds) entry["until_unix_seconds"] = *pause.until_seconds;
    list.push_back(std::move(entry));
  }
  return nlohmann::json{{"version", kPausedGpusVersion}, {"paused", std::move(list)}}.dump(2) + "\n";
}

Result<PausedGpus> PausedGpus::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_control_json(text));
  JsonFields fields(json, "paused_gpus.json");
  int version = 0;
  fields.read("version", version);
  const nlohmann::json* list = fields.array("paused", kMostGpus);
  ATOLL_RETURN_IF_ERROR(fields.status());
  if (version != kPausedGpusVersion) {
    return Error{ErrorCode::kVersionUnsupported, "paused_gpus.json was written by another version of Atoll"};
  }
  PausedGpus paused;
  for (const nlohmann::json& entry : *list) {
    GpuPause pause;
    JsonFields one(entry, "a paused GPU");
    one.read("gpu", pause.gpu).read("until_unix_seconds", pause.until_seconds);
    ATOLL_RETURN_IF_ERROR(one.status());
    if (pause.gpu >= kMostGpus) return Error{ErrorCode::kCorrupt, fmt::format("there is no GPU {}", pause.gpu)};
    paused.pause(pause.gpu, pause.until_seconds);
  }
  return paused;
}

std::filesystem::path paused_gpus_file(const std::filesystem::path& state) { return state / "paused_gpus.json"; }

Result<PausedGpus> load_paused_gpus(const std::filesystem::path& path) {
  const auto text = read_file(path, kMaxPausedBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return PausedGpus{};
  if (!text.ok()) return text.error();
  auto paused = PausedGpus::from_json(*text);
  if (!paused.ok()) return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path.string(), paused.error().message)};
  return paused;
}

Status save_paused_gpus(const std::filesystem::path& path, const PausedGpus& paused) {
  ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path(), FileMode::kPrivate));
  return write_file_atomically(path, paused.to_json(), FileMode::kPrivate);
}

}  // namespace atl
