// Colours that can be read, numbers that can be understood.
#include <QFontDatabase>
#include <QtTest>

#include "app/gui/look/colours.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/theme.h"

using namespace atl;

class LookTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void texts_can_be_read_on_their_grounds_data() { themes(); }
  void texts_can_be_read_on_their_grounds() {
    QFETCH(bool, dark);
    const Colours& c = dark ? dark_colours() : light_colours();

    for (const QColor& ground : {c.window, c.side, c.surface, c.raised, c.selection}) {
      QVERIFY2(contrast(c.text, ground) >= 7, qPrintable(ground.name()));
    }
    for (const QColor& ground : {c.window, c.side, c.surface}) {
      for (const QColor& text : {c.muted, c.faint, c.accent, c.good, c.warning, c.bad}) {
        QVERIFY2(contrast(text, ground) >= 4.5, qPrintable(text.name() + " on " + ground.name()));
      }
    }
    QVERIFY(contrast(c.on_accent, c.accent) >= 4.5);
    for (const Tone tone : {Tone::kNeutral, Tone::kAccent, Tone::kGood, Tone::kWarning, Tone::kBad}) {
      QVERIFY2(contrast(c.text, c.ground_of(tone)) >= 7, qPrintable(c.ground_of(tone).name()));
    }
  }

  void lines_and_outlines_can_be_seen_data() { themes(); }
  void lines_and_outlines_can_be_seen() {
    QFETCH(bool, dark);
    const Colours& c = dark ? dark_colours() : light_colours();

    for (const QColor& line : c.series) QVERIFY2(contrast(line, c.surface) >= 3, qPrintable(line.name()));
    QVERIFY(contrast(c.outline, c.surface) >= 3);
    QVERIFY(contrast(c.accent, c.selection) >= 3);
  }

  void a_palette_tells_which_colours_it_was_made_of() {
    QCOMPARE(&colours_of(palette_of(light_colours())), &light_colours());
    QCOMPARE(&colours_of(palette_of(dark_colours())), &dark_colours());
  }

  void the_persons_choice_of_a_theme_counts_and_is_kept() {
    QTemporaryDir directory;
    const QString file = directory.filePath("gui.ini");
    {
      Theme theme(*qApp, file);
      QSignalSpy changed(&theme, &Theme::changed);
      theme.setChoice(Theme::Choice::kDark);
      QVERIFY(theme.dark());
      QCOMPARE(&colours_of(QApplication::palette()), &dark_colours());
      theme.setChoice(Theme::Choice::kLight);
      QCOMPARE(&colours_of(QApplication::palette()), &light_colours());
      QVERIFY(changed.count() >= 1);
      theme.setChoice(Theme::Choice::kDark);
    }
    const Theme again(*qApp, file);
    QCOMPARE(again.choice(), Theme::Choice::kDark);
    QVERIFY(again.dark());
  }

  void texts_are_set_in_inter_where_it_is_installed_in_the_desktops_size() {
    const QFont desktop = QFontDatabase::systemFont(QFontDatabase::GeneralFont);

    Theme::apply(*qApp, /*dark=*/false);

    const QString family = QFontDatabase::hasFamily("Inter") ? QString("Inter") : desktop.family();
    QCOMPARE(QApplication::font().family(), family);
    QCOMPARE(QApplication::font().pointSizeF(), desktop.pointSizeF());
    QVERIFY(QApplication::font().families().contains(desktop.family()));
  }

  void icons_are_drawn_in_their_colour_and_sharp() {
    const QImage drawn = icon_pixmap("warning", QColor(10, 200, 30), 16, 2).toImage();

    QCOMPARE(drawn.size(), QSize(32, 32));
    int opaque = 0;
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        if (drawn.pixelColor(x, y).alpha() < 250) continue;
        ++opaque;
        QVERIFY(drawn.pixelColor(x, y).green() > 150);
      }
    }
    QVERIFY2(opaque > 30, qPrintable(QString::number(opaque)));
    QVERIFY(!icon("no-such-icon").pixmap(16).isNull());
  }

  void figures_have_three_digits_and_a_prefix_data() {
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("text");
    QTest::newRow("zero") << 0.0 << "0";
    QTest::newRow("small") << 0.0421 << "0.042";
    QTest::newRow("tiny") << 2.4e-4 << "2.40e-4";
    QTest::newRow("loss") << 2.914 << "2.91";
    QTest::newRow("whole") << 42.0 << "42";
    QTest::newRow("thousands") << 318'150.0 << "318k";
    QTest::newRow("not zeros") << 1'200'000.0 << "1.2M";
    QTest::newRow("billions") << 13.6e9 << "13.6B";
    QTest::newRow("trillions, however many") << 1.3e15 << "1300T";
    QTest::newRow("rounded up") << 999'990.0 << "1M";
    QTest::newRow("negative") << -1234.0 << "-1.23k";
  }
  void figures_have_three_digits_and_a_prefix() {
    QFETCH(double, value);
    QFETCH(QString, text);
    QCOMPARE(text::compact(value), text);
  }

  void neighbouring_ticks_never_read_the_same() {
    QCOMPARE(text::compact(1'234'500, 500), QString("1.2345M"));
    QCOMPARE(text::compact(1'235'000, 500), QString("1.2350M"));
    QCOMPARE(text::compact(0.25, 0.25), QString("0.25"));
    QCOMPARE(text::compact(0.5, 0.25), QString("0.50"));
    QCOMPARE(text::compact(2000, 500), QString("2.0k"));
    QCOMPARE(text::compact(2.5e-4, 5e-5), QString("2.5e-4"));
    QCOMPARE(text::compact(0, 5e-5), QString("0"));
  }

  void sizes_rates_and_times_have_their_units() {
    QCOMPARE(text::bytes(1.9e9), QString("1.9 GB"));
    QCOMPARE(text::bytes(512), QString("512 B"));
    QCOMPARE(text::scaled(302e12), QString("302 T"));
    QCOMPARE(text::scaled(3.847e15), QString("3.85 P"));
    QCOMPARE(text::link_rate(10.5e6), QString("84 Mbit/s"));
    QCOMPARE(text::duration(0), QString("0 ms"));
    QCOMPARE(text::duration(0.00016), QString("160 \u00B5s"));
    QCOMPARE(text::duration(0.0009996), QString("1.0 ms"));
    QCOMPARE(text::duration(0.0084), QString("8.4 ms"));
    QCOMPARE(text::duration(0.00999), QString("10 ms"));
    QCOMPARE(text::duration(0.04), QString("40 ms"));
    QCOMPARE(text::duration(38), QString("38 s"));
    QCOMPARE(text::duration(250), QString("4 min 10 s"));
    QCOMPARE(text::duration(7500), QString("2 h 05 min"));
    QCOMPARE(text::duration(273'600), QString("3 d 4 h"));
    QCOMPARE(text::duration(std::nan("")), QString("unknown"));
    QCOMPARE(text::percent(0.384), QString("38 %"));
    QCOMPARE(text::hertz(1.98e9), QString("1.98 GHz"));
    QCOMPARE(text::ago(0.4), QString("now"));
    QCOMPARE(text::ago(12.9), QString("12 s ago"));
    QCOMPARE(text::ago(4000), QString("1 h ago"));
    QCOMPARE(text::or_dash(std::nullopt, text::watts), QString("\u2013"));
  }

  void a_tool_tip_is_never_markup_of_others() {
    QCOMPARE(text::tool_tip("<b>x</b>"), QString("<qt>&lt;b&gt;x&lt;/b&gt;</qt>"));
    QCOMPARE(text::tool_tip({}), QString());
  }

 private:
  static void themes() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
};

QTEST_MAIN(LookTest)
#include "look_test.moc"
