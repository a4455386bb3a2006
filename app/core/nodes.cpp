#include "app/core/nodes.h"

#include <QFile>
#include <algorithm>

#include "app/core/streams.h"
#include "net/base/file.h"
#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr qint64 kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxNodes = 256;
constexpr int kMaxSavedDepth = 4;

}  // namespace

// A list that cannot be read is none: the machines can be named again.
void Nodes::load() {
  if (file_.isEmpty()) return;
  QFile in(file_);
  if (!in.open(QIODevice::ReadOnly) || in.size() > kMaxFileBytes) return;
  const auto json = parse_bounded_json(in.readAll().toStdString(), kMaxFileBytes, kMaxSavedDepth);
  if (!json.ok()) return;
  JsonReader reader(*json);
  const nlohmann::json* list = reader.entries("nodes", kMaxListed);
  if (list == nullptr) return;
  loading_ = true;
  for (const nlohmann::json& url : *list) {
    if (!url.is_string() || nodes_.size() >= kMaxNodes) continue;
    if (const auto address = parse_node_url(QString::fromStdString(url.get<std::string>())); address.ok())
      add(*address);
  }
  loading_ = false;
}

Node& Nodes::add(const NodeAddress& address) {
  return add(std::make_unique<Node>(address, open_stream(address), make_run_command(address)));
}

Node& Nodes::add(std::unique_ptr<Node> made) {
  Node& node = *nodes_.emplace_back(std::move(made));
  // Others are not in the list, and must not empty it before it was loaded.
  if (!loading_ && std::holds_alternative<SshNode>(node.address())) save();
  Q_EMIT added(&node);
  node.start();
  return node;
}

void Nodes::remove(Node& node) {
  const auto found = std::ranges::find(nodes_, &node, &std::unique_ptr<Node>::get);
  if (found == nodes_.end()) return;
  Q_EMIT removing(&node);
  // A view may still be in the middle of something with it.
  found->release()->deleteLater();
  nodes_.erase(found);
  save();
}

void Nodes::save() const {
  if (file_.isEmpty()) return;
  nlohmann::json urls = nlohmann::json::array();
  for (const auto& node : nodes_) {
    if (const auto* ssh = std::get_if<SshNode>(&node->address())) urls.push_back(ssh->url.toStdString());
  }
  // Should it fail: it is asked for again at the next start.
  (void)write_file_atomically(file_.toStdString(), nlohmann::json{{"nodes", urls}}.dump(1) + "\n", FileMode::kPrivate);
}

}  // namespace atl
