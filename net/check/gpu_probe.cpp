#include "net/check/gpu_probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "net/check/judge.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRowLine = 64 * 1024;

struct Figure {
  const char* name;
  std::optional<double> GpuDevice::*value;
};
constexpr Figure kFigures[] = {{"bf16_flops", &GpuDevice::bf16_flops},
                               {"hbm_bytes_per_second", &GpuDevice::hbm_bytes_per_second},
                               {"pcie_bytes_per_second", &GpuDevice::pcie_bytes_per_second}};

Error wrong_row(const std::string& why) { return Error{ErrorCode::kProtocol, why}; }

Status read_figure(const nlohmann::json& line, const char* name, std::optional<double>& value) {
  const auto found = line.find(name);
  if (found == line.end()) return ok_status();
  if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0) {
    return wrong_row(fmt::format("its figure for {} is no number of 0 or more", name));
  }
  value = found->get<double>();
  return ok_status();
}

Status read_flag(const nlohmann::json& line, const char* name, std::optional<bool>& value) {
  const auto found = line.find(name);
  if (found == line.end()) return ok_status();
  if (!found->is_boolean()) return wrong_row(fmt::format("its {} is neither true nor false", name));
  value = found->get<bool>();
  return ok_status();
}

struct MissingEntry {
  std::string name, why;
};

template <class Archive>
void fields(Archive& archive, MissingEntry& entry) {
  archive.text("name", entry.name);
  archive.text("why", entry.why);
}

Status read_libraries(std::string_view text, GpuFacts& gpu) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json line, parse_bounded_json(text, kMaxRowLine, 4));
  JsonReader reader(line);
  std::vector<MissingEntry> missing;
  reader.field("missing", missing);
  ATOLL_RETURN_IF_ERROR(reader.status());
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const MissingEntry& entry : missing) names.push_back(entry.name);
  gpu.libraries_found = missing.empty();
  if (!missing.empty()) gpu.libraries_missing = fmt::format("{} ({})", fmt::join(names, ", "), missing.front().why);
  return ok_status();
}

}  // namespace

GpuFacts list_gpus(const GpuProbe& probe, const AbortSignal& abort) {
  std::vector<std::string> arguments{"list"};
  if (!probe.nvml.empty()) arguments.insert(arguments.end(), {"--nvml", probe.nvml});
  std::string text;
  const ProbeChild child{probe.program, std::move(arguments), Deadline::after(probe.list_time)};
  const Status ended = run_probe_child(child, abort, [&](std::string_view line) { text = line; });
  GpuFacts gpu;
  if (!ended.ok()) {
    gpu.problem = ended.error().code == ErrorCode::kTimeout
                      ? fmt::format("the GPU driver does not answer within {} s", probe.list_time.count() / 1000)
                      : fmt::format("the GPUs cannot be asked: {}", ended.error().message);
    return gpu;
  }
  auto facts = gpu_facts_from_json(text);
  if (facts.ok()) return *facts;
  gpu.problem = fmt::format("the GPU probe's answer is not understood: {}", facts.error().message);
  return gpu;
}

void find_gpu_libraries(const GpuProbe& probe, const AbortSignal& abort, GpuFacts& gpu) {
  if (gpu.devices.empty()) return;
  std::string text;
  const ProbeChild child{probe.program, {"libraries"}, Deadline::after(probe.list_time)};
  const Status ended = run_probe_child(child, abort, [&](std::string_view line) { text = line; });
  const Status read = ended.ok() ? read_libraries(text, gpu) : ended;
  if (!read.ok()) gpu.libraries_missing = fmt::format("they cannot be tried: {}", read.error().message);
}

void measure_gpus(const GpuProbe& probe, const AbortSignal& abort, GpuFacts& gpu) {
  if (gpu.devices.empty()) return;
  const ProbeChild child{probe.program,
                         {"measure", "--seconds", fmt::format("{}", probe.matmul_seconds)},
                         Deadline::after(probe.measure_time)};
  MeasurementReader reader(gpu);
  reader.finish(run_probe_child(child, abort, [&](std::string_view line) { reader.take_line(line); }));
}

void MeasurementReader::take_line(std::string_view line) {
  const Status taken = take(line);
  if (!taken.ok()) fail("the GPU probe's answer is not understood: " + taken.error().message);
}

Status MeasurementReader::take(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json line, parse_bounded_json(text, kMaxRowLine, 2));
  if (!line.is_object()) return wrong_row("a line is no JSON object");
  if (const auto begin = line.find("begin"); begin != line.end()) {
    const RowRule* rule = begin->is_string() ? find_rule(begin->get_ref<const std::string&>()) : nullptr;
    if (rule == nullptr || rule->group != FactGroup::kGpuMeasured) return wrong_row("it begins an unknown row");
    row_ = rule->id;
    return ok_status();
  }
  if (const auto error = line.find("error"); error != line.end()) {
    fail(error->is_string() ? printable(error->get<std::string>(), kMaxPersonText) : "it failed");
    return ok_status();
  }
  if (line.contains("skip")) {  // built without CUDA
    gpu_.not_measured = printable(line["skip"].is_string() ? line["skip"].get<std::string>() : "", kMaxPersonText);
  }
  if (line.contains("done")) done_ = true;
  ATOLL_RETURN_IF_ERROR(read_figure(line, "all_reduce_bytes_per_second", gpu_.all_reduce_bytes_per_second));
  ATOLL_RETURN_IF_ERROR(read_flag(line, "all_reduce_correct", gpu_.all_reduce_correct));
  const auto index = line.find("gpu");
  if (index == line.end()) return ok_status();
  if (!index->is_number_unsigned() || index->get<std::uint64_t>() >= gpu_.devices.size()) {
    return wrong_row("it names a GPU that NVML does not know");
  }
  GpuDevice& device = gpu_.devices[index->get<std::size_t>()];
  for (const Figure& figure : kFigures) ATOLL_RETURN_IF_ERROR(read_figure(line, figure.name, device.*figure.value));
  return read_flag(line, "bf16_correct", device.bf16_correct);
}

void MeasurementReader::finish(const Status& ended) {
  if (ended.ok() && done_) return;
  if (!ended.ok() && ended.error().code == ErrorCode::kAborted) {
    gpu_.not_measured = "it was cut short";
  } else if (!ended.ok() && ended.error().code == ErrorCode::kTimeout) {
    fail("the GPUs hang: no answer within the time allowed");
  } else {
    fail(ended.ok() ? "the GPU probe ended before it was done" : ended.error().message);
  }
}

void MeasurementReader::fail(const std::string& how) {
  if (!gpu_.failed_row.empty()) return;
  gpu_.failed_row = row_;
  gpu_.failed_how = how;
}

}  // namespace atl
