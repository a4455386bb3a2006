#include "app/gui/link_inbox.h"

#include <unistd.h>

#include <cstring>

#include <QDir>
#include <QLocalServer>
#include <QLocalSocket>
#include <QStandardPaths>
#include <QTimer>

#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr int kHandOverMilliseconds = 500;
constexpr qint64 kMaxLinkBytes = 8192;
constexpr int kTakeMilliseconds = 2000;

}  // namespace

QString take_link(int argc, char** argv) {
  QString link;
  for (int i = 1; i < argc; ++i) {
    if (!may_be_invite(argv[i])) continue;
    link = QString::fromLocal8Bit(argv[i]);
    std::memset(argv[i], '*', std::strlen(argv[i]));
  }
  return link;
}

LinkInbox::LinkInbox(QString name, QObject* parent)
    : QObject(parent), name_(std::move(name)), server_(new QLocalServer(this)) {
  server_->setSocketOptions(QLocalServer::UserAccessOption);
  connect(server_, &QLocalServer::newConnection, this, &LinkInbox::take);
}

QString LinkInbox::usualName() {
  // Only this user may enter the directory; without one the name must at least be this user's.
  const QString directory = QStandardPaths::writableLocation(QStandardPaths::RuntimeLocation);
  return directory.isEmpty() ? QString("atoll-gui-%1").arg(::getuid()) : directory + "/atoll-gui.sock";
}

bool LinkInbox::handOver(const QString& link, const QString& name) {
  QLocalSocket socket;
  socket.connectToServer(name);
  if (!socket.waitForConnected(kHandOverMilliseconds)) return false;
  socket.write(link.toUtf8() + "\n");
  return socket.waitForBytesWritten(kHandOverMilliseconds);
}

bool LinkInbox::listen() {
  QLocalSocket other;
  other.connectToServer(name_);
  if (other.waitForConnected(kHandOverMilliseconds)) return false;
  QLocalServer::removeServer(name_);  // of a program that was killed
  return server_->listen(name_);
}

void LinkInbox::take() {
  while (QLocalSocket* socket = server_->nextPendingConnection()) {
    connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
    QTimer::singleShot(kTakeMilliseconds, socket, [socket] { socket->abort(); });
    const auto read = [this, socket] {
      if (!socket->canReadLine() && socket->bytesAvailable() <= kMaxLinkBytes) return;
      const QByteArray line = socket->readLine(kMaxLinkBytes);
      socket->abort();
      Q_EMIT linkReceived(QString::fromUtf8(line).trimmed());
    };
    connect(socket, &QLocalSocket::readyRead, this, read);
    if (socket->bytesAvailable() > 0) read();
  }
}

}  // namespace atl
