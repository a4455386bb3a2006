// A node check: its rows as they come. Owned by a Node; GUI thread.
#pragma once

#include <string>
#include <vector>

#include <QAbstractTableModel>

#include "app/core/agent_link.h"
#include "net/control/events.h"

namespace atl {

class CheckModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kVerdict, kRow, kText, kFix, kColumns };
  static constexpr int kVerdictRole = Qt::UserRole;  // a Verdict, as an int

  explicit CheckModel(AgentLink& link, QObject* parent = nullptr);

  // `invite`: of the run that is to be joined; empty: for the one that was, if any.
  void run(bool full, const std::string& invite = {});
  bool running() const { return running_; }
  bool finished() const { return finished_; }    // at least one, and none runs
  double ended_at() const { return ended_at_; }  // seconds since 1970; 0: never
  // The run that the last one was made for, as its report says; empty: none was joined, or it was not said.
  const std::string& run_id() const { return run_id_; }
  const std::string& problem() const { return problem_; }  // why it could not be run to its end
  const std::vector<CheckRow>& rows() const { return rows_; }
  std::size_t count(Verdict verdict) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  void take(const HeardEvent& event);
  void lost();  // the connection is: the check's end will not be heard

 Q_SIGNALS:
  void changed();

 private:
  static QString word(Verdict verdict);
  void begin();
  void end(const std::string& problem, double time);
  void add(CheckRow row);

  AgentLink& link_;
  std::vector<CheckRow> rows_;
  bool running_ = false, finished_ = false;
  double ended_at_ = 0;
  std::string run_id_, problem_;
};

}  // namespace atl
