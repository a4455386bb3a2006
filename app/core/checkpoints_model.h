// The checkpoints on the node's disk, and what is done with them. Owned by a Node; GUI thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QAbstractTableModel>

#include "app/core/agent_link.h"
#include "app/core/command_run.h"
#include "app/core/paced.h"
#include "net/control/events.h"

namespace atl {

struct CheckpointRow {
  std::string path;
  std::uint32_t outer_step = 0;
  std::uint64_t parameters = 0, bytes = 0;
  double saved_at = 0;  // seconds since 1970
  std::string state_hash;
  std::optional<bool> whole;  // verified; empty: not looked at
};

class CheckpointsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kRound, kSize, kSaved, kHash, kVerified, kPath, kColumns };

  CheckpointsModel(AgentLink& link, RunCommand run, QObject* parent = nullptr);

  const std::vector<CheckpointRow>& rows() const { return rows_; }
  bool busy() const { return busy_; }
  enum class Task { kVerify, kExport };
  Task task() const { return task_; }                               // the last thing done
  const std::optional<Error>& failure() const { return failure_; }  // of it; empty when it went well
  const std::string& outcome() const { return outcome_; }           // what it did

  void verify();                            // atoll checkpoints verify
  void exportTo(const QString& directory);  // atoll export --output

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  void take(const HeardEvent& event);
  void reload();

 Q_SIGNALS:
  void changed();

 private:
  void show(std::vector<CheckpointRow> rows);
  void begin(Task task);
  void fail(Error error);
  void succeed(const QString& outcome);

  AgentLink& link_;
  const RunCommand run_;
  std::vector<CheckpointRow> rows_;
  bool busy_ = false;
  Task task_ = Task::kVerify;
  std::optional<Error> failure_;
  std::string outcome_;
  Paced look_;
};

}  // namespace atl
