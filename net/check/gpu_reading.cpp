#include "net/check/gpu_reading.h"

#include <algorithm>
#include <cmath>

#include "net/check/gpu_bounds.h"
#include "net/wire/json_archive.h"

namespace atl {

template <class Archive>
void fields(Archive& archive, GpuProcess& process) {
  archive.field("pid", process.pid);
  archive.field("memory_bytes", process.memory_bytes);
}

namespace {

constexpr std::size_t kMaxSampleLine = 256 * 1024;

template <class Archive>
void reading_fields(Archive& archive, GpuReading& reading) {
  GpuSample& gpu = reading.now;
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
  archive.field("processes", reading.processes);
}

Error wrong_sample(const std::string& why) { return Error{ErrorCode::kProtocol, "the GPU probe's sample: " + why}; }

}  // namespace

nlohmann::json to_json(const std::vector<GpuReading>& gpus) {
  nlohmann::json list = nlohmann::json::array();
  for (const GpuReading& gpu : gpus) {
    JsonWriter writer;
    reading_fields(writer, const_cast<GpuReading&>(gpu));
    list.push_back(std::move(writer.object));
  }
  return list;
}

Result<std::vector<GpuReading>> parse_gpu_readings(std::string_view line) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json parsed, parse_bounded_json(line, kMaxSampleLine, 6));
  JsonReader all(parsed);
  if (parsed.is_object() && parsed.contains("problem")) {
    std::string problem;
    all.text("problem", problem);
    return all.status().ok() ? Error{ErrorCode::kNotFound, problem} : wrong_sample(all.status().error().message);
  }
  const nlohmann::json* list = all.find("gpus");
  if (list == nullptr || !list->is_array() || list->size() > kMaxGpus)
    return wrong_sample("no list of at most 64 GPUs");
  std::vector<GpuReading> gpus;
  for (const nlohmann::json& entry : *list) {
    JsonReader reader(entry);
    GpuReading& reading = gpus.emplace_back();
    GpuSample& gpu = reading.now;
    gpu.index = static_cast<std::uint32_t>(gpus.size() - 1);
    reading_fields(reader, reading);
    if (!reader.status().ok()) return wrong_sample(reader.status().error().message);
    for (const auto& figure :
         {gpu.utilisation, gpu.memory_bytes, gpu.memory_total_bytes, gpu.power_watts, gpu.power_limit_watts,
          gpu.temperature_celsius, gpu.sm_clock_hertz, gpu.nvlink_bytes_per_second}) {
      if (!is_figure(figure)) return wrong_sample("a figure is no finite number of 0 or more");
    }
    const bool memory_is_figure = std::ranges::all_of(reading.processes, is_figure, &GpuProcess::memory_bytes);
    if (!memory_is_figure || reading.processes.size() > kMostGpuProcesses) {
      return wrong_sample("its processes cannot be");
    }
  }
  return gpus;
}

}  // namespace atl
