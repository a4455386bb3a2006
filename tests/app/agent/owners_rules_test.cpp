// The owner's rules as a state machine, and what is read for them, without an agent.
#include "app/agent/owners_rules.h"

#include <signal.h>
#include <unistd.h>

#include <QProcess>
#include <QScopeGuard>
#include <QtTest>

#include "app/agent/gpu_users.h"
#include "app/agent/machine_reader.h"
#include "app/config/config_keys.h"
#include "tests/app/agent/ruled_agent.h"

using namespace atl;
using test::Directory;

namespace {

constexpr int kNoon = 12 * 60;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

OwnersRulesSettings all_rules() {
  return {.load = 2,
          .gpu_bytes = 1e9,
          .idle_seconds = 900,
          .battery = true,
          .metered = true,
          .gpu_celsius = 80,
          .cpu_celsius = 90,
          .watts = 400,
          .calm_seconds = 60};
}

// All of them as one line, as a person reads them.
std::string sentences(const OwnersRules& rules, int minute_of_day = kNoon) {
  std::string text;
  for (const PausedBy& pause : rules.causes(minute_of_day)) text += (text.empty() ? "" : "; ") + sentence_of(pause);
  return text;
}
bool pause(const OwnersRules& rules) { return !rules.causes(kNoon).empty(); }

GpusReading::Others others(unsigned gpu, double bytes) {
  return {.gpu = gpu, .bytes = bytes, .who = "python, process 7"};
}

}  // namespace

class OwnersRulesTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_rule_is_named_by_a_setting();
  void what_is_not_known_pauses_nothing();
  void what_no_rule_asks_for_pauses_nothing();
  void a_pause_does_not_flap();
  void load_between_the_bounds_neither_pauses_nor_resumes();
  void a_person_is_waited_for();
  void who_waits_for_a_desktop_that_says_nothing_is_told_how_to_mend_it();
  void others_on_a_gpu_are_waited_for();
  void heat_pauses_until_it_is_well_below_the_cap();
  void power_is_that_of_processors_and_gpus_together();
  void what_training_itself_makes_pauses_longer_each_time_it_comes_back();
  void a_rule_that_is_taken_back_pauses_no_more();
  void all_that_pause_are_said_the_longest_first();
  void the_hours_are_said();
  void the_kernels_files_are_read();
  void a_battery_is_read_data();
  void a_battery_is_read();
  void the_hottest_processor_is_read();
  void what_processors_draw_is_read();
  void processes_of_other_programs_are_told_from_ours();
};

void OwnersRulesTest::each_rule_is_named_by_a_setting() {
  for (int i = 0; i < static_cast<int>(OwnersRule::kUnknown); ++i) {
    const std::string name(word_of(static_cast<OwnersRule>(i)));
    QVERIFY2(find_config_key(name).ok(), name.c_str());
  }
}

void OwnersRulesTest::what_is_not_known_pauses_nothing() {
  OwnersRules rules(all_rules());
  rules.next({}, {}, 0);
  QCOMPARE(sentences(rules), std::string());
}

void OwnersRulesTest::what_no_rule_asks_for_pauses_nothing() {
  OwnersRules none({});
  none.next(
      {.others_load = 9, .unused_seconds = 0, .on_battery = true, .metered = true, .cpu_celsius = 99, .cpu_watts = 1e6},
      {.hottest = {{0, 99}}, .others = others(0, 80e9), .watts = 700}, 0);
  QCOMPARE(sentences(none), std::string());
}

void OwnersRulesTest::a_pause_does_not_flap() {
  OwnersRules rules(all_rules());
  rules.next({.on_battery = true}, {}, 100);
  QCOMPARE(sentences(rules),
           std::string("the machine runs on its battery, until 1 min after it is plugged in (rules.battery)"));
  rules.next({.on_battery = false}, {}, 159);
  QVERIFY(pause(rules));
  rules.next({.on_battery = true}, {}, 160);  // again: the calm time begins anew
  rules.next({.on_battery = false}, {}, 219);
  QVERIFY(pause(rules));
  rules.next({.on_battery = false}, {}, 220);
  QVERIFY(!pause(rules));
}

void OwnersRulesTest::load_between_the_bounds_neither_pauses_nor_resumes() {
  OwnersRules rules(all_rules());
  rules.next({.others_load = 1.9}, {}, 0);
  QVERIFY(!pause(rules));
  rules.next({.others_load = 2.1}, {}, 10);
  QVERIFY(contains(sentences(rules), "keep 2.1 processors busy, until it has been less than 1.5 for 1 min"));
  rules.next({.others_load = 1.6}, {}, 100);
  rules.next({.others_load = 1.6}, {}, 200);
  QVERIFY(pause(rules));
  rules.next({.others_load = 1.4}, {}, 259);
  QVERIFY(pause(rules));
  rules.next({.others_load = 1.4}, {}, 260);
  QVERIFY(!pause(rules));
}

