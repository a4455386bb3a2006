#include "app/gui/plot/csv_export.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace atl {
namespace {

constexpr std::size_t kRowsATurn = 4000;  // a few milliseconds

const char* column_of(SeriesAxis axis) {
  switch (axis) {
    case SeriesAxis::kTime: return "time_seconds";
    case SeriesAxis::kStep: return "step";
    case SeriesAxis::kTokens: return "tokens";
  }
  return "x";
}

}  // namespace

CsvExport::CsvExport(HistoryModel& history, Request request, QObject* parent)
    : QObject(parent), history_(history), request_(std::move(request)), next_x_(request_.from) {
  connect(&turn_, &QTimer::timeout, this, &CsvExport::writePart);
}

void CsvExport::start() {
  begun_ = begin();
  turn_.start(0);
}

Status CsvExport::begin() {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(request_.file.toStdString(), FileMode::kPublic));
  const std::string header = fmt::format("metric,{},mean,low,high,points\n", column_of(request_.axis));
  ATOLL_RETURN_IF_ERROR(file.write(as_bytes(std::string_view(header))));
  file_.emplace(std::move(file));
  return ok_status();
}

// Goes on by x, not by index: meanwhile points may have come, or finer ones in the place of others.
void CsvExport::writePart() {
  if (!begun_.ok()) return end(begun_);
  if (metric_ >= request_.metrics.size()) return end(file_->take_place());
  const std::string& metric = request_.metrics[metric_];
  const Series& series = history_.series(metric, request_.axis);
  std::size_t index = series.empty() ? 0 : series.nearest(next_x_);
  while (index < series.size() && series.at(index).x < next_x_) ++index;
  std::string rows;
  std::size_t written = 0;
  bool over = true;
  for (; index < series.size(); ++index) {
    const SeriesPoint point = series.at(index);
    if (point.x > request_.to) break;
    if (written++ == kRowsATurn) {
      next_x_ = point.x;
      over = false;
      break;
    }
    fmt::format_to(std::back_inserter(rows), "{},{:.15g},{:.9g},{:.9g},{:.9g},{:.0f}\n", metric, point.x, point.mean,
                   point.low, point.high, point.count);
  }
  if (const Status put = file_->write(as_bytes(std::string_view(rows))); !put.ok()) return end(put);
  if (over) {
    ++metric_;
    next_x_ = request_.from;
  }
}

void CsvExport::end(const Status& status) {
  turn_.stop();
  Q_EMIT ended(status);
  deleteLater();
}

}  // namespace atl
