// What the programs that draw pictures share: their arguments, where pictures go, and worlds to draw.
#pragma once

#include <memory>
#include <vector>

#include <QLocale>
#include <QString>
#include <QWidget>

#include "tests/app/core/fake_agent.h"

class QLocalServer;

namespace atl::test {

// OUTDIR [FILTER [LANGUAGE]]. The program runs itself once more, for pictures of twice the pixels: the scale is fixed
// at a program's start. Made before the QApplication.
class Pictures {
 public:
  Pictures(int argc, char** argv);

  const QLocale& locale() const { return locale_; }
  bool doubled() const;  // this program draws those of twice the pixels
  // NAME-light.png, NAME-dark@2x.png: one that FILTER wants.
  bool wanted(const QString& name, bool dark) const;
  // With the menus, lists and tool tips that are open over it.
  void save(QWidget& window, const QString& name, bool dark) const;

 private:
  QString fileOf(const QString& name, bool dark) const;

  QString directory_, filter_;
  QLocale locale_{QLocale::English, QLocale::UnitedKingdom};
};

// The usual rows of a quick check of a node with eight GPUs; with `fails` its disk is too small.
std::vector<nlohmann::json> check_rows_of_a_node(bool fails);
// Answers that only pictures want at length: a configuration, a log, a bundle, and `rows` as the outcome of a check.
void furnish(FakeAgent& agent, std::vector<nlohmann::json> rows);

// Lets an agent in memory answer at a socket, for what opens one by itself.
class SocketBridge {
 public:
  SocketBridge(const FakeAgent& agent, const QString& socket);
  ~SocketBridge();

 private:
  std::unique_ptr<QLocalServer> server_;
};

}  // namespace atl::test
