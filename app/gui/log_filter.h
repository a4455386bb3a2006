// The lines of the log that the person wants to see: of a level, a source, with a word in them. GUI thread.
#pragma once

#include <QSortFilterProxyModel>
#include <QString>

namespace atl {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

class LogModel;

class LogFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit LogFilter(LogModel& log, QObject* parent = nullptr);

  void setLeast(LogLevel level);          // lines that do not say their level are kInfo
  void setSource(const QString& source);  // empty: all
  void setWords(const QString& words);    // upper and lower case alike

  QVariant data(const QModelIndex& index, int role) const override;
  // A whole line, as it is copied.
  QString line(int row) const;

 protected:
  bool filterAcceptsRow(int source_row, const QModelIndex& source_parent) const override;

 private:
  LogModel& log_;
  LogLevel least_ = LogLevel::kInfo;
  QString source_, words_;
};

}  // namespace atl
