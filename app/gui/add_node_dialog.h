// Which other machine to look at: ssh://user@node. It can be tried before it is added. GUI thread.
#pragma once

#include <memory>

#include <QDialog>

#include "app/core/agent_link.h"
#include "app/core/node_address.h"

class QLineEdit;
class QPushButton;

namespace atl {

class Notice;

class AddNodeDialog : public QDialog {
  Q_OBJECT

 public:
  using OpenAddress = std::function<OpenStream(const NodeAddress&)>;

  // `open`: how it is tried; by default as `open_stream` does.
  explicit AddNodeDialog(QWidget* parent = nullptr, OpenAddress open = {});
  ~AddNodeDialog() override;

  // Of an accepted dialog.
  NodeAddress address() const;

 private:
  Result<NodeAddress> parsed() const;
  void edited();
  void tryIt();
  void tried();

  const OpenAddress open_;
  std::unique_ptr<AgentLink> trial_;
  QLineEdit* url_;
  QPushButton* try_;
  QPushButton* add_;
  Notice* notice_;
};

}  // namespace atl