void OwnersRulesTest::a_person_is_waited_for() {
  OwnersRules rules(all_rules());
  rules.next({.unused_seconds = 0}, {}, 0);
  QVERIFY(contains(sentences(rules), "until nobody has for 15 min (rules.idle)"));
  rules.next({.unused_seconds = 899}, {}, 899);
  QVERIFY(pause(rules));
  rules.next({.unused_seconds = 900}, {}, 900);
  QVERIFY(!pause(rules));
}

void OwnersRulesTest::who_waits_for_a_desktop_that_says_nothing_is_told_how_to_mend_it() {
  OwnersRules rules(all_rules());
  const MachineReading never_said{.unused_seconds = 0, .presence_never_said = true};
  rules.next(never_said, {}, 0);
  rules.next(never_said, {}, 899);
  QVERIFY(!contains(sentences(rules), "IdleHint"));  // somebody may be there

  rules.next(never_said, {}, 900);
  QVERIFY2(contains(sentences(rules), "atoll config set rules.idle 0s"), sentences(rules).c_str());

  rules.next({.unused_seconds = 0}, {}, 901);  // it has spoken
  QVERIFY(pause(rules) && !contains(sentences(rules), "IdleHint"));
}

void OwnersRulesTest::others_on_a_gpu_are_waited_for() {
  OwnersRules rules(all_rules());
  rules.next({}, {.others = others(1, 1e9)}, 0);
  QVERIFY(!pause(rules));
  rules.next({}, {.others = others(1, 12.34e9)}, 1);
  QCOMPARE(sentences(rules), std::string("other programs hold 12.3 GB of GPU 1 (python, process 7), until it has been "
                                         "less than 750 MB for 1 min (rules.gpu)"));
  rules.next({}, {.others = others(1, 0.8e9)}, 100);
  rules.next({}, {.others = others(1, 0.7e9)}, 159);
  QVERIFY(pause(rules));
  rules.next({}, {}, 160);
  QVERIFY(!pause(rules));

  // Where the driver does not say how much, it is used.
  rules.next({}, {.others = GpusReading::Others{.gpu = 2, .bytes_known = false, .who = "game, process 8"}}, 200);
  QVERIFY2(contains(sentences(rules), "other programs use GPU 2 (game, process 8)"), sentences(rules).c_str());
}

void OwnersRulesTest::heat_pauses_until_it_is_well_below_the_cap() {
  OwnersRules rules(all_rules());
  rules.next({.cpu_celsius = 90}, {.hottest = {{1, 80}}}, 0);
  QVERIFY(!pause(rules));
  rules.next({.cpu_celsius = 91}, {.hottest = {{1, 81}}}, 1);
  QCOMPARE(sentences(rules),
           std::string("GPU 1 is at 81 C, until it has been below 75 C for 1 min (limits.gpu_temperature); the "
                       "processor is at 91 C, until it has been below 85 C for 1 min (limits.cpu_temperature)"));
  rules.next({.cpu_celsius = 84}, {.hottest = {{1, 75}}}, 2);
  rules.next({.cpu_celsius = 84}, {.hottest = {{1, 75}}}, 61);
  QVERIFY(contains(sentences(rules), "gpu_temperature") && !contains(sentences(rules), "cpu_temperature"));
  rules.next({}, {.hottest = {{1, 74}}}, 120);
  QVERIFY(pause(rules));
  rules.next({}, {.hottest = {{1, 74}}}, 121);
  QVERIFY(!pause(rules));
}

void OwnersRulesTest::power_is_that_of_processors_and_gpus_together() {
  OwnersRules rules(all_rules());
  rules.next({.cpu_watts = 90}, {.watts = 310}, 0);
  QVERIFY(!pause(rules));
  rules.next({.cpu_watts = 90}, {.watts = 311}, 1);
  QCOMPARE(sentences(rules),
           std::string("processors and GPUs draw 401 W, until it has been less than 300 W for 1 min (limits.power)"));
  rules.next({}, {.watts = 301}, 100);
  QVERIFY(contains(sentences(rules), "the GPUs draw 301 W"));
  rules.next({.cpu_watts = 299}, {}, 160);
  QVERIFY(!pause(rules));
}

