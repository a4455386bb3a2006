#include "app/core/node_address.h"

#include <QCoreApplication>
#include <QFileInfo>

#include "net/control/ssh_host.h"

namespace atl {

Result<NodeAddress> parse_node_url(const QString& url) {
  const QString trimmed = url.trimmed();
  ATOLL_RETURN_IF_ERROR(parse_ssh_host(trimmed.toStdString()));
  return NodeAddress(SshNode{trimmed});
}

QString label(const NodeAddress& address) {
  if (std::holds_alternative<LocalNode>(address)) return QCoreApplication::translate("NodeAddress", "This machine");
  if (const auto* recorded = std::get_if<RecordedNode>(&address)) return QFileInfo(recorded->file).fileName();
  const QString& url = std::get<SshNode>(address).url;
  const auto host = parse_ssh_host(url.toStdString());
  if (!host.ok()) return url;
  const QString name = QString::fromStdString(host->host);
  return host->user.empty() ? name : QString::fromStdString(host->user) + "@" + name;
}

}  // namespace atl
