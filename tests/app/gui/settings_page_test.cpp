// The page Settings, over an agent in memory: what is edited how, applied, refused, taken back.
#include "app/gui/settings_page.h"

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QtTest>

#include "app/gui/parts/notice.h"
#include "app/gui/setting_editor.h"
#include "app/gui/setting_field.h"
#include "tests/app/gui/page_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

nlohmann::json setting(const char* key, const char* value, const char* otherwise, const char* origin = "default") {
  return {{"key", key}, {"value", value}, {"default", otherwise}, {"origin", origin}, {"meaning", "as the agent says"}};
}

}  // namespace

class SettingsPageTest : public QObject, private PageFixture {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { begin(); }
  void init() { renew(); }
  void cleanup() { end(); }

  void a_value_is_edited_after_its_kind_data();
  void a_value_is_edited_after_its_kind();
  void changes_are_applied_together();
  void a_wrong_value_is_told_beside_its_field();
  void a_setting_can_be_taken_back();
  void an_overruled_setting_is_said_so();
  void a_limit_by_hours_says_what_holds_now();
  void what_is_edited_survives_news();

 private:
  void configure(const std::vector<nlohmann::json>& values) {
    world_->agent.answer(
        "config.get", nlohmann::json{{"values", values}, {"file", "/c/config.toml"}, {"settings", "/s/settings.json"}});
    world_->node.settings().reload();
    QTRY_COMPARE(world_->node.settings().rows().size(), values.size());
  }
};

void SettingsPageTest::a_value_is_edited_after_its_kind_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<QString>("value");
  QTest::newRow("text") << "island.name"
                        << "under the desk";
  QTest::newRow("number") << "limits.gpu_power"
                          << "350";
  QTest::newRow("no rate") << "limits.upload"
                           << "none";
  QTest::newRow("rate") << "limits.upload"
                        << "2.5 MB/s";
  QTest::newRow("rate in bits") << "limits.upload"
                                << "20 Mbit/s";
  QTest::newRow("size") << "history.max_size"
                        << "256 MB";
  QTest::newRow("time") << "agent.stop_within"
                        << "90s";
  QTest::newRow("always") << "schedule.hours"
                          << "";
  QTest::newRow("daily") << "schedule.hours"
                         << "22:00-06:00";
  QTest::newRow("several times") << "schedule.hours"
                                 << "22:00-06:00, 12:00-13:00";
  QTest::newRow("word") << "log.level"
                        << "debug";
  QTest::newRow("unknown word") << "log.level"
                                << "trace";
  QTest::newRow("address") << "island.listen"
                           << "0.0.0.0:47001";
  QTest::newRow("of a newer agent") << "future.key"
                                    << "anything";
}

void SettingsPageTest::a_value_is_edited_after_its_kind() {
  QFETCH(QString, key);
  QFETCH(QString, value);
  const auto known =
      std::ranges::find(config_keys(), key.toStdString(), [](const ConfigKey& k) { return std::string(k.name); });
  const std::unique_ptr<SettingEditor> editor(make_setting_editor(known == config_keys().end() ? nullptr : &*known));
  QSignalSpy edited(editor.get(), &SettingEditor::edited);

  editor->setValue(value);

  QCOMPARE(editor->value(), value);
  QCOMPARE(edited.size(), 0);
}

void SettingsPageTest::changes_are_applied_together() {
  configure({setting("limits.gpu_power", "0", "0"), setting("log.level", "info", "info")});
  show<SettingsPage>();
  QVERIFY(!find<QPushButton>("apply")->isEnabled());
  QTest::keyClicks(find<SettingField>("limits.gpu_power")->control(), "3");
  auto* level = qobject_cast<QComboBox*>(find<SettingField>("log.level")->control());
  level->setFocus();
  QTest::keyClick(level, Qt::Key_End);

  find<QPushButton>("apply")->click();

  QTRY_COMPARE(agent().count("config.set"), std::size_t{2});
  QTRY_VERIFY(!find<SettingField>("limits.gpu_power")->isChanged());
  QVERIFY(!find<QPushButton>("apply")->isEnabled());
  QCOMPARE(find<SettingField>("log.level")->value(), QString("debug"));
}

void SettingsPageTest::a_wrong_value_is_told_beside_its_field() {
  configure({setting("island.listen", "0.0.0.0:0", "0.0.0.0:0")});
  agent().fail("config.set", ErrorCode::kInvalidArgument, "island.listen = 'x': must be HOST:PORT");
  show<SettingsPage>();
  auto* field = find<SettingField>("island.listen");
  QTest::keyClicks(field->control(), "x");

  find<QPushButton>("apply")->click();

  QTRY_COMPARE(field->problem(), QString("island.listen = 'x': must be HOST:PORT"));
  QVERIFY(field->isChanged());
  QCOMPARE(find<Notice>("settings_notice")->kind(), Notice::Kind::kError);
  find<QPushButton>("discard")->click();
  QCOMPARE(field->value(), QString("0.0.0.0:0"));
  QCOMPARE(field->problem(), QString());
}

void SettingsPageTest::a_setting_can_be_taken_back() {
  configure({setting("log.level", "debug", "info", "settings")});
  show<SettingsPage>();

  find<SettingField>("log.level")->findChild<QToolButton*>()->click();

  QTRY_COMPARE(agent().count("config.set"), std::size_t{1});
  QVERIFY(agent().last_params("config.set")["value"].is_null());
}

void SettingsPageTest::an_overruled_setting_is_said_so() {
  configure({setting("limits.upload", "20 Mbit/s", "none", "ATOLL_LIMITS_UPLOAD")});

  show<SettingsPage>();

  const auto texts = find<SettingField>("limits.upload")->findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(texts, [](const QLabel* l) { return l->text().contains("ATOLL_LIMITS_UPLOAD"); }));
  QVERIFY(!find<SettingField>("limits.upload")->control()->isEnabled());
}

void SettingsPageTest::a_limit_by_hours_says_what_holds_now() {
  configure({setting("limits.upload", "none", "none"), setting("limits.download", "none", "none")});
  const qint64 until = QDateTime(QDate(2026, 5, 10), QTime(18, 0)).toSecsSinceEpoch();
  nlohmann::json agent_part = agent().state().value("agent", nlohmann::json::object());
  agent_part["upload_cap"] = {{"bytes_per_second", 2.5e6}, {"until_unix_seconds", until}};
  agent_part["download_cap"] = {{"bytes_per_second", nullptr}, {"until_unix_seconds", nullptr}};

  agent().say({{"agent", agent_part}});
  agent().tell_state("state.changed");
  show<SettingsPage>();

  const auto now = [&](const char* key) { return find<SettingField>(key)->findChild<QLabel*>("now"); };
  QTRY_COMPARE(now("limits.upload")->text(), QString("Now: 20 Mbit/s, until 18:00"));
  QVERIFY(now("limits.upload")->isVisible());
  QVERIFY(!now("limits.download")->isVisible());  // the field says it
}

void SettingsPageTest::what_is_edited_survives_news() {
  configure({setting("island.name", "a", "")});
  show<SettingsPage>();
  auto* field = find<SettingField>("island.name");
  QTest::keyClicks(field->control(), "bc");

  configure({setting("island.name", "other", "")});

  QTRY_COMPARE(world_->node.settings().find("island.name")->value, std::string("other"));
  QCOMPARE(field->value(), QString("abc"));
}

QTEST_MAIN(SettingsPageTest)
#include "settings_page_test.moc"
