#include "net/check/facts.h"

#include "net/check/gpu_bounds.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxFactsBytes = 256 * 1024;
constexpr int kMaxDepth = 6;

}  // namespace

template <class Archive>
void fields(Archive& archive, GpuDevice& gpu) {
  archive.text("name", gpu.name);
  archive.field("memory_bytes", gpu.memory_bytes);
  archive.field("ecc", gpu.ecc);
  archive.field("uncorrected_errors", gpu.uncorrected_errors);
  archive.field("remap_pending", gpu.remap_pending);
  archive.field("remap_failed", gpu.remap_failed);
  archive.field("celsius", gpu.celsius);
  archive.field("power_limit_watts", gpu.power_limit_watts);
  archive.field("throttled", gpu.throttled);
  archive.field("pcie_generation", gpu.pcie_generation);
  archive.field("pcie_lanes", gpu.pcie_lanes);
  archive.field("nvlinks", gpu.nvlinks);
  archive.field("bf16_flops", gpu.bf16_flops);
  archive.field("bf16_correct", gpu.bf16_correct);
  archive.field("hbm_bytes_per_second", gpu.hbm_bytes_per_second);
  archive.field("pcie_bytes_per_second", gpu.pcie_bytes_per_second);
}

template <class Archive>
void fields(Archive& archive, XidEvent& xid) {
  archive.field("code", xid.code);
  archive.field("age_seconds", xid.age_seconds);
}

template <class Archive>
void fields(Archive& archive, IslandFacts& island) {
  archive.text("name", island.name);
  archive.field("rtt_seconds", island.rtt_seconds);
  archive.field("bytes_per_second", island.bytes_per_second);
}

template <class Archive>
void fields(Archive& archive, MicroBatch& choice) {
  archive.field("sequences", choice.sequences);
  archive.field("bytes", choice.bytes);
}

namespace {

template <class Archive>
void fields(Archive& archive, GpuFacts& gpu) {
  archive.field("driver_found", gpu.driver_found);
  archive.text("problem", gpu.problem);
  archive.text("driver", gpu.driver);
  archive.field("cuda_version", gpu.cuda_version);
  archive.field("devices", gpu.devices);
  archive.field("libraries_found", gpu.libraries_found);
  archive.text_if_any("libraries_missing", gpu.libraries_missing);
  archive.text("not_measured", gpu.not_measured);
  archive.text("failed_row", gpu.failed_row);
  archive.text("failed_how", gpu.failed_how);
  archive.field("all_reduce_bytes_per_second", gpu.all_reduce_bytes_per_second);
  archive.field("all_reduce_correct", gpu.all_reduce_correct);
}

template <class Archive>
void fields(Archive& archive, HostFacts& host) {
  archive.field("cores", host.cores);
  archive.text("instructions", host.instructions);
  archive.field("ram_bytes", host.ram_bytes);
  archive.field("ram_available_bytes", host.ram_available_bytes);
  archive.field("shm_bytes", host.shm_bytes);
  archive.field("nofile", host.nofile);
  archive.field("memlock_bytes", host.memlock_bytes);
  archive.text("congestion_control", host.congestion_control);
  archive.field("bbr_usable", host.bbr_usable);
  archive.field("tcp_send_bytes", host.tcp_send_bytes);
  archive.field("tcp_receive_bytes", host.tcp_receive_bytes);
  archive.field("kernel_log_readable", host.kernel_log_readable);
  archive.field("xids", host.xids);
}

template <class Archive>
void fields(Archive& archive, DiskFacts& disk) {
  archive.text("path", disk.path);
  archive.text("problem", disk.problem);
  archive.field("free_bytes", disk.free_bytes);
  archive.field("held_bytes", disk.held_bytes);
  archive.field("write_bytes_per_second", disk.write_bytes_per_second);
}

template <class Archive>
void fields(Archive& archive, NetFacts& net) {
  archive.text("not_measured", net.not_measured);
  archive.text("problem", net.problem);
  archive.text("limited", net.limited);
  archive.field("rtt_seconds", net.rtt_seconds);
  archive.field("loss", net.loss);
  archive.field("up_bytes_per_second", net.up_bytes_per_second);
  archive.field("down_bytes_per_second", net.down_bytes_per_second);
  archive.field("clock_offset_seconds", net.clock_offset_seconds);
  archive.field("dialled_back", net.dialled_back);
  archive.text("dialled", net.dialled);
  archive.field("islands", net.islands);
  archive.field("hidden_islands", net.hidden_islands);
  archive.field("links", net.links);
}

template <class Archive>
void fields(Archive& archive, RunNeeds& run) {
  archive.text("run_id", run.run_id);
  archive.text("run_name", run.run_name);
  archive.field("parameters", run.parameters);
  archive.figures("gpu_bytes", run.gpu_bytes);
  archive.field("bytes_beside_gpus", run.bytes_beside_gpus);
  archive.field("micro_batches", run.micro_batches);
  archive.field("micro_batch_is_chosen", run.micro_batch_is_chosen);
  archive.field("sequence_length", run.sequence_length);
  archive.field("data_bytes", run.data_bytes);
  archive.field("keep_states", run.keep_states);
  archive.field("work_bytes", run.work_bytes);
  archive.field("payload_bytes", run.payload_bytes);
  archive.field("round_payload_bytes", run.round_payload_bytes);
  archive.field("min_islands", run.min_islands);
  archive.field("inner_seconds", run.inner_seconds);
}

template <class T>
nlohmann::json write(const T& facts) {
  JsonWriter writer;
  fields(writer, const_cast<T&>(facts));
  return std::move(writer.object);
}

template <class T>
void read(JsonReader& all, const char* name, T& facts) {
  const nlohmann::json* found = all.find(name);
  if (found == nullptr) return;
  JsonReader reader(*found);
  fields(reader, facts);
  if (!reader.status().ok()) all.fail(reader.status().error().with_context(name));
}

Status check_figures(const GpuFacts& gpu) {
  if (gpu.devices.size() > kMaxGpus) return Error{ErrorCode::kProtocol, "it names more than 64 GPUs"};
  bool good = is_figure(gpu.all_reduce_bytes_per_second);
  for (const GpuDevice& device : gpu.devices) {
    good = good && is_figure(device.bf16_flops) && is_figure(device.hbm_bytes_per_second) &&
           is_figure(device.pcie_bytes_per_second) && is_figure(device.celsius);
  }
  return good ? ok_status() : Status(Error{ErrorCode::kProtocol, "a figure of it is no finite number of 0 or more"});
}

}  // namespace

