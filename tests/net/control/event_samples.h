// An example of every event, all of its fields told; and the fields that an event's archive has.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "net/control/event_fields.h"

namespace atl::test {

inline NodeState sample_state() {
  NodeState state;
  IslandState& island = state.island;
  island.state = IslandPhase::kTraining;
  island.island = "isl-1";
  island.name = "under the desk";
  island.run_id = "0123456789abcdef";
  island.run_name = "gcide";
  island.pid = 4711;
  island.parameters = 800'000;
  island.micro_batch = 4;
  island.memory_bytes = 1u << 30;
  island.round = 42;
  island.inner_step = 371;
  island.inner_steps = 500;
  island.loss_nats = 2.5;
  island.validation_loss_nats = 2.75;
  island.tokens_per_second = 318'000;
  island.mfu = 0.375;
  island.learning_rate = 0.0625;
  island.gradient_norm = 0.5;
  island.flops_per_second = 1.5e12;
  island.step_seconds = StepTimes{.total = 0.5,
                                  .data = 0.015625,
                                  .matmul = 0.25,
                                  .attention = 0.0625,
                                  .elementwise = 0.03125,
                                  .loss = 0.0234375,
                                  .optimiser = 0.046875,
                                  .communication = 0.0390625};
  island.next_sync_seconds = 250;
  island.islands_live = 7;
  island.islands_total = 8;
  island.islands_needed = 3;
  island.last_sync_seconds = 38;
  island.accepted_round = 41;
  island.safe_outer_step = 40;
  island.passes = 1484;
  island.tokens = 98'765'432;
  island.bytes_sent = 1'900'000'000;
  island.inner_seconds = 9200;
  island.sync_seconds = 800;
  island.rounds_accepted = 40;
  island.outer_step = 42;
  island.state_hash = std::string(64, 'a');
  island.error = "the hub does not answer";
  state.disk_free_bytes = 812e9;
  state.has_agent = true;
  AgentView& agent = state.agent;
  agent.pid = 4700;
  agent.version = "0.1.0";
  agent.wish = Wish::kRun;
  agent.followed = Wish::kPause;
  agent.since = 1'763'725'000;
  agent.paused_until = 1'763'732'200;
  agent.seconds = 86'400;
  agent.trainer_pid = 4711;
  agent.taken_over = true;
  agent.heard_seconds_ago = 0.25;
  agent.restarts = 2;
  agent.restart_in_seconds = 8;
  agent.last_exit = TrainerExitView{ExitCause::kKilled, "somebody killed it", 1'763'725'100, 137};
  agent.warning = "the history is not written";
  agent.paused_by = {
      {OwnersRule::kHours, "it is not the hour", "22:00", 1'763'733'600, "atoll config set schedule.hours ''"},
      {OwnersRule::kBattery, "the machine runs on its battery", "1 min after it is plugged in"}};
  agent.paused_gpus = {{3, 1'763'733'000}, {5, {}}};
  agent.contributed =
      ContributionView{.run = {.tokens = 349'696, .rounds_accepted = 41, .bytes_sent = 64, .seconds = 30.5},
                       .life = {.tokens = 370'176, .rounds_accepted = 43, .bytes_sent = 96, .seconds = 32.5}};
  agent.upload_cap = TransferCapView{2.5e6, 1'763'740'800};
  agent.download_cap = TransferCapView{5e6, 1'763'740'800};
  return state;
}

inline GpuSample sample_gpu() {
  return {.index = 1,
          .name = "H100",
          .utilisation = 0.75,
          .memory_bytes = 71e9,
          .memory_total_bytes = 80e9,
          .power_watts = 612.5,
          .power_limit_watts = 700.0,
          .temperature_celsius = 60.0,
          .sm_clock_hertz = 1.98e9,
          .throttling = "heat",
          .ecc_errors = 3,
          .nvlink_bytes_per_second = 2e11};
}

inline CheckRow sample_row() {
  return {.id = "ram",
          .verdict = Verdict::kFail,
          .value = 8e9,
          .unit = "B",
          .text = "8 GB",
          .fix = "add memory",
          .seconds = 0.5};
}

inline std::vector<ControlEvent> event_samples() {
  const NodeState state = sample_state();
  NodeState of_trainer = state;
  of_trainer.has_agent = false;
  of_trainer.agent = {};
  of_trainer.disk_free_bytes.reset();
  return {event::StateChanged{state},
          event::RoundBegin{state, FragmentId{1}},
          event::Step{state},
          event::Step{of_trainer},  // on the trainer's own socket
          event::Syncing{state},
          event::SyncDone{state, FragmentId{1}},
          event::CheckpointSaved{state},
          event::TrainerError{state},
          event::RoundDone{.round = 42,
                           .fragment = FragmentId{1},
                           .islands = 7,
                           .accepted = true,
                           .tokens = 318'000,
                           .bytes_sent = 1'900'000'000,
                           .inner_seconds = 250.0,
                           .sync_seconds = 38.0,
                           .loss_nats = 2.5,
                           .state_hash = std::string(64, 'a')},
          event::RoundDone{.round = 43, .islands = 7},  // of a round that began before its trainer
          event::Validated{.outer_step = 43, .loss_nats = 2.25},
          event::Evaluated{.outer_step = 43, .task = "capitals", .figures = {{"acc", 0.5}, {"acc_norm", 0.25}}},
          event::PastTold{.run = "0123456789abcdef",
                          .inner_steps = 500,
                          .past = {.rounds = {{0, 2, 8192, 60.5, 5.25}, {2, 2, 8192, 61.5, 4.75}},
                                   .validations = {{0, 5.5}, {4, 4.5}}}},
          event::AttemptBegin{.round = 42,
                              .fragment = FragmentId{1},
                              .attempt = 2,
                              .ring = {{"isl-1", "under the desk", 4096, 12.5e6}, {"isl-2", "attic", 8192, {}}}},
          event::AttemptBegin{.round = 43, .ring = {{"isl-1", "under the desk", 4096, {}}}, .directly = true},
          event::SyncPhase{.round = 42,
                           .fragment = FragmentId{1},
                           .attempt = 2,
                           .part = SyncPart::kAllGather,
                           .seconds = 14.5,
                           .bytes = 950'000'000},
          event::SyncProgress{.round = 42,
                              .fragment = FragmentId{1},
                              .attempt = 2,
                              .part = SyncPart::kReduceScatter,
                              .bytes_done = 250,
                              .bytes_total = 1000,
                              .step = 3,
                              .steps = 12,
                              .sent_bytes_per_second = 5e6,
                              .received_bytes_per_second = 4e6},
          event::Transfer{.what = Download::kState,
                          .status = DownloadStatus::kFailed,
                          .done_bytes = 250,
                          .total_bytes = 1000,
                          .bytes_per_second = 50.0,
                          .seconds_left = 15.0,
                          .text = "nobody has it"},
          event::HubLink{.up = false, .text = "no route", .tries_for_seconds = 600.0},
          event::HubLink{.up = true},
          event::PeerUp{"isl-2", "attic", "203.0.113.7:47000", "atoll 0.1.0", "Oslo"},
          event::PeerDown{"isl-2", "attic", "203.0.113.7:47000", "atoll 0.1.0", "Oslo"},
          event::PeerLink{.island = "isl-2",
                          .rtt_seconds = 0.25,
                          .bytes_per_second = 5e6,
                          .down_bytes_per_second = 4e6,
                          .failed = true},
          event::InviteLooked{.ok = true,
                              .invite = "inv-1",
                              .address = "hub.example.org:47000",
                              .run_id = "0123456789abcdef",
                              .run_name = "gcide",
                              .operator_name = "Ada",
                              .model = "150m",
                              .parameters = 150'000'000,
                              .costs = RunCosts{.round = 300,
                                                .join = 1200,
                                                .disk = 4000,
                                                .memory = 7000,
                                                .memory_beside_gpus = 4500,
                                                .gpu_memory = 6000},
                              .pin = std::string(64, 'b')},
          event::InviteLooked{.ok = false, .invite = "inv-1", .code = "unreachable", .message = "no route"},
          event::JoinProgress{.stage = JoinStage::kState,
                              .status = StageStatus::kRunning,
                              .done_bytes = 250,
                              .total_bytes = 1000,
                              .bytes_per_second = 50.0,
                              .seconds_left = 15.0,
                              .text = "again"},
          event::JoinDone{.ok = true, .text = "joined gcide", .warning = "not kept"},
          event::JoinDone{.ok = false, .code = "invite_used", .message = "it was used"},
          event::CheckRowDone{sample_row()},
          event::CheckDone{.report = CheckReport{.software = "atoll 0.1.0",
                                                 .run_id = "0123456789abcdef",
                                                 .time = 1'763'725'000,
                                                 .full = true,
                                                 .rows = {sample_row()}}},
          event::CheckDone{.error = "the disk is full"},
          event::GpuSampled{{sample_gpu()}},
          event::GpuAlert{
              .kind = GpuAlertKind::kTemperature, .gpu = 3, .celsius = 91.5, .cap_celsius = 85.0, .pauses = true},
          event::GpuAlert{.kind = GpuAlertKind::kPower, .cap_watts = 400.0, .text = "needs root"},
          event::Unknown{"tomorrow", R"({"mood":"good"})"}};
}

// Takes the names alone: of what lies within, after the field's name and a dot.
class FieldNames {
 public:
  static constexpr bool kReads = false;
  static constexpr bool kWrites = false;
  std::set<std::string> names;

  template <class T>
  void field(const char* name, const T&) {
    names.insert(name);
  }
  template <class T>
  void told(const char* name, const T&) {
    names.insert(name);
  }
  template <class T>
  void known(const char* name, const std::optional<T>&) {
    names.insert(name);
  }
  template <class T>
  void or_null(const char* name, const std::optional<T>&) {
    names.insert(name);
  }
  template <class T>
  void moment(const char* name, const T&) {
    names.insert(name);
  }
  void told_if_any(const char* name, const std::string&) { names.insert(name); }
  void told_if(const char* name, bool) { names.insert(name); }
  void exit_status(const char* name, int) { names.insert(name); }
  void fixed(const char* name, const char*) { names.insert(name); }
  void raw_if_any(const char* name, const std::string&, std::size_t) { names.insert(name); }
  void bounded(const char* name, const std::string&, std::size_t) { names.insert(name); }
  void always(const char* name) { names.insert(name); }
  void check_row(const char* name, const CheckRow&) { names.insert(name); }
  void check_report(const char* name, const std::optional<CheckReport>&) { names.insert(name); }
  void require(bool, const char*) {}
  template <class T>
  void list(const char* name, const std::vector<T>&, std::size_t) {
    within<T>(name);
  }
  template <class T>
  void list_if_any(const char* name, const std::vector<T>&, std::size_t) {
    within<T>(name);
  }
  template <class T>
  void part_or_null(const char* name, const std::optional<T>&) {
    within<T>(name);
  }
  template <class T>
  void part_if(const char* name, bool, const T&) {
    within<T>(name);
  }
  template <class T>
  void part_if_any(const char* name, const std::optional<T>&) {
    within<T>(name);
  }
  template <class T>
  void part(const char* name, const T&) {
    within<T>(name);
  }

  template <class T>
  static std::set<std::string> of() {
    FieldNames list;
    T value;
    fields(list, value);
    return list.names;
  }

 private:
  template <class T>
  void within(const char* name) {
    names.insert(name);
    for (const std::string& inner : of<T>()) names.insert(std::string(name) + "." + inner);
  }
};

}  // namespace atl::test
