// One machine that the app looks at: the connection to its agent and everything that is known of it. Views hold a
// reference to it and never see a socket. Owned by Nodes, or by a test; GUI thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <QObject>

#include "app/core/agent_link.h"
#include "app/core/alert_list.h"
#include "app/core/check_model.h"
#include "app/core/checkpoints_model.h"
#include "app/core/history_model.h"
#include "app/core/islands_model.h"
#include "app/core/join_model.h"
#include "app/core/log_model.h"
#include "app/core/node_address.h"
#include "app/core/paced.h"
#include "app/core/rounds_model.h"
#include "app/core/settings_model.h"
#include "app/core/sync_model.h"
#include "app/core/uplink.h"
#include "net/control/event_reader.h"

namespace atl {

class Node : public QObject {
  Q_OBJECT

 public:
  Node(NodeAddress address, OpenStream open, RunCommand run, LinkTiming timing = {});
  ~Node() override;

  const NodeAddress& address() const { return address_; }
  AgentLink& link() { return link_; }
  const AgentLink& link() const { return link_; }
  const RunCommand& run() const { return run_; }

  void start();

  // The last that the agent said, however old; empty before the first.
  const std::optional<NodeState>& state() const { return state_; }
  // The last samples; empty where there are none of lately.
  const std::vector<GpuSample>& gpus() const { return gpus_; }
  // Since it was heard; empty before the first. A recording's time runs by the recording.
  std::optional<Seconds> age() const;
  // What the state says is true now: connected, and heard less than kStaleAfter ago.
  bool live() const;
  const std::vector<Alert>& alerts() const { return alerts_.all(); }  // newest first, at most 20

  HistoryModel& history() { return history_; }
  IslandsModel& islands() { return islands_; }
  RoundsModel& rounds() { return rounds_; }
  SyncModel& sync() { return sync_; }
  const Uplink& uplink() const { return uplink_; }
  CheckModel& check() { return check_; }
  CheckpointsModel& checkpoints() { return checkpoints_; }
  LogModel& log() { return log_; }
  SettingsModel& settings() { return settings_; }
  JoinModel& join() { return join_; }

  // What the owner wishes. The answer says what became of it: at_stake, warning (docs/control.md). `answer` is called
  // unless this is gone by then.
  void pause(std::optional<Seconds> span, AgentLink::Answer answer);
  void resume(AgentLink::Answer answer);
  void finish(AgentLink::Answer answer);
  void stop(AgentLink::Answer answer);
  void leave(AgentLink::Answer answer);
  // Starts an agent on this machine that outlives this program (`atoll agent`). kInvalidArgument elsewhere.
  Status startAgent();
  // One of the island's GPUs alone.
  void pauseGpu(std::uint32_t gpu, AgentLink::Answer answer);
  void resumeGpu(std::uint32_t gpu, AgentLink::Answer answer);
  void createDiagnostics(const QString& file, AgentLink::Answer answer);

 Q_SIGNALS:
  void changed();                         // state, link, alerts, or whether it is live; at most thirty times a second
  void alerted(const atl::Alert& alert);  // of news, not of what was there when the app was started

 private:
  void read(const LinkEvent& event);
  void take(const HeardEvent& event);
  void takeState(const HeardEvent& event, const NodeState& state);
  void takeGpus(const std::vector<GpuSample>& gpus);
  void takeAnswer(const nlohmann::json& answer);
  void askState();
  void reload();
  void linkChanged();
  void poll();
  template <class Method>
  void wish(const Method& method, AgentLink::Answer answer);

  const NodeAddress address_;
  const RunCommand run_;
  AgentLink link_;
  EventReader reader_;
  std::optional<NodeState> state_;
  std::vector<GpuSample> gpus_;
  Seconds heard_{0};              // by the link's clock
  Clock::time_point state_at_{};  // the agent itself told a state
  Clock::time_point gpus_at_{};
  double told_at_ = 0;  // the last event's time, which is a recording's wall clock
  bool asking_ = false, was_live_ = false;
  AlertList alerts_;
  HistoryModel history_;
  IslandsModel islands_;
  RoundsModel rounds_;
  SyncModel sync_;
  Uplink uplink_;
  CheckModel check_;
  CheckpointsModel checkpoints_;
  LogModel log_;
  SettingsModel settings_;
  JoinModel join_;
  Paced tell_;
  QTimer poll_;
};

}  // namespace atl
