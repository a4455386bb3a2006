#include "tests/app/gui/pictures.h"

#include <array>

#include <fmt/format.h>
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QLocalServer>
#include <QLocalSocket>
#include <QPainter>
#include <QPixmap>
#include <QProcess>

#include "app/agent/files/tar_archive.h"
#include "app/config/config_keys.h"
#include "tests/app/gui/gui_node.h"

namespace atl::test {
namespace {

nlohmann::json settings_json() {
  nlohmann::json values = nlohmann::json::array();
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.name;
    const bool set = name == "limits.upload";
    const bool overruled = name == "log.level";
    values.push_back({{"key", name},
                      {"value", set ? "20 Mbit/s" : key.default_value},
                      {"default", key.default_value},
                      {"origin", set         ? "settings"
                                 : overruled ? "ATOLL_LOG_LEVEL"
                                             : "default"},
                      {"meaning", key.meaning}});
  }
  return {{"values", values},
          {"file", "/home/ana/.config/atoll/config.toml"},
          {"settings", "/home/ana/.local/state/atoll/settings.json"}};
}

struct Line {
  const char* time;  // of the day that tests/app/gui/run_story tells of
  const char* source;
  const char* level;
  const char* text;
};
constexpr std::array kLines{
    Line{"06:34:56.118", "trainer", "warning", "hub away error=\"connection refused\""},
    Line{"08:34:55.207", "trainer", "info", "hub answers run=atlas-150m address=hub.example.org:47000"},
    Line{"09:46:31.702", "trainer", "info", "round begun round=39 islands=8"},
    Line{"09:51:11.084", "trainer", "info", "sync done round=39 seconds=29.4 sent=289 MB accepted=true"},
    Line{"09:51:11.101", "trainer", "info", "round begun round=40 islands=8"},
    Line{"09:55:49.193", "trainer", "info", "sync done round=40 seconds=28.1 sent=289 MB accepted=true"},
    Line{"09:55:49.194", "trainer", "warning", "edge slow from=garage to=montreal-8xh100 rate=92.8 Mbit/s"},
    Line{"09:55:49.212", "trainer", "info", "round begun round=41 islands=8"},
    Line{"09:57:13.440", "agent", "warning", "gpu throttled gpu=5 reason=heat celsius=81"},
    Line{"10:00:05.377", "trainer", "error", "connection lost peer=loft attempt=1 error=\"connection reset by peer\""},
    Line{"10:00:06.020", "trainer", "info", "attempt begun round=41 attempt=2 islands=8"},
    Line{"10:00:35.262", "trainer", "info", "sync done round=41 seconds=36.1 sent=289 MB accepted=true"},
    Line{"10:00:35.281", "trainer", "info", "round begun round=42 islands=8"},
    Line{"10:00:37.403", "trainer", "info", "checkpoint saved outer_step=42 bytes=1298583552 seconds=2.1"},
    Line{"10:01:20.767", "trainer", "warning", "island away name=loft"},
};

nlohmann::json log_json(const nlohmann::json& params) {
  nlohmann::json lines = nlohmann::json::array();
  for (const Line& line : kLines) {
    if (params.contains("cursor")) break;
    const std::string time = fmt::format("2025-11-21T{}", line.time);
    lines.push_back({{"source", line.source},
                     {"time", time},
                     {"level", line.level},
                     {"text", fmt::format("{} {} {}", time, line.level, line.text)}});
  }
  return {{"lines", lines}, {"cursor", "end"}};
}

nlohmann::json write_bundle(const nlohmann::json& params) {
  TarArchive archive(1'763'700'000);
  std::string log;
  const nlohmann::json said = log_json(nlohmann::json::object());
  for (const auto& line : said["lines"]) log += line["text"].get<std::string>() + "\n";
  archive.add("atoll-diag/agent.log", log);
  archive.add("atoll-diag/config.json", "{}\n");
  archive.add("atoll-diag/state.json", training_state().dump(2) + "\n");
  archive.add("atoll-diag/system.txt", "atoll 0.1.0\nLinux 6.1.0 x86_64\n");
  const std::string bytes = archive.take();
  QFile file(QString::fromStdString(params["file"].get<std::string>()));
  if (file.open(QIODevice::WriteOnly)) file.write(bytes.data(), static_cast<qint64>(bytes.size()));
  return {{"file", params["file"]}, {"bytes", bytes.size()}, {"entries", nlohmann::json::array()}};
}

// Each line that comes goes on to the other side.
void bridge(QLocalSocket* socket, LineStream* stream) {
  stream->setParent(socket);
  QObject::connect(stream, &LineStream::received, socket,
                   [socket](const QByteArray& line) { socket->write(line + '\n'); });
  QObject::connect(stream, &LineStream::closed, socket, [socket] { socket->disconnectFromServer(); });
  QObject::connect(stream, &LineStream::opened, socket, [socket, stream] {
    const auto pass_on = [socket, stream] {
      while (socket->canReadLine()) stream->send(socket->readLine());
    };
    QObject::connect(socket, &QLocalSocket::readyRead, stream, pass_on);
    pass_on();
  });
  QObject::connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
  stream->open();
}

QPixmap with_popups(QWidget& window) {
  QPixmap pixels = window.grab();
  QPainter painter(&pixels);
  for (QWidget* over : QApplication::topLevelWidgets()) {
    const Qt::WindowType type = over->windowType();
    if (over == &window || !over->isVisible() || (type != Qt::Popup && type != Qt::ToolTip)) continue;
    painter.drawPixmap(over->pos() - window.mapToGlobal(QPoint(0, 0)), over->grab());
  }
  return pixels;
}

}  // namespace

Pictures::Pictures(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s OUTDIR [FILTER [LANGUAGE]]\n", argv[0]);
    std::exit(2);
  }
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", ATOLL_OFFSCREEN);
  if (qEnvironmentVariableIsEmpty("QT_SCALE_FACTOR")) {
    qputenv("QT_SCALE_FACTOR", "2");
    QStringList arguments;
    for (int i = 1; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
    const int code = QProcess::execute(QString::fromLocal8Bit(argv[0]), arguments);
    if (code != 0) std::exit(code);
    qunsetenv("QT_SCALE_FACTOR");
  }
  directory_ = QString::fromLocal8Bit(argv[1]);
  filter_ = argc > 2 ? QString::fromLocal8Bit(argv[2]) : QString();
  if (argc > 3) locale_ = QLocale(QString::fromLocal8Bit(argv[3]));
  QDir().mkpath(directory_);
}

bool Pictures::doubled() const { return !qEnvironmentVariableIsEmpty("QT_SCALE_FACTOR"); }

QString Pictures::fileOf(const QString& name, bool dark) const {
  return QString("%1-%2%3.png").arg(name, dark ? "dark" : "light", doubled() ? "@2x" : "");
}

bool Pictures::wanted(const QString& name, bool dark) const { return fileOf(name, dark).contains(filter_); }

void Pictures::save(QWidget& window, const QString& name, bool dark) const {
  const QString file = directory_ + "/" + fileOf(name, dark);
  if (!with_popups(window).save(file)) qFatal("%s cannot be written", qPrintable(file));
  std::printf("%s\n", qPrintable(file));
  std::fflush(stdout);
}

std::vector<nlohmann::json> check_rows_of_a_node(bool fails) {
  std::vector<nlohmann::json> rows = {check_row("cpu", "skip", "64 cores, AVX-512; the GPUs compute"),
                                      check_row("ram", "pass", "1.1 TB >= 26 GB for this run"),
                                      check_row("host.nofile", "warn", "8192 < 65536 open files",
                                                "as a service: LimitNOFILE=65536; in a shell: ulimit -n 65536"),
                                      check_row("net.cc", "warn", "cubic; long fast links want bbr",
                                                "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr"),
                                      check_row("gpu.driver", "pass", "550.54"),
                                      check_row("gpu.model", "pass", "8x H100 80GB HBM3"),
                                      check_row("gpu.memory", "pass", "80 GB each, 41 GB for this run"),
                                      check_row("gpu.ecc", "pass", "on, no uncorrected errors"),
                                      check_row("net.rtt", "pass", "24 ms to hub.example.org"),
                                      check_row("clock", "pass", "0.02 s off")};
  if (fails) {
    rows.insert(rows.begin() + 2,
                check_row("disk.free", "fail", "212 GB < 480 GB for this run", "choose another directory with --data"));
  }
  return rows;
}

void furnish(FakeAgent& agent, std::vector<nlohmann::json> rows) {
  agent.answer("config.get", settings_json());
  agent.answer("config.set", nlohmann::json{{"values", nlohmann::json::array()}});
  agent.answer("logs.read", [](const nlohmann::json& params) -> Result<nlohmann::json> { return log_json(params); });
  agent.answer("diag.create",
               [](const nlohmann::json& params) -> Result<nlohmann::json> { return write_bundle(params); });
  agent.answer("check.run", [&agent, rows = std::move(rows)](const auto&) -> Result<nlohmann::json> {
    tell_check(agent, rows);
    return nlohmann::json{{"started", true}};
  });
}

SocketBridge::SocketBridge(const FakeAgent& agent, const QString& socket) : server_(std::make_unique<QLocalServer>()) {
  QLocalServer::removeServer(socket);
  if (!server_->listen(socket)) qFatal("%s: %s", qPrintable(socket), qPrintable(server_->errorString()));
  QObject::connect(server_.get(), &QLocalServer::newConnection, server_.get(),
                   [server = server_.get(), open = agent.open()] {
                     while (QLocalSocket* one = server->nextPendingConnection()) bridge(one, open().release());
                   });
}

SocketBridge::~SocketBridge() = default;

}  // namespace atl::test
