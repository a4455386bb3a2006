// `atoll:` links that the desktop opens: the first program of this user takes them, and one that starts later hands its
// link over and ends. An invite is a secret: it travels over a socket that only this user may open. GUI thread.
#pragma once

#include <QObject>
#include <QString>

class QLocalServer;

namespace atl {

// The link or invite among the program's arguments; empty: none. It is overwritten there at once: what stands in argv
// every process of the machine can read.
QString take_link(int argc, char** argv);

class LinkInbox : public QObject {
  Q_OBJECT

 public:
  // `name`: of the socket; tests bring their own.
  explicit LinkInbox(QString name = usualName(), QObject* parent = nullptr);

  // Before any window: hands `link` (empty: only asks for the window) to the program that listens. True: it took it,
  // and this one should end. Waits for half a second at most.
  static bool handOver(const QString& link, const QString& name = usualName());
  // From now on. False when another program listens already.
  bool listen();

  static QString usualName();

 Q_SIGNALS:
  // Empty: another start of the program; show the window.
  void linkReceived(const QString& link);

 private:
  void take();

  const QString name_;
  QLocalServer* server_;
};

}  // namespace atl
