// Which machine a window looks at: this one (an agent's home), another one by ssh, or a recording. Plain values; any
// thread.
#pragma once

#include <variant>

#include <QString>

#include "net/base/result.h"
#include "net/control/home.h"

namespace atl {

struct LocalNode {
  AgentHome home;
};
struct SshNode {
  QString url;  // "ssh://user@node:22", as parse_ssh_host reads it
};
struct RecordedNode {
  QString file;
  double speed = 1;  // seconds of the recording a second
};
using NodeAddress = std::variant<LocalNode, SshNode, RecordedNode>;

// "ssh://...". kInvalidArgument says what is wrong.
Result<NodeAddress> parse_node_url(const QString& url);
QString label(const NodeAddress& address);  // "This machine", "user@node", the file's name

}  // namespace atl
