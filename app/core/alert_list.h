// What happened to a node lately, in sentences: made of its state as it changes and of its events. Owned by a Node; GUI
// thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <QCoreApplication>

#include "net/control/events.h"

namespace atl {

// A sentence for the person in front of the screen, of what happened lately. Infos are few, for they may notify:
// joined, finished.
struct Alert {
  enum class Level { kInfo, kWarning, kError };
  Level level = Level::kInfo;
  std::string text;
  double time = 0;  // seconds since 1970
};

class AlertList {
  Q_DECLARE_TR_FUNCTIONS(Alerts)

 public:
  static constexpr std::size_t kMaxAlerts = 20;

  // `on_news`: of what happened while somebody looks.
  explicit AlertList(std::function<void(const Alert&)> on_news) : on_news_(std::move(on_news)) {}

  const std::vector<Alert>& all() const { return alerts_; }  // newest first

  // `before`: empty for the first state, of which nothing is news.
  void take(const std::optional<NodeState>& before, const NodeState& now, double time);
  void take(const HeardEvent& event);
  void add(Alert::Level level, const QString& text, double time, bool news);

 private:
  void takeGpuAlert(const event::GpuAlert& alert, double time, bool news);
  void takeJoin(const event::JoinDone& done, double time, bool news);
  void takeRoundEnd(const IslandState& island, double time, bool news);

  const std::function<void(const Alert&)> on_news_;
  std::vector<Alert> alerts_;
};

}  // namespace atl
