// The German translation: complete, with its places and keys, and short enough for the windows.
#include <QFile>
#include <QLabel>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QtTest>

#include "app/gui/add_node_dialog.h"
#include "app/gui/check_page.h"
#include "app/gui/demo_page.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/first_start.h"
#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/logs_page.h"
#include "app/gui/settings_page.h"
#include "app/gui/translation.h"
#include "tests/app/gui/gui_node.h"
#include "tests/app/gui/reach.h"

using namespace atl;
using namespace atl::test;

namespace {

struct Message {
  QString context, source;
  QStringList translations;  // one, or one a plural
  QString type;              // "unfinished", "vanished", ...; empty: translated
  bool plural = false;
};

QList<Message> read_messages(const QString& name) {
  QFile file(name);
  QList<Message> messages;
  if (!file.open(QIODevice::ReadOnly)) return messages;
  QXmlStreamReader xml(&file);
  QString context;
  while (!xml.atEnd()) {
    if (xml.readNext() != QXmlStreamReader::StartElement) continue;
    const QStringView element = xml.name();
    if (element == u"name") context = xml.readElementText();
    if (element == u"message") {
      messages.append(Message{.context = context, .source = {}, .translations = {}, .type = {}});
      messages.back().plural = xml.attributes().value("numerus") == u"yes";
    }
    if (element == u"source") messages.back().source = xml.readElementText();
    if (element == u"translation") {
      messages.back().type = xml.attributes().value("type").toString();
      if (!messages.back().plural) messages.back().translations << xml.readElementText();
    }
    if (element == u"numerusform") messages.back().translations << xml.readElementText();
  }
  return messages;
}

QStringList places(const QString& text) {
  static const QRegularExpression kPlace("%(n|L?[0-9]+)");
  QStringList found;
  for (auto match = kPlace.globalMatch(text); match.hasNext();) found << match.next().captured();
  found.removeDuplicates();
  found.sort();
  return found;
}

QString german() { return ATOLL_SOURCE_DIR "/resources/translations/atoll_de.ts"; }
QString english() { return ATOLL_SOURCE_DIR "/resources/translations/atoll_en.ts"; }

}  // namespace

class TranslationTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany));
    if (!install_translation(*qApp, QLocale())) QSKIP("translations are left out of this build (no lrelease)");
  }

  void every_text_is_translated();
  void no_text_of_the_program_is_missing_data();
  void no_text_of_the_program_is_missing();
  void a_translation_has_the_places_of_its_source();
  void what_the_keyboard_finds_it_finds_in_german_too();
  void the_program_speaks_german();
  void german_texts_fit_data();
  void german_texts_fit();
};

void TranslationTest::every_text_is_translated() {
  const QList<Message> messages = read_messages(german());
  QVERIFY(messages.size() > 500);

  for (const Message& message : messages) {
    const QString which = message.context + ": " + message.source;
    // Such a name is read out of the source, but never asked for when the program runs.
    const QStringList parts = message.context.split("::");
    QVERIFY2(parts.size() < 2 || parts.back() != parts[parts.size() - 2], qPrintable(which));
    QVERIFY2(message.type.isEmpty(), qPrintable(which + " is " + message.type));
    QCOMPARE(message.translations.size(), message.plural ? 2 : 1);
    for (const QString& text : message.translations) QVERIFY2(!text.trimmed().isEmpty(), qPrintable(which));
  }
}

void TranslationTest::no_text_of_the_program_is_missing_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<bool>("plurals");
  QTest::newRow("German") << german() << false;
  QTest::newRow("English plurals") << english() << true;
}

void TranslationTest::no_text_of_the_program_is_missing() {
  QFETCH(QString, file);
  QFETCH(bool, plurals);
  if (QString(ATOLL_LUPDATE).isEmpty()) QSKIP("lupdate is not installed (Debian: apt-get install qt6-l10n-tools)");
  QTemporaryDir directory;
  const QString fresh = directory.filePath("fresh.ts");
  QVERIFY(QFile::copy(file, fresh));

  QProcess lupdate;
  lupdate.setWorkingDirectory(ATOLL_SOURCE_DIR);
  QStringList arguments{"-silent", "-I", ".", "-locations", "none", "app/core", "app/gui", "-ts", fresh};
  if (plurals) arguments.prepend("-pluralonly");
  lupdate.start(ATOLL_LUPDATE, arguments);
  QVERIFY(lupdate.waitForFinished(60'000));

  QCOMPARE(lupdate.exitCode(), 0);
  for (const Message& message : read_messages(fresh)) {
    QVERIFY2(message.type.isEmpty(),
             qPrintable(message.context + ": " + message.source + " is " + message.type + " in " + file));
  }
}

void TranslationTest::a_translation_has_the_places_of_its_source() {
  for (const Message& message : read_messages(german())) {
    QStringList wanted = places(message.source);
    for (const QString& text : message.translations) {
      QStringList found = places(text);
      if (message.plural && found != wanted) found = (found << "%n");  // "one" needs no number
      found.sort();
      QVERIFY2(found == wanted, qPrintable(message.context + ": " + message.source + " = " + text));
    }
  }
}

void TranslationTest::what_the_keyboard_finds_it_finds_in_german_too() {
  static const QRegularExpression kKey("&[^ &]");
  for (const Message& message : read_messages(german())) {
    for (const QString& text : message.translations) {
      QVERIFY2(message.source.contains(kKey) == text.contains(kKey),
               qPrintable(message.context + ": " + message.source + " = " + text));
    }
  }
}

void TranslationTest::the_program_speaks_german() {
  GuiNode world;
  const CheckPage page(world.node);

  const auto labels = page.findChildren<QLabel*>();

  QVERIFY(std::ranges::any_of(labels, [](const QLabel* l) { return l->text() == "Prüfung des Rechners"; }));
}

void TranslationTest::german_texts_fit_data() {
  QTest::addColumn<QString>("name");
  for (const char* name : {"first start", "check", "logs", "settings", "demo", "diagnostics", "add", "wizard"}) {
    QTest::newRow(name) << QString(name);
  }
}

void TranslationTest::german_texts_fit() {
  QFETCH(QString, name);
  GuiNode world;
  std::unique_ptr<QWidget> widget;
  if (name == "first start") widget = std::make_unique<FirstStart>(world.node);
  if (name == "check") widget = std::make_unique<CheckPage>(world.node);
  if (name == "logs") widget = std::make_unique<LogsPage>(world.node);
  if (name == "settings") widget = std::make_unique<SettingsPage>(world.node);
  if (name == "demo") widget = std::make_unique<DemoPage>(world.node);
  if (name == "diagnostics") widget = std::make_unique<DiagnosticsDialog>(world.node);
  if (name == "add") widget = std::make_unique<AddNodeDialog>();
  if (name == "wizard") widget = std::make_unique<JoinWizard>(world.node);
  if (widget->inherits("QDialog") == false) widget->resize(900, 650);
  widget->show();
  QVERIFY(QTest::qWaitForWindowExposed(widget.get()));
  tell_check(world.agent, {check_row("disk.free", "fail", "212 GB", "anderes Verzeichnis")});
  QTest::qWait(100);

  QCOMPARE(cut_texts(*widget), QStringList());
  QCOMPARE(shared_mnemonics(*widget).join("; "), QString());
}

QTEST_MAIN(TranslationTest)
#include "translation_test.moc"
