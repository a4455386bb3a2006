// What `atoll-gui` is told at its start, and the machines that it then looks at. GUI thread.
#pragma once

#include <optional>

#include <QString>
#include <QStringList>

#include "net/base/result.h"

class QCommandLineParser;

namespace atl {

class Nodes;

struct GuiOptions {
  QString home;       // of this machine's agent; empty: this user's own
  QStringList hosts;  // ssh://user@node, beside this machine
  QString replay;     // a recording instead of machines
  double speed = 1;
  QString record;
  QString invite;  // an atoll: link, an invite, or the file that holds one
};

void add_options(QCommandLineParser& parser);
Result<GuiOptions> read_options(const QCommandLineParser& parser);

// `invite` as the wizard wants it: the text itself, or what the file holds.
Result<QString> invite_text(const QString& invite);

// Where the app keeps what it remembers: its theme, the machines.
QString settings_file();
QString nodes_file();

// Fills `nodes`, this machine or the recording first.
Status open_nodes(const GuiOptions& options, Nodes& nodes);

}  // namespace atl
