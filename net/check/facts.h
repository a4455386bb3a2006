// What the node check has measured, apart from what it makes of it: judges read these, probes fill them, tests record
// them. JSON both ways. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/words.h"
#include "net/step/memory_needs.h"

namespace atl {

struct GpuDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::uint64_t memory_bytes = 0;
  std::optional<bool> ecc;                          // empty: the card has none, or does not say
  std::optional<std::uint64_t> uncorrected_errors;  // since the driver was loaded
  std::optional<bool> remap_pending, remap_failed;  // of memory rows
  std::optional<double> celsius;
  std::optional<double> power_limit_watts;
  bool throttled = false;             // by heat, now
  std::uint32_t pcie_generation = 0;  // the best that card and slot agree on; 0: not known
  std::uint32_t pcie_lanes = 0;
  std::uint32_t nvlinks = 0;  // active
  // Measured, empty until then:
  std::optional<double> bf16_flops;             // FLOP/s of a matrix multiplication
  std::optional<bool> bf16_correct;             // its result was verified
  std::optional<double> hbm_bytes_per_second;   // of a copy: read and written bytes
  std::optional<double> pcie_bytes_per_second;  // from pinned memory of the host
};

struct GpuFacts {
  bool driver_found = false;       // there is an NVML
  std::string problem;             // why the cards could not be asked
  std::string driver;              // "580.65.06"
  std::uint32_t cuda_version = 0;  // that the driver supports: 13000
  std::vector<GpuDevice> devices;

  std::optional<bool> libraries_found;  // all of CUDA's that computing takes; empty: they were not tried
  std::string libraries_missing;        // which, and why the first is; or why they were not tried
  std::string not_measured;             // why nothing was measured on them; empty: it was tried
  std::string failed_row;               // the row whose measurement did not come to its end, and how it ended
  std::string failed_how;
  std::optional<double> all_reduce_bytes_per_second;  // bus bandwidth over all cards
  std::optional<bool> all_reduce_correct;
};

struct XidEvent {  // what the driver said in the kernel's log
  std::uint32_t code = 0;
  double age_seconds = 0;
};

struct HostFacts {
  std::uint32_t cores = 0;
  std::string instructions;  // "avx512", "avx2", "plain"
  std::uint64_t ram_bytes = 0;
  std::optional<std::uint64_t> ram_available_bytes;  // empty: not known, or the trainer holds some of it now
  std::uint64_t shm_bytes = 0;                       // size of /dev/shm
  std::uint64_t nofile = 0;                          // to which the limit may be raised
  std::optional<std::uint64_t> memlock_bytes;        // empty: unlimited
  std::string congestion_control;                    // the system's choice
  bool bbr_usable = false;
  // What the kernel lets a socket's buffers grow to (tcp_wmem, tcp_rmem); empty: not known.
  std::optional<std::uint64_t> tcp_send_bytes, tcp_receive_bytes;
  bool kernel_log_readable = false;
  std::vector<XidEvent> xids;  // of the last 24 h
};

struct DiskFacts {
  std::string path;
  std::string problem;  // why it could not be written
  std::uint64_t free_bytes = 0;
  std::uint64_t held_bytes = 0;                  // of the run's data and states, on it already
  std::optional<double> write_bytes_per_second;  // with fsync
};

struct IslandFacts {  // another island, seen from here
  std::string name;
  std::optional<double> rtt_seconds;       // empty: it does not answer
  std::optional<double> bytes_per_second;  // to here; empty: not measured
};

struct NetFacts {
  std::string not_measured;  // why the hub was not asked; empty: it was tried
  std::string problem;       // why it did not answer
  std::string limited;       // why only the round trip could be measured
  std::optional<double> rtt_seconds;
  std::optional<double> loss;  // fraction of what was sent, the worse direction
  std::optional<double> up_bytes_per_second, down_bytes_per_second;
  std::optional<double> clock_offset_seconds;  // ours - the hub's
  std::optional<bool> dialled_back;            // the hub reached our port
  std::string dialled;                         // which, or why none was tried
  std::uint32_t islands = 0;                   // live, without this one
  std::uint32_t hidden_islands = 0;            // of those: nobody can dial them
  std::vector<IslandFacts> links;
};

// What a run asks of a machine, from its configuration and its hub.
struct RunNeeds {
  std::string run_id, run_name;
  std::uint64_t parameters = 0;
  std::vector<double> gpu_bytes;  // of each GPU, where there are one, two, ... (net/step/memory_needs.h)
  // Of main memory: where GPUs compute; where the CPU does, by how many sequences it computes at once, ascending. Just
  // one where the owner chose it.
  std::uint64_t bytes_beside_gpus = 0;
  std::vector<MicroBatch> micro_batches;
  bool micro_batch_is_chosen = false;
  std::uint32_t sequence_length = 0;  // tokens
  std::uint64_t data_bytes = 0;
  std::uint32_t keep_states = 1;          // outer states on its disk
  std::uint64_t work_bytes = 0;           // on its disk: the work of an open round, where its owner has it kept
  std::uint64_t payload_bytes = 0;        // of all fragments' averages, on the wire
  std::uint64_t round_payload_bytes = 0;  // of the largest one: a round averages one
  std::uint32_t min_islands = 1;
  double inner_seconds = 0;  // of a round; 0: none was trained yet
};

struct NodeFacts {
  DeviceChoice device = DeviceChoice::kAuto;  // what its owner has it compute on
  bool gpu_kernels = false;                   // this build's trainer can compute on GPUs (gpu_compute.h)
  GpuFacts gpu;
  HostFacts host;
  DiskFacts disk;
  NetFacts net;
  std::optional<RunNeeds> run;

  nlohmann::json to_json() const;
  static Result<NodeFacts> from_json(std::string_view text);
};

nlohmann::json to_json(const RunNeeds& run);
// Of a hub: bounded.
Result<RunNeeds> run_needs_from_json(std::string_view text);
nlohmann::json to_json(const GpuFacts& gpu);
// Of a child process: bounded, kProtocol when it says what cannot be (more than 64 cards, figures that are no finite
// numbers of 0 or more).
Result<GpuFacts> gpu_facts_from_json(std::string_view text);

}  // namespace atl
