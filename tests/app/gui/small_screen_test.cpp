// Windows on a small screen, 640x400, which is 1280x800 at a scale of two: no larger than it, and all of them in reach.
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QTemporaryDir>
#include <QTranslator>
#include <QtTest>

#include "app/core/hub_model.h"
#include "app/gui/demo_page.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/organise/organise_window.h"
#include "app/gui/organise/qr_code.h"
#include "app/gui/parts/elided_label.h"
#include "app/gui/parts/roomy_scroll.h"
#include "app/gui/parts/screen_fit.h"
#include "app/gui/parts/stat_tile.h"
#include "app/gui/parts/tile_row.h"
#include "app/gui/translation.h"
#include "app/gui/wish_dialog.h"
#include "tests/app/gui/gui_scene.h"
#include "tests/app/gui/reach.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr QSize kScreen{640, 400}, kLaptop{900, 600};

// Beneath $ATOLL_SHOTS, where somebody wants to look at them.
void keep_picture(QWidget& window, const QString& name) {
  const QString directory = qEnvironmentVariable("ATOLL_SHOTS");
  if (!directory.isEmpty()) window.grab().save(QDir(directory).filePath(name + ".png"));
}

QStringList cut_tiles(const QWidget& window) {
  QStringList found;
  for (const auto* tile : window.findChildren<StatTile*>()) {
    if (tile->isVisible() && tile->width() < tile->minimumSizeHint().width()) found << tile->accessibleName();
  }
  return found;
}

// While it lives the program speaks German, where this build has its texts.
struct German {
  German() : spoken(install_translation(*qApp, QLocale(QLocale::German, QLocale::Germany))) {}
  ~German() {
    for (const auto* one : qApp->findChildren<QTranslator*>()) delete one;
  }
  German(const German&) = delete;
  German& operator=(const German&) = delete;

  const bool spoken;
};

}  // namespace

class SmallScreenTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale::c());
    QCOMPARE(QGuiApplication::primaryScreen()->size(), kScreen);
  }

  void a_frame_is_brought_back_onto_its_screen_data() {
    QTest::addColumn<QRect>("frame");
    QTest::addColumn<QRect>("wanted");
    QTest::newRow("it fits") << QRect(100, 80, 900, 600) << QRect(100, 80, 900, 600);
    QTest::newRow("as large as the screen, with a frame") << QRect(0, 0, 1282, 830) << QRect(0, 30, 1280, 770);
    QTest::newRow("beyond the right and lower edge") << QRect(1000, 700, 500, 400) << QRect(780, 400, 500, 400);
    QTest::newRow("of a screen that is gone") << QRect(-1920, -300, 800, 600) << QRect(0, 30, 800, 600);
  }
  void a_frame_is_brought_back_onto_its_screen() {
    QFETCH(QRect, frame);
    QFETCH(QRect, wanted);

    QCOMPARE(frame_within(QRect(0, 30, 1280, 770), frame), wanted);
  }

  void the_window_is_no_larger_than_its_screen() {
    GuiScene scene;
    scene.open();
    const QRect room = QGuiApplication::primaryScreen()->availableGeometry();
    QTRY_VERIFY(room.contains(scene.window->frameGeometry()));

    scene.window->hide();
    scene.window->setGeometry(400, 300, 1280, 800);  // of a larger screen
    scene.window->show();

    QTRY_VERIFY(room.contains(scene.window->frameGeometry()));
  }

  void every_page_can_be_reached_and_read_data() {
    QTest::addColumn<int>("page");
    QTest::addColumn<QSize>("size");
    for (const PageSpec& spec : page_list()) {
      for (const QSize size : {kScreen, kLaptop}) {
        QTest::addRow("%s %d", spec.name, size.width()) << static_cast<int>(spec.id) << size;
      }
    }
  }
  void every_page_can_be_reached_and_read() {
    QFETCH(int, page);
    QFETCH(QSize, size);
    GuiScene scene;
    scene.open();
    QTRY_COMPARE(scene.text("state"), QString("Training"));
    scene.story.begin_sync();

    scene.window->resize(size);
    scene.window->showPage(static_cast<PageId>(page));
    QTest::qWait(300);
    keep_picture(*scene.window, QTest::currentDataTag());

    QCOMPARE(scene.window->size(), size);
    QCOMPARE(controls_out_of_reach(*scene.window).join("; "), QString());
    QCOMPARE(cut_texts(*scene.window).join("; "), QString());
    QCOMPARE(cut_tiles(*scene.window).join("; "), QString());
  }

  // Its words are longer: what has one line in English has two or three.
  void every_page_can_be_read_in_german_data() {
    QTest::addColumn<int>("page");
    for (const PageSpec& spec : page_list()) QTest::addRow("%s german", spec.name) << static_cast<int>(spec.id);
  }
  void every_page_can_be_read_in_german() {
    QFETCH(int, page);
    const German german;
    if (!german.spoken) QSKIP("translations are left out of this build (no lrelease)");
    GuiScene scene;
    scene.open();
    QTRY_COMPARE(scene.text("state"), QString("Trainiert"));

    scene.window->resize(kLaptop);
    scene.window->showPage(static_cast<PageId>(page));
    QTest::qWait(300);
    keep_picture(*scene.window, QTest::currentDataTag());

    QTRY_COMPARE(cut_texts(*scene.window).join("; "), QString());
    QCOMPARE(cut_tiles(*scene.window).join("; "), QString());
    QCOMPARE(controls_out_of_reach(*scene.window).join("; "), QString());
  }

  void tiles_that_have_no_room_beside_one_another_stand_beneath() {
    std::vector<StatTile*> tiles;
    for (int i = 0; i < 4; ++i) {
      tiles.push_back(new StatTile("Utilisation"));
      tiles.back()->setFigure("93 %", "computing", "the rest is synchronisation");
    }
    QWidget window;
    TileRow row(tiles, &window);
    window.show();

    row.setGeometry(0, 0, 1400, 80);
    QTRY_COMPARE(row.columns(), 4);
    row.setGeometry(0, 0, 600, 160);
    QTRY_COMPARE(row.columns(), 2);
    QTRY_COMPARE(cut_tiles(window).join("; "), QString());
    row.setGeometry(0, 0, 250, 340);
    QTRY_COMPARE(row.columns(), 1);
    row.setGeometry(0, 0, 1400, 80);
    QTRY_COMPARE(row.columns(), 4);
  }

  void what_stands_in_a_pages_place_can_be_reached_and_read_data() {
    QTest::addColumn<QSize>("size");
    QTest::newRow("640") << kScreen;
    QTest::newRow("900") << kLaptop;
  }
  void what_stands_in_a_pages_place_can_be_reached_and_read() {
    QFETCH(QSize, size);
    for (const bool joined : {false, true}) {
      GuiScene scene;
      scene.agent.refuse({ErrorCode::kNotRunning, "no agent answers"});
      scene.open(joined);
      QTRY_COMPARE(scene.text("state"), QString("No agent"));
      scene.window->resize(size);
      for (const PageId page : {PageId::kOverview, PageId::kCheck, PageId::kSettings}) {
        scene.window->showPage(page);
        QTest::qWait(150);
        keep_picture(*scene.window, QString("no-agent-%1-%2-%3").arg(joined).arg(int(page)).arg(size.width()));
        QCOMPARE(controls_out_of_reach(*scene.window).join("; "), QString());
        QCOMPARE(cut_texts(*scene.window).join("; "), QString());
      }
      scene.window->demo();
      QTest::qWait(150);
      keep_picture(*scene.window, QString("demo-%1").arg(size.width()));
      QCOMPARE(controls_out_of_reach(*scene.window).join("; "), QString());
      QCOMPARE(cut_texts(*scene.window).join("; "), QString());
    }
  }

  void a_pauses_dialog_shows_all_it_says() {
    GuiScene scene;
    scene.open();
    QTRY_COMPARE(scene.text("state"), QString("Training"));
    scene.agent.answer("pause", [](const nlohmann::json&) -> Result<nlohmann::json> {
      return Error{ErrorCode::kIo,
                   "the wish could not be written to the disk, which is full; free some space there, then try again"};
    });
    scene.click("pause");
    QTRY_VERIFY(scene.dialog<WishDialog>() != nullptr);
    auto* dialog = scene.dialog<WishDialog>();
    QTRY_COMPARE(cut_texts(*dialog), QStringList());

    dialog->findChild<QPushButton*>("do_it")->click();

    QTRY_VERIFY(dialog->findChild<QLabel*>("sentence")->isVisible());
    QTRY_COMPARE(cut_texts(*dialog), QStringList());
    keep_picture(*dialog, "pause");
    QCOMPARE(controls_out_of_reach(*dialog).join("; "), QString());
    QTRY_VERIFY(QGuiApplication::primaryScreen()->availableGeometry().contains(dialog->frameGeometry()));
    dialog->reject();
  }

  void an_invite_with_its_code_is_no_larger_than_its_screen() {
    QTemporaryDir directory;
    FakeAgent hub;
    hub.refuse({ErrorCode::kNotRunning, "no hub"});
    FakeCommands commands;
    commands.answer({"hub", "invite"}, {.out = R"({"id":"inv-7","uses":1,"file":null,"hub_addresses":["h:1"],
                         "expires_unix_seconds":1999999999,"invite":"atoll1.AAAABBBBCCCCDDDD.0123abcd"})"});
    HubModel model(HubHome{directory.path().toStdString()}, hub.open(), commands.run());
    InviteDialog dialog(model);
    dialog.show();
    dialog.findChild<QPushButton*>("make")->click();
    auto* show = dialog.findChild<QPushButton*>("show");
    QTRY_VERIFY(show->isVisible());

    show->click();

    QTRY_VERIFY(dialog.findChild<QrCode*>()->isVisible());
    const QRect room = QGuiApplication::primaryScreen()->availableGeometry();
    QTRY_VERIFY(room.contains(dialog.frameGeometry()));
    keep_picture(dialog, "invite");
    QCOMPARE(controls_out_of_reach(dialog).join("; "), QString());
    QCOMPARE(cut_texts(dialog).join("; "), QString());
  }

  void a_run_of_ones_own_can_be_made_on_it() {
    QTemporaryDir directory;
    FakeAgent hub;
    hub.refuse({ErrorCode::kNotRunning, "no hub"});
    FakeCommands commands;
    HubModel model(HubHome{directory.path().toStdString()}, hub.open(), commands.run());
    OrganiseWindow window(model);
    window.show();
    const QRect room = QGuiApplication::primaryScreen()->availableGeometry();
    QTRY_VERIFY(room.contains(window.frameGeometry()));
    QTest::qWait(100);
    keep_picture(window, "organise");

    QCOMPARE(controls_out_of_reach(window).join("; "), QString());
    QCOMPARE(cut_texts(window).join("; "), QString());
  }

  void a_line_that_is_cut_says_all_of_itself_to_who_points_at_it() {
    ElidedLabel label;
    label.resize(60, 20);
    label.setText("run a-name-that-is-much-longer-than-sixty-pixels");
    label.show();
    QVERIFY(QTest::qWaitForWindowExposed(&label));

    QTRY_VERIFY(label.toolTip().contains("much-longer"));
    label.setText("run a");
    QTRY_VERIFY(label.toolTip().isEmpty());
  }
};

int main(int argc, char** argv) {
  const QTemporaryDir directory;
  QFile file(directory.filePath("screen.json"));
  if (!file.open(QIODevice::WriteOnly)) return 1;
  file.write(R"({"screens": [{"name": "small", "x": 0, "y": 0, "width": 640, "height": 400, "logicalDpi": 96}]})");
  file.close();
  qputenv("QT_QPA_PLATFORM", "offscreen:configfile=" + QFile::encodeName(file.fileName()));
  QApplication app(argc, argv);
  SmallScreenTest test;
  return QTest::qExec(&test, argc, argv);
}

#include "small_screen_test.moc"
