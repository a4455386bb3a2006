#include "app/gui/log_filter.h"

#include <QGuiApplication>
#include <QPalette>

#include "app/core/log_model.h"
#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

LogLevel level_of(const LogRow& row) {
  if (row.level == "error" || row.level == "critical") return LogLevel::kError;
  if (row.level == "warning" || row.level == "warn") return LogLevel::kWarning;
  return row.level == "debug" || row.level == "trace" ? LogLevel::kDebug : LogLevel::kInfo;
}

QString level_word(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return LogFilter::tr("Debug");
    case LogLevel::kInfo: return LogFilter::tr("Information");
    case LogLevel::kWarning: return LogFilter::tr("Warning");
    case LogLevel::kError: return LogFilter::tr("Error");
  }
  return {};
}

// Programs write the time into the line themselves; of a line without it the time is told beside.
QString text_of(const LogRow& row) {
  const QString text = QString::fromStdString(row.text);
  const QString source = QString::fromStdString(row.source);
  if (row.time.empty() || row.text.starts_with(row.time)) return QString("%1  %2").arg(source, text);
  return QString("%1  %2  %3").arg(source, QString::fromStdString(row.time), text);
}

}  // namespace

LogFilter::LogFilter(LogModel& log, QObject* parent) : QSortFilterProxyModel(parent), log_(log) {
  setSourceModel(&log);
}

void LogFilter::setLeast(LogLevel level) {
  least_ = level;
  invalidateFilter();
}

void LogFilter::setSource(const QString& source) {
  source_ = source;
  invalidateFilter();
}

void LogFilter::setWords(const QString& words) {
  words_ = words.trimmed();
  invalidateFilter();
}

QVariant LogFilter::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const LogRow& row = log_.row(mapToSource(index).row());
  const LogLevel level = level_of(row);
  switch (role) {
    case Qt::DisplayRole: return text_of(row);
    case Qt::ToolTipRole: return {};
    case Qt::AccessibleTextRole: return QString("%1: %2").arg(level_word(level), text_of(row));
    case Qt::DecorationRole:
      if (level == LogLevel::kError) return icon("error", Tone::kBad);
      if (level == LogLevel::kWarning) return icon("warning", Tone::kWarning);
      return icon(level == LogLevel::kDebug ? "remove" : "info", Tone::kNeutral);
    case Qt::ForegroundRole:
      if (level == LogLevel::kDebug) return QGuiApplication::palette().brush(QPalette::PlaceholderText);
      return {};
    default: return {};
  }
}

QString LogFilter::line(int row) const { return text_of(log_.row(mapToSource(index(row, 0)).row())); }

bool LogFilter::filterAcceptsRow(int source_row, const QModelIndex&) const {
  const LogRow& row = log_.row(source_row);
  if (level_of(row) < least_) return false;
  if (!source_.isEmpty() && QString::fromStdString(row.source) != source_) return false;
  return words_.isEmpty() || QString::fromStdString(row.text).contains(words_, Qt::CaseInsensitive);
}

}  // namespace atl