void OwnersRulesTest::what_training_itself_makes_pauses_longer_each_time_it_comes_back() {
  OwnersRules rules({.watts = 400, .calm_seconds = 60});
  std::int64_t now = 0;
  const auto pause_lasts = [&] {
    rules.next({}, {.watts = 500}, now);
    const std::int64_t begin = now;
    while (pause(rules)) rules.next({}, {.watts = 50}, ++now);
    return now - begin;
  };
  for (const std::int64_t seconds : {60, 120, 240, 480, 960, 1920, 3600, 3600}) {
    QCOMPARE(pause_lasts(), seconds);
    now += 30;
  }
  now += 600;
  QCOMPARE(pause_lasts(), std::int64_t{60});  // it has trained for long enough in between
}

void OwnersRulesTest::a_rule_that_is_taken_back_pauses_no_more() {
  OwnersRules rules(all_rules());
  rules.next({.on_battery = true, .metered = true}, {}, 0);

  OwnersRulesSettings changed = all_rules();
  changed.battery = false;
  rules.set(changed);
  rules.next({.on_battery = true, .metered = true}, {}, 1);

  QVERIFY2(!contains(sentences(rules), "rules.battery") && contains(sentences(rules), "rules.metered"),
           sentences(rules).c_str());
}

void OwnersRulesTest::all_that_pause_are_said_the_longest_first() {
  OwnersRules rules(all_rules());
  rules.next({.metered = true}, {}, 0);
  rules.next({.on_battery = true, .metered = true}, {}, 10);
  const std::string both = sentences(rules);
  QVERIFY2(both.find("rules.metered") < both.find("rules.battery") && contains(both, "rules.battery"), both.c_str());
  rules.next({.on_battery = true, .metered = false}, {}, 70);
  QVERIFY(pause(rules) && !contains(sentences(rules), "rules.metered"));
}

void OwnersRulesTest::the_hours_are_said() {
  const OwnersRules rules({.hours = {{22 * 60, 6 * 60}, {13 * 60, 14 * 60}}});
  QCOMPARE(sentences(rules), std::string("it is not the hour, until 13:00 (schedule.hours)"));
  QVERIFY(contains(sentences(rules, 14 * 60), "until 22:00"));
  QCOMPARE(sentences(rules, 23 * 60), std::string());
}

void OwnersRulesTest::the_kernels_files_are_read() {
  const auto ticks = parse_processor_ticks("cpu  10 1 5 100 20 2 3 4 9 9\ncpu0 1 1\ncpu1 1 1\nintr 5\n");
  QVERIFY(ticks);
  QCOMPARE(ticks->busy, std::uint64_t{25});
  QCOMPARE(ticks->all, std::uint64_t{145});
  QCOMPARE(ticks->processors, 2);
  QVERIFY(!parse_processor_ticks("nothing"));
  const auto own = parse_process_ticks("42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0");
  QVERIFY(own);
  QCOMPARE(*own, std::uint64_t{127});
  QVERIFY(!parse_process_ticks("42 (a) S 1 2"));
}

void OwnersRulesTest::a_battery_is_read_data() {
  QTest::addColumn<QString>("scope");
  QTest::addColumn<QString>("status");
  QTest::addColumn<QString>("mains");
  QTest::addColumn<int>("expected");  // -1: there is none
  QTest::newRow("away from the mains") << "System"
                                       << "Discharging"
                                       << "0" << 1;
  QTest::newRow("plugged in") << "System"
                              << "Charging"
                              << "1" << 0;
  QTest::newRow("a mains that is too weak") << "System"
                                            << "Discharging"
                                            << "1" << 0;
  QTest::newRow("a mouse's") << "Device"
                             << "Discharging"
                             << "0" << -1;
}

void OwnersRulesTest::a_battery_is_read() {
  QFETCH(QString, scope);
  QFETCH(QString, status);
  QFETCH(QString, mains);
  QFETCH(int, expected);
  const Directory files;
  files.write("power/BAT0/type", "Battery\n");
  files.write("power/BAT0/scope", scope.toStdString() + "\n");
  files.write("power/BAT0/status", status.toStdString() + "\n");
  files.write("power/AC/type", "Mains\n");
  files.write("power/AC/online", mains.toStdString() + "\n");
  const auto battery = battery_of(files.path("power"));
  QCOMPARE(battery ? static_cast<int>(*battery) : -1, expected);
  QVERIFY(!battery_of(files.path("nowhere")));
}

