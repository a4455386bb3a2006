// What agent and trainer wrote (`logs.read`), followed while somebody looks. At most kMaxLines, the oldest go first.
// Owned by a Node; GUI thread.
#pragma once

#include <deque>
#include <string>

#include <QAbstractListModel>
#include <QTimer>

#include "app/core/agent_link.h"

namespace atl {

struct LogRow {
  std::string source;  // "agent", "trainer"
  std::string time;    // local to the node
  std::string level;   // "error", "warning", "info", "debug"; empty: unknown
  std::string text;
};

class LogModel : public QAbstractListModel {
  Q_OBJECT

 public:
  static constexpr std::size_t kMaxLines = 20'000;
  enum Role { kSourceRole = Qt::UserRole, kTimeRole, kLevelRole };  // DisplayRole: the text

  explicit LogModel(AgentLink& link, QObject* parent = nullptr);

  void follow(bool on);  // reads on every second; the first call reads the newest lines
  const std::string& problem() const { return problem_; }
  const LogRow& row(int index) const { return lines_[std::size_t(index)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;

  void reload();

 Q_SIGNALS:
  void changed();

 private:
  void ask();
  void take(const nlohmann::json& answer);

  AgentLink& link_;
  std::deque<LogRow> lines_;
  std::string cursor_, problem_;
  QTimer timer_;
  bool asking_ = false;
  std::uint64_t generation_ = 0;  // answers to older questions are dropped
};

}  // namespace atl
