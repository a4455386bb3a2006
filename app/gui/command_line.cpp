#include "app/gui/command_line.h"

#include <algorithm>

#include <QCommandLineParser>
#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>

#include "app/core/nodes.h"
#include "app/core/recording_index.h"
#include "net/control/home.h"

namespace atl {
namespace {

struct CommandLine {
  Q_DECLARE_TR_FUNCTIONS(CommandLine)
};

constexpr qint64 kLongestInvite = 64 * 1024;

QString own_file(const char* name) {
  const auto directory = state_directory();
  return directory.ok() ? QString::fromStdString((*directory / name).string()) : QString();
}

}  // namespace

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription(CommandLine::tr("Check this machine, join a run, and watch what its island does."));
  parser.addOption({"home", CommandLine::tr("The agent's home (default: this user's agent)."), "DIR"});
  parser.addOption(
      {"host", CommandLine::tr("Another machine too: ssh://user@node. May be given several times."), "URL"});
  parser.addOption({"replay", CommandLine::tr("Show a recording instead of a machine."), "FILE"});
  parser.addOption({"speed", CommandLine::tr("How many times as fast it is shown (default: 1)."), "N"});
  parser.addOption({"record", CommandLine::tr("Record what this machine's agent says, for a bug report."), "FILE"});
  parser.addPositionalArgument("invite", CommandLine::tr("An atoll: link, an invite, or the file that holds one."),
                               "[INVITE]");
}

Result<GuiOptions> read_options(const QCommandLineParser& parser) {
  GuiOptions options;
  options.home = parser.value("home");
  options.hosts = parser.values("host");
  options.replay = parser.value("replay");
  options.record = parser.value("record");
  if (parser.isSet("speed")) {
    bool ok = false;
    options.speed = parser.value("speed").toDouble(&ok);
    if (!ok || !(options.speed > 0) || options.speed > 1e6) {
      return Error{ErrorCode::kInvalidArgument,
                   "--speed " + parser.value("speed").toStdString() + ": give a number above 0, like 10"};
    }
  }
  const QStringList rest = parser.positionalArguments();
  if (rest.size() > 1) {
    return Error{ErrorCode::kInvalidArgument, "one invite at a time; atoll-gui --help shows how it is called"};
  }
  if (!rest.isEmpty()) options.invite = rest.front();
  return options;
}

Result<QString> invite_text(const QString& invite) {
  QFile file(invite);
  if (invite.isEmpty() || !QFileInfo(invite).isFile()) return invite;
  if (!file.open(QIODevice::ReadOnly)) {
    return Error{ErrorCode::kIo, invite.toStdString() + " cannot be read: " + file.errorString().toStdString()};
  }
  return QString::fromUtf8(file.read(kLongestInvite)).trimmed();
}

QString settings_file() { return own_file("gui.ini"); }
QString nodes_file() { return own_file("gui-machines.json"); }

Status open_nodes(const GuiOptions& options, Nodes& nodes) {
  if (!options.replay.isEmpty()) {
    ATOLL_RETURN_IF_ERROR(check_recording(options.replay));
    nodes.add(RecordedNode{options.replay, options.speed});
  } else {
    ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(options.home.toStdString()));
    nodes.add(LocalNode{home});
    nodes.load();
  }
  for (const QString& host : options.hosts) {
    ATOLL_ASSIGN_OR_RETURN(const NodeAddress address, parse_node_url(host));
    const auto same = [&host](const auto& node) {
      const auto* ssh = std::get_if<SshNode>(&node->address());
      return ssh != nullptr && ssh->url == host.trimmed();
    };
    if (std::none_of(nodes.all().begin(), nodes.all().end(), same)) nodes.add(address);
  }
  return ok_status();
}

}  // namespace atl