void OwnersRulesTest::the_hottest_processor_is_read() {
  const Directory files;
  const auto read = [&] { return hottest_processor(files.path("hwmon"), files.path("thermal")); };
  QVERIFY(!read());
  files.write("thermal/thermal_zone0/type", "acpitz\n");
  files.write("thermal/thermal_zone0/temp", "99000\n");
  QVERIFY(!read());  // which may be anything
  files.write("thermal/thermal_zone1/type", "x86_pkg_temp\n");
  files.write("thermal/thermal_zone1/temp", "61500\n");
  QCOMPARE(read().value_or(0), 61.5);
  files.write("hwmon/hwmon0/name", "nvme\n");
  files.write("hwmon/hwmon0/temp1_input", "88000\n");
  files.write("hwmon/hwmon1/name", "coretemp\n");
  files.write("hwmon/hwmon1/temp1_input", "70000\n");
  files.write("hwmon/hwmon1/temp2_input", "72000\n");
  files.write("hwmon/hwmon1/temp2_max", "100000\n");
  QCOMPARE(read().value_or(0), 72.0);
  files.write("hwmon/hwmon2/name", "k10temp\n");
  files.write("hwmon/hwmon2/temp1_input", "95000\n");
  files.write("hwmon/hwmon2/temp1_label", "Tctl\n");
  QCOMPARE(read().value_or(0), 95.0);
  files.write("hwmon/hwmon2/temp2_input", "68000\n");
  files.write("hwmon/hwmon2/temp2_label", "Tdie\n");
  QCOMPARE(read().value_or(0), 72.0);  // of the other package: this one's Tctl is above its silicon
}

void OwnersRulesTest::what_processors_draw_is_read() {
  const Directory files;
  const auto zone = [&](const std::string& name, const std::string& is, const std::string& microjoules) {
    files.write("powercap/" + name + "/name", is + "\n");
    files.write("powercap/" + name + "/energy_uj", microjoules + "\n");
    files.write("powercap/" + name + "/max_energy_range_uj", "1000000000\n");
  };
  const auto read = [&] { return package_energies(files.path("powercap")); };
  zone("intel-rapl:0", "package-0", "1000000");
  zone("intel-rapl:0:0", "core", "900000");
  zone("intel-rapl:1", "package-1", "999000000");
  zone("intel-rapl:2", "psys", "1");
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  files.write("powercap/intel-rapl:3/name", "package-2\n");  // which may not be read
  const auto before = read();
  QCOMPARE(before.size(), std::size_t{2});

  zone("intel-rapl:0", "package-0", "101000000");
  zone("intel-rapl:1", "package-1", "49000000");  // it began anew
  QCOMPARE(watts_between(before, read(), 2).value_or(0), 75.0);

  QVERIFY(!watts_between({}, read(), 2));
  QVERIFY(!watts_between(before, read(), 0));
}

void OwnersRulesTest::processes_of_other_programs_are_told_from_ours() {
  const Directory files;
  QProcess child, starter;
  child.start("sleep", {"600"});
  QVERIFY(child.waitForStarted());
  const auto end_child = qScopeGuard([&] {
    child.kill();
    child.waitForFinished();
  });
  // A session of its own, and no descendant of this process: its parent has ended.
  const QString words_file = QString::fromStdString(files.path("words").string());
  starter.start("sh", {"-c", "setsid sh -c 'sleep 600 & echo $$ $! > " + words_file + "; wait' &"});
  QVERIFY(starter.waitForFinished());
  std::uint32_t leader = 0, in_its_session = 0;
  QTRY_VERIFY_WITH_TIMEOUT(std::ifstream(files.path("words")) >> leader >> in_its_session, test::kRuleMilliseconds);
  const auto end_session = qScopeGuard([&] { ::kill(-static_cast<pid_t>(leader), SIGKILL); });
  const auto other = static_cast<std::uint32_t>(::getppid());  // who runs this test
  const auto reading = [](unsigned gpu, std::vector<GpuProcess> processes) {
    return GpuReading{.now = {.index = gpu}, .processes = std::move(processes)};
  };
  const GpuReading ours = reading(0, {{static_cast<std::uint32_t>(::getpid()), 1e9},
                                      {static_cast<std::uint32_t>(child.processId()), 1e9},
                                      {leader, 1e9},
                                      {in_its_session, 1e9},
                                      {4'194'304, 1e9}});  // of another container: no process has that number here

  QVERIFY(!others_on({ours}, static_cast<pid_t>(leader)));
  const auto found = others_on({ours, reading(3, {{other, 2e9}})}, static_cast<pid_t>(leader));

  QVERIFY(others_on({ours}, 0));  // while that is no trainer of ours
  QVERIFY(found && found->gpu == 3 && found->bytes_known);
  QCOMPARE(found->bytes, 2e9);
  QVERIFY2(contains(found->who, "process " + std::to_string(other)), found->who.c_str());
  const auto unknown = others_on({reading(3, {{other, 2e9}}), reading(5, {{other, {}}})}, 0);
  QVERIFY(unknown && unknown->gpu == 5 && !unknown->bytes_known);
}

QTEST_GUILESS_MAIN(OwnersRulesTest)
#include "owners_rules_test.moc"
