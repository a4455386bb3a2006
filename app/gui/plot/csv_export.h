// Writes series to a CSV file a part at a time, so that a million points do not hold up the window. A row a point:
// metric, x, mean, low, high, points merged in it. Deletes itself when it has ended; GUI thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <QObject>
#include <QTimer>

#include "app/core/history_model.h"
#include "net/base/new_file.h"
#include "net/base/result.h"

namespace atl {

class CsvExport : public QObject {
  Q_OBJECT

 public:
  struct Request {
    QString file;
    std::vector<std::string> metrics = {};
    SeriesAxis axis = SeriesAxis::kStep;
    double from = 0, to = 0;
  };

  CsvExport(HistoryModel& history, Request request, QObject* parent);
  void start();

 Q_SIGNALS:
  void ended(const atl::Status& status);

 private:
  Status begin();
  void writePart();
  void end(const Status& status);

  HistoryModel& history_;
  const Request request_;
  Status begun_;
  std::optional<NewFile> file_;
  std::size_t metric_ = 0;
  double next_x_ = 0;
  QTimer turn_;
};

}  // namespace atl
