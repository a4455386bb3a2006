// The machines that the app looks at, this one first; which they are is kept in the app's own settings. Owned by
// main(); GUI thread.
#pragma once

#include <memory>
#include <vector>

#include <QObject>

#include "app/core/node.h"

namespace atl {

class Nodes : public QObject {
  Q_OBJECT

 public:
  // `file`: where the list is kept; empty: nowhere.
  explicit Nodes(QString file, QObject* parent = nullptr) : QObject(parent), file_(std::move(file)) {}

  void load();
  Node& add(const NodeAddress& address);
  Node& add(std::unique_ptr<Node> node);  // one that speaks in another way, as in tests
  void remove(Node& node);                // forgets it; the machine goes on
  const std::vector<std::unique_ptr<Node>>& all() const { return nodes_; }

 Q_SIGNALS:
  void added(atl::Node* node);
  void removing(atl::Node* node);

 private:
  void save() const;
  const QString file_;
  std::vector<std::unique_ptr<Node>> nodes_;
  bool loading_ = false;
};

}  // namespace atl
