// `atoll control --stdio` on another machine, reached by ssh.
#include <QProcess>

#include "app/core/child_leash.h"
#include "app/core/device_stream.h"
#include "app/core/streams.h"
#include "net/control/ssh_host.h"

namespace atl {
namespace {

constexpr int kSshFailed = 255, kNoSuchProgram = 127;
constexpr qsizetype kMaxWordsBytes = 4096;

class SshStream final : public DeviceStream {
 public:
  explicit SshStream(QString url) : url_(std::move(url)) {}
  ~SshStream() override { let_end(std::move(process_)); }

  void open() override {
    QMetaObject::invokeMethod(
        this, [this] { start(); }, Qt::QueuedConnection);
  }

 private:
  void start() {
    const auto host = parse_ssh_host(url_.toStdString());
    if (!host.ok()) return end(host.error());
    process_ = std::make_unique<QProcess>();
    detach_from_terminal(*process_);
    QStringList arguments;
    for (const std::string& argument : ssh_arguments(*host)) arguments << QString::fromStdString(argument);
    connect(process_.get(), &QProcess::readyReadStandardError, this,
            [this] { words_ = (words_ + process_->readAllStandardError()).right(kMaxWordsBytes); });
    connect(process_.get(), &QProcess::readyReadStandardOutput, this, [this] {
      spoke_ = true;
      pump();
    });
    connect(process_.get(), &QProcess::started, this, [this] { Q_EMIT opened(); });
    connect(process_.get(), &QProcess::finished, this, [this](int code) { end(lost(code)); });
    connect(process_.get(), &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
      if (error != QProcess::FailedToStart) return;
      end({ErrorCode::kNotFound,
           DeviceStream::tr("There is no ssh program here. Install OpenSSH's client.").toStdString()});
    });
    attach(*process_);
    process_->start("ssh", arguments);
  }

  // What ssh itself said last, for a person: a part of a sentence.
  QString words() {
    words_ += process_->readAllStandardError();
    const QList<QByteArray> lines = words_.trimmed().split('\n');
    QString said = QString::fromUtf8(lines.last().trimmed());
    if (said.endsWith('.')) said.chop(1);
    return said;
  }

  // What logs in there by hand.
  QString login() const {
    const auto host = parse_ssh_host(url_.toStdString());
    const QString port = host->port > 0 ? QString("-p %1 ").arg(host->port) : QString();
    const QString user = host->user.empty() ? QString() : QString::fromStdString(host->user) + '@';
    return "ssh " + port + user + QString::fromStdString(host->host);
  }

  Error lost(int code) {
    const QString said = words();
    const QString shown = url_.mid(6);
    if (code == kNoSuchProgram) {
      return {ErrorCode::kNotFound,
              DeviceStream::tr("There is no 'atoll' on the PATH of %1. Install it there.").arg(shown).toStdString()};
    }
    const bool refused = said.contains("Permission denied") || said.contains("Host key verification failed");
    if (code == kSshFailed && !spoke_) {
      return {refused ? ErrorCode::kPermissionDenied : ErrorCode::kUnreachable,
              DeviceStream::tr("ssh could not log in to %1: %2. In a terminal, try: %3 true")
                  .arg(shown, said.isEmpty() ? DeviceStream::tr("it does not say why") : said, login())
                  .toStdString()};
    }
    return {ErrorCode::kPeerLost,
            said.isEmpty() ? DeviceStream::tr("The connection to %1 broke.").arg(shown).toStdString()
                           : DeviceStream::tr("The connection to %1 broke: %2.").arg(shown, said).toStdString()};
  }

  const QString url_;
  std::unique_ptr<QProcess> process_;
  QByteArray words_;
  bool spoke_ = false;
};

}  // namespace

OpenStream open_ssh(const QString& url) {
  return [url] { return std::make_unique<SshStream>(url); };
}

}  // namespace atl