nlohmann::json to_json(const RunNeeds& run) { return write(run); }

Result<RunNeeds> run_needs_from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json parsed, parse_bounded_json(text, kMaxFactsBytes, kMaxDepth));
  JsonReader reader(parsed);
  RunNeeds run;
  fields(reader, run);
  if (!reader.status().ok()) return reader.status().error().with_context("what a run asks");
  return run;
}

nlohmann::json to_json(const GpuFacts& gpu) { return write(gpu); }

Result<GpuFacts> gpu_facts_from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json parsed, parse_bounded_json(text, kMaxFactsBytes, kMaxDepth));
  JsonReader reader(parsed);
  GpuFacts gpu;
  fields(reader, gpu);
  ATOLL_RETURN_IF_ERROR(reader.status());
  ATOLL_RETURN_IF_ERROR(check_figures(gpu));
  return gpu;
}

nlohmann::json NodeFacts::to_json() const {
  nlohmann::json json = {{"device", word_of(device)}, {"gpu_kernels", gpu_kernels}, {"gpu", write(gpu)},
                         {"host", write(host)},       {"disk", write(disk)},        {"net", write(net)}};
  if (run) json["run"] = write(*run);
  return json;
}

Result<NodeFacts> NodeFacts::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json parsed, parse_bounded_json(text, kMaxFactsBytes, kMaxDepth));
  JsonReader reader(parsed);
  NodeFacts facts;
  std::string device;
  reader.text("device", device);
  facts.device = parse_word<DeviceChoice>(device);
  reader.field("gpu_kernels", facts.gpu_kernels);
  read(reader, "gpu", facts.gpu);
  read(reader, "host", facts.host);
  read(reader, "disk", facts.disk);
  read(reader, "net", facts.net);
  if (reader.status().ok() && parsed.contains("run")) read(reader, "run", facts.run.emplace());
  if (!reader.status().ok()) return reader.status().error().with_context("recorded facts");
  ATOLL_RETURN_IF_ERROR(check_figures(facts.gpu));
  return facts;
}

}  // namespace atl
