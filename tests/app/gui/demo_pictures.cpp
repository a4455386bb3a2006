// atoll-gui-demo-pictures OUTDIR [MINUTES [ISLANDS]]: runs the demo on this machine, in the app's own page, and takes
// pictures of it: nothing in them is composed. Takes as long as the demo does.
#include <QApplication>
#include <QPushButton>
#include <QSpinBox>
#include <QtTest>
#include <vector>

#include "app/core/node.h"
#include "app/core/streams.h"
#include "app/gui/demo_page.h"
#include "app/gui/look/theme.h"

using namespace atl;

namespace {

constexpr int kPeriod = 5'000;         // ms, between two looks at the page
constexpr double kShown = 0.8;         // of all looks: the one that is kept, well into the training
constexpr int kBesides = 30 * 60'000;  // ms, at most: preparing its text, ending, exporting

void save(const QPixmap& picture, const QString& file) {
  const QImage plain = picture.toImage().convertToFormat(QImage::Format_RGB888);
  if (!plain.save(file, "PNG", /*quality, here of the compression: */ 0))
    qFatal("%s cannot be written", qPrintable(file));
  std::printf("%s\n", qPrintable(file));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s OUTDIR [MINUTES [ISLANDS]]\n", argv[0]);
    return 2;
  }
  const QString directory = QString::fromLocal8Bit(argv[1]);
  const int minutes = argc > 2 ? QByteArray(argv[2]).toInt() : 5;
  const int islands = argc > 3 ? QByteArray(argv[3]).toInt() : 3;
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  if (qEnvironmentVariableIsEmpty("QT_SCALE_FACTOR")) qputenv("QT_SCALE_FACTOR", "2");
  const QTemporaryDir state;
  qputenv("XDG_STATE_HOME", state.path().toLocal8Bit());
  QApplication app(argc, argv);
  QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
  Theme::apply(app, true);

  const NodeAddress here = LocalNode{agent_home_in(state.path().toStdString())};
  Node node(here, open_stream(here), make_run_command(here, ATOLL_BIN_DIR "/atoll"));
  DemoPage page(node);
  page.resize(1060, 740);
  page.show();
  const auto boxes = page.findChildren<QSpinBox*>();
  if (boxes.size() != 2) qFatal("islands and minutes are set otherwise now");
  boxes[0]->setValue(islands);
  boxes[1]->setValue(minutes);
  page.findChild<QPushButton*>("start_demo")->click();
  std::vector<QPixmap> looks;
  for (int waited = 0; page.running(); waited += kPeriod) {
    if (waited > minutes * 60'000 + kBesides) qFatal("the demo does not end");
    QTest::qWait(kPeriod);
    if (page.running()) looks.push_back(page.grab());
  }
  if (page.findChild<QPushButton*>("start_demo")->isVisible()) qFatal("the demo failed");
  if (looks.empty()) qFatal("the demo was over before it was looked at");
  save(looks[static_cast<std::size_t>(kShown * static_cast<double>(looks.size()))],
       directory + "/demo-training-dark.png");
  QTest::qWait(500);
  save(page.grab(), directory + "/demo-outcome-dark.png");
  return 0;
}
