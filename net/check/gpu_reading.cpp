#include "net/check/gpu_reading.h"

#include <cmath>

#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxSampleLine = 64 * 1024;
constexpr std::size_t kMaxGpus = 64;

template <class Archive>
void reading_fields(Archive& archive, GpuSample& gpu) {
  archive.text("name", gpu.name);
  archive.field("utilisation", gpu.utilisation);
  archive.field("memory_bytes", gpu.memory_bytes);
  archive.field("memory_total_bytes", gpu.memory_total_bytes);
  archive.field("power_watts", gpu.power_watts);
  archive.field("power_limit_watts", gpu.power_limit_watts);
  archive.field("temperature_celsius", gpu.temperature_celsius);
  archive.field("sm_clock_hertz", gpu.sm_clock_hertz);
  archive.text_if_any("throttling", gpu.throttling);
  archive.field("ecc_errors", gpu.ecc_errors);
  archive.field("nvlink_bytes_per_second", gpu.nvlink_bytes_per_second);
}

bool is_figure(const std::optional<double>& value) { return !value || (std::isfinite(*value) && *value >= 0); }

Error wrong_sample(const std::string& why) { return Error{ErrorCode::kProtocol, "the GPU probe's sample: " + why}; }

}  // namespace

nlohmann::json to_json(const std::vector<GpuSample>& gpus) {
  nlohmann::json list = nlohmann::json::array();
  for (const GpuSample& gpu : gpus) {
    JsonWriter writer;
    reading_fields(writer, const_cast<GpuSample&>(gpu));
    list.push_back(std::move(writer.object));
  }
  return list;
}

Result<std::vector<GpuSample>> parse_gpu_readings(std::string_view line) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json parsed, parse_bounded_json(line, kMaxSampleLine, 4));
  JsonReader all(parsed);
  if (parsed.is_object() && parsed.contains("problem")) {
    std::string problem;
    all.text("problem", problem);
    return all.status().ok() ? Error{ErrorCode::kNotFound, problem} : wrong_sample(all.status().error().message);
  }
  const nlohmann::json* list = all.find("gpus");
  if (list == nullptr || !list->is_array() || list->size() > kMaxGpus)
    return wrong_sample("no list of at most 64 GPUs");
  std::vector<GpuSample> gpus;
  for (const nlohmann::json& entry : *list) {
    JsonReader reader(entry);
    GpuSample& gpu = gpus.emplace_back();
    gpu.index = static_cast<std::uint32_t>(gpus.size() - 1);
    reading_fields(reader, gpu);
    if (!reader.status().ok()) return wrong_sample(reader.status().error().message);
    for (const auto& figure :
         {gpu.utilisation, gpu.memory_bytes, gpu.memory_total_bytes, gpu.power_watts, gpu.power_limit_watts,
          gpu.temperature_celsius, gpu.sm_clock_hertz, gpu.nvlink_bytes_per_second}) {
      if (!is_figure(figure)) return wrong_sample("a figure is no finite number of 0 or more");
    }
  }
  return gpus;
}

}  // namespace atl
