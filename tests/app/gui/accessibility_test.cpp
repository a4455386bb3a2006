// What can be operated has a name, and the keyboard reaches it: on every page.
#include <QAbstractButton>
#include <QAbstractSlider>
#include <QtTest>

#include "app/gui/translation.h"
#include "tests/app/gui/gui_scene.h"
#include "tests/app/gui/reach.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

class AccessibilityTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void every_control_has_a_name_and_is_reached_by_tab_data() {
    QTest::addColumn<int>("page");
    for (const PageSpec& spec : page_list()) QTest::newRow(spec.name) << static_cast<int>(spec.id);
  }
  void every_control_has_a_name_and_is_reached_by_tab() {
    QFETCH(int, page);
    GuiScene scene;
    scene.open();
    QVERIFY(QTest::qWaitForWindowActive(scene.window.get()));
    QTRY_COMPARE(scene.text("state"), QString("Training"));
    scene.story.begin_sync();
    scene.window->showPage(static_cast<PageId>(page));
    QTest::qWait(300);

    QCOMPARE(unnamed_controls(*scene.window), QStringList());
    QCOMPARE(unreached_controls(*scene.window), QStringList());
    QCOMPARE(shared_mnemonics(*scene.window).join("; "), QString());
    for (const QWidget* widget : scene.window->findChildren<QWidget*>()) {
      const bool operable =
          qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QAbstractSlider*>(widget);
      const bool part = widget->inherits("QScrollBar") || widget->inherits("QTableCornerButton") ||
                        widget->inherits("QLineEditIconButton");  // its line can be cleared by keys
      const bool deaf = widget->focusPolicy() == Qt::NoFocus && widget->isVisible() && !part;
      QVERIFY2(!operable || !deaf, qPrintable(widget->objectName() + widget->metaObject()->className()));
    }
  }

  void texts_fit_into_their_places_data() { every_control_has_a_name_and_is_reached_by_tab_data(); }
  void texts_fit_into_their_places() {
    QFETCH(int, page);
    GuiScene scene;
    scene.open();
    QTRY_COMPARE(scene.text("state"), QString("Training"));
    scene.window->showPage(static_cast<PageId>(page));
    QTest::qWait(300);

    QCOMPARE(cut_texts(*scene.window), QStringList());
  }

  void text_from_elsewhere_is_never_markup() {
    GuiScene scene;
    scene.agent.say({{"run_name", "<h1>x</h1>"}, {"error", "<b>y</b>"}});
    scene.open();
    QTRY_COMPARE(scene.text("state"), QString("Training"));
    for (const PageSpec& spec : page_list()) scene.window->showPage(spec.id);
    QTest::qWait(300);

    for (const QLabel* label : scene.window->findChildren<QLabel*>()) {
      const bool markup = label->textFormat() == Qt::RichText ||
                          (label->textFormat() == Qt::AutoText && Qt::mightBeRichText(label->text()));
      QVERIFY2(!markup, qPrintable(label->objectName() + ": " + label->text()));
    }
  }

  // The last: it goes on in German.
  void german_keys_choose_one_thing_each_data() { every_control_has_a_name_and_is_reached_by_tab_data(); }
  void german_keys_choose_one_thing_each() {
    QFETCH(int, page);
    const QLocale german(QLocale::German, QLocale::Germany);
    if (!install_translation(*qApp, german)) QSKIP("translations are left out of this build (no lrelease)");
    GuiScene scene;
    scene.open();
    scene.window->showPage(static_cast<PageId>(page));
    QTest::qWait(300);

    QCOMPARE(shared_mnemonics(*scene.window).join("; "), QString());
  }
};

QTEST_MAIN(AccessibilityTest)
#include "accessibility_test.moc"
