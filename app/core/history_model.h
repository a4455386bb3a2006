// The metrics of one island's run: what the agent kept, fetched as a view needs it, and what comes live. Owned by a
// Node; GUI thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <QObject>
#include <QTimer>

#include "app/core/agent_link.h"
#include "app/core/fetched_ranges.h"
#include "app/core/paced.h"
#include "app/core/series.h"
#include "app/core/token_count.h"
#include "net/control/events.h"

namespace atl {

class HistoryModel : public QObject {
  Q_OBJECT

 public:
  // Of one series, and of all of them, each of which has its share: beyond it the older half is thinned. A view asks
  // for what it shows finer.
  static constexpr std::size_t kMaxPoints = 65'536, kMaxTotalPoints = 1u << 20;

  explicit HistoryModel(AgentLink& link, QObject* parent = nullptr);
  ~HistoryModel() override;

  // Names that the agent keeps ("loss_nats", "tokens_per_second", ...; docs/control.md).
  const std::set<std::string>& names() const { return names_; }
  // Empty until it was fetched; the first call fetches it. Valid as long as the model.
  const Series& series(const std::string& name, SeriesAxis axis);
  // A view shows [from, to] by `columns`: fetches more where the series is coarser than that. Cheap; call it on each
  // change of the view (requests are gathered, and one a series is under way at most).
  void want(const std::string& name, SeriesAxis axis, double from, double to, int columns);
  bool loading(const std::string& name, SeriesAxis axis) const;
  const std::string& problem() const { return problem_; }  // the last query's; empty when it went well

  // From the node: live points and a change of run.
  void take(const HeardEvent& event);
  void reload();

 Q_SIGNALS:
  void namesChanged();
  void changed(const QString& name);  // at most thirty times a second

 private:
  struct Entry;
  struct Query {
    double from = 0, to = 0;
    bool whole = true;
    int points = 0;
  };
  using Key = std::pair<std::string, SeriesAxis>;

  Entry& entry(const Key& key);
  void enterRun(const std::string& run);
  void fetchNames();
  void fetchWanted();
  void fetch(const Key& key, const Query& query);
  void takeAnswer(const Key& key, const Query& query, const Result<nlohmann::json>& answer);
  void takeColumns(const Key& key, const Query& query, const nlohmann::json& answer);
  void learnTokens();
  void learnPast();
  void append(const std::string& name, double time, double value, bool kept);  // kept: unless it is there already
  void takeGpus(const event::GpuSampled& sampled, double time);
  void takeState(const HeardEvent& event, const IslandState& island);
  std::size_t share() const;
  void touch(const std::string& name);

  AgentLink& link_;
  std::set<std::string> names_;
  std::map<Key, std::unique_ptr<Entry>> entries_;
  std::string run_, problem_;
  std::uint64_t generation_ = 0;  // of the run: answers to older questions are dropped
  double step_ = 0;               // of the run, at the last event
  TokenCount tokens_;
  double validation_loss_ = 0;
  std::set<std::string> touched_;
  Paced tell_;
  QTimer gather_, learn_tokens_, learn_past_;
};

}  // namespace atl
