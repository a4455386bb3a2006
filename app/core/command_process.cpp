// The kinds of CommandRun: a child process, a command behind ssh, none.
#include <signal.h>

#include <QPointer>
#include <QProcess>
#include <QProcessEnvironment>

#include "app/core/child_leash.h"
#include "app/core/command_run.h"
#include "app/core/streams.h"
#include "net/base/encoding.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

class ChildCommand final : public CommandRun {
 public:
  ChildCommand(QString program, const AgentHome& home, CommandRequest request)
      : program_(std::move(program)), request_(std::move(request)), process_(std::make_unique<QProcess>()) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    // A home of its own is named by the environment, where commands without --home look too.
    if (home.socket.parent_path() == home.island.directory) {
      environment.insert("ATOLL_HOME", QString::fromStdString(home.island.directory.string()));
    }
    process_->setProcessEnvironment(environment);
    detach_from_terminal(*process_);
  }
  ~ChildCommand() override { let_end(std::move(process_)); }

  void start() override {
    QMetaObject::invokeMethod(
        this, [this] { begin(); }, Qt::QueuedConnection);
  }

  void interrupt() override {
    const qint64 pid = process_->processId();
    if (pid > 0) ::kill(static_cast<pid_t>(pid), SIGINT);
  }

 private:
  void begin() {
    connect(process_.get(), &QProcess::readyReadStandardOutput, this,
            [this] { Q_EMIT output(process_->readAllStandardOutput()); });
    connect(process_.get(), &QProcess::readyReadStandardError, this,
            [this] { Q_EMIT errors(process_->readAllStandardError()); });
    connect(process_.get(), &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
      Q_EMIT ended(status == QProcess::NormalExit ? code : 128 + code);
    });
    connect(process_.get(), &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
      if (error != QProcess::FailedToStart) return;
      Q_EMIT ended(Error{ErrorCode::kNotFound,
                         CommandRun::tr("Cannot run %1: %2. Install Atoll's command line beside this program.")
                             .arg(program_, process_->errorString())
                             .toStdString()});
    });
    process_->start(program_, request_.arguments);
    process_->write(request_.input);
    process_->closeWriteChannel();
  }

  const QString program_;
  const CommandRequest request_;
  std::unique_ptr<QProcess> process_;
};

class RemoteCommand final : public CommandRun {
 public:
  RemoteCommand(const QString& url, CommandRequest request) : stream_(open_ssh(url)()), request_(std::move(request)) {}
  // The connection's end interrupts the command.
  ~RemoteCommand() override {
    stream_->disconnect(this);
    stream_.release()->deleteLater();
  }

  void start() override {
    connect(stream_.get(), &LineStream::opened, this, [this] { begin(); });
    connect(stream_.get(), &LineStream::received, this, &RemoteCommand::take);
    connect(stream_.get(), &LineStream::closed, this, [this](const Error& why) { finish(why); });
    stream_->open();
  }

  void interrupt() override { send(kInterrupt, "command.interrupt", nlohmann::json::object()); }

 private:
  enum Id : std::int64_t { kHello = 1, kRun, kInterrupt };

  void send(Id id, const char* method, const nlohmann::json& params) {
    stream_->send(QByteArray::fromStdString(encode_request(id, method, params)));
  }

  void begin() {
    nlohmann::json arguments = nlohmann::json::array();
    for (const QString& argument : request_.arguments) arguments.push_back(argument.toStdString());
    const std::string input = request_.input.toStdString();
    send(kHello, "hello", nlohmann::json::object());
    send(kRun, "command.run",
         {{"arguments", arguments},
          {"input", base64url_encode(as_bytes(std::string_view(input)))},
          {"terminal", false}});
  }

  void take(const QByteArray& line) {
    const auto reply = decode_reply({line.data(), static_cast<std::size_t>(line.size())});
    if (!reply.ok()) return finish(reply.error());
    if (const auto* event = std::get_if<RpcEvent>(&*reply)) return takeOutput(event->params);
    const auto& response = std::get<RpcResponse>(*reply);
    if (response.id != kHello && response.id != kRun) return;
    if (!response.result.ok()) return finish(response.result.error());
    const nlohmann::json result = response.result->is_object() ? *response.result : nlohmann::json::object();
    if (response.id == kHello && result.value("version", nlohmann::json()) != kControlVersion) {
      return finish(Error{
          ErrorCode::kVersionUnsupported,
          CommandRun::tr("The other machine's Atoll is of another version; install the same there.").toStdString()});
    }
    const nlohmann::json exit = result.value("exit_code", nlohmann::json());
    if (response.id == kRun) finish(exit.is_number_integer() ? exit.get<int>() : static_cast<int>(1));
  }

  void takeOutput(const nlohmann::json& event) {
    if (event.value("event", nlohmann::json()) != "command.output" || !event.contains("data")) return;
    const nlohmann::json& data = event["data"];
    if (!data.is_object() || !data.contains("bytes") || !data["bytes"].is_string()) return;
    const auto bytes = base64url_decode(data["bytes"].get<std::string>());
    if (!bytes.ok()) return;
    const QByteArray text(reinterpret_cast<const char*>(bytes->data()), static_cast<qsizetype>(bytes->size()));
    if (data.value("stream", nlohmann::json()) == "err") {
      Q_EMIT errors(text);
    } else {
      Q_EMIT output(text);
    }
  }

  void finish(const Result<int>& result) {
    if (std::exchange(over_, true)) return;
    stream_->disconnect(this);
    Q_EMIT ended(result);
  }

  std::unique_ptr<LineStream> stream_;
  const CommandRequest request_;
  bool over_ = false;
};

class NoCommand final : public CommandRun {
 public:
  void start() override {
    QMetaObject::invokeMethod(
        this,
        [this] {
          Q_EMIT ended(Error{
              ErrorCode::kInvalidArgument,
              CommandRun::tr("This is a recording: there is no machine on which this could be done.").toStdString()});
        },
        Qt::QueuedConnection);
  }
  void interrupt() override {}
};

}  // namespace

RunCommand make_run_command(const NodeAddress& address, const QString& program) {
  if (const auto* local = std::get_if<LocalNode>(&address)) {
    return [home = local->home, program](const CommandRequest& request) {
      return std::make_unique<ChildCommand>(program.isEmpty() ? atoll_program() : program, home, request);
    };
  }
  if (const auto* ssh = std::get_if<SshNode>(&address)) {
    return [url = ssh->url](const CommandRequest& request) { return std::make_unique<RemoteCommand>(url, request); };
  }
  return [](const CommandRequest&) { return std::make_unique<NoCommand>(); };
}

}  // namespace atl
