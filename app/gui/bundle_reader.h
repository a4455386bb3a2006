// Reads a diagnostics bundle, off the GUI thread.
#pragma once

#include <functional>

#include <QObject>
#include <QString>
#include <QStringList>

#include "net/base/result.h"

namespace atl {

struct BundleEntry {
  QString name;
  qint64 bytes = 0;
  QString text;  // empty: stays on the other machine
};
using BundleContent = std::vector<BundleEntry>;

// `done` is called on the GUI thread, unless `context` is gone by then.
void read_bundle(const QString& file, QObject* context, std::function<void(const Result<BundleContent>&)> done);

}  // namespace atl
