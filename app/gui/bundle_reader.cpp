#include "app/gui/bundle_reader.h"

#include <QFile>
#include <QPointer>
#include <QThreadPool>
#include <QVariant>

#include "app/agent/files/tar_reader.h"

namespace atl {
namespace {

constexpr qint64 kMaxBundleBytes = 64 << 20;

Result<BundleContent> content_of(const QString& name) {
  QFile file(name);
  if (!file.open(QIODevice::ReadOnly)) {
    return Error{ErrorCode::kIo, "cannot read " + name.toStdString() + ": " + file.errorString().toStdString()};
  }
  const QByteArray bytes = file.read(kMaxBundleBytes);
  ATOLL_ASSIGN_OR_RETURN(const auto files, read_tar({bytes.constData(), static_cast<std::size_t>(bytes.size())}));
  BundleContent content;
  for (const auto& [entry, text] : files) {
    content.push_back({QString::fromStdString(entry), static_cast<qint64>(text.size()), QString::fromStdString(text)});
  }
  return content;
}

}  // namespace

void read_bundle(const QString& file, QObject* context, std::function<void(const Result<BundleContent>&)> done) {
  // Lives on the GUI thread, takes the answer there, and drops it when `context` has gone.
  auto* courier = new QObject;
  QObject::connect(context, &QObject::destroyed, courier, [courier] { courier->setProperty("alone", true); });
  QThreadPool::globalInstance()->start([file, courier, done = std::move(done)] {
    Result<BundleContent> content = content_of(file);
    QMetaObject::invokeMethod(courier, [courier, done, content = std::move(content)] {
      if (!courier->property("alone").toBool()) done(content);
      courier->deleteLater();
    });
  });
}

}  // namespace atl
