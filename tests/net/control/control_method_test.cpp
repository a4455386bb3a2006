// Methods of the control protocol: what is asked and answered survives the wire, what is wrong names its field, and
// docs/control.md names the parameters that there are.
#include "net/control/methods.h"

#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "net/control/method_fields.h"
#include "tests/net/control/event_samples.h"

using namespace atl;
using atl::test::FieldNames;

namespace {

template <class Message>
bool comes_back(const Message& message) {
  const std::string once = encode_message(message).dump();
  const auto read = decode_message<Message>(nlohmann::json::parse(once));
  return read.ok() && encode_message(*read).dump() == once;
}

// By the method's name, what the rows of "## Methods" name as its parameters.
std::map<std::string, std::set<std::string>> documented() {
  static const std::regex kCode("`([a-z_.]+)\\??`");
  const auto code_in = [](const std::string& text) {
    std::set<std::string> found;
    for (std::sregex_iterator i(text.begin(), text.end(), kCode), end; i != end; ++i) found.insert((*i)[1]);
    return found;
  };
  std::ifstream file(std::string(ATOLL_DOCS_DIR) + "/control.md");
  std::map<std::string, std::set<std::string>> methods;
  bool within = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) within = line == "## Methods";
    if (!within || !line.starts_with("| `")) continue;
    const std::size_t params = line.find(" |", 2), result = line.find(" |", params + 2);
    for (const std::string& name : code_in(line.substr(0, params))) {
      const auto said = code_in(line.substr(params, result - params));
      methods[name].insert(said.begin(), said.end());
    }
  }
  return methods;
}

template <class... Each>
std::map<std::string, std::set<std::string>> archived(Methods<Each...>) {
  return {{std::string(Each::kName), FieldNames::of<Each>()}...};
}

}  // namespace

class ControlMethodTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_asked_and_answered_survives_the_round_trip();
  void what_is_not_said_is_not_there();
  void a_wrong_parameter_names_its_field_data();
  void a_wrong_parameter_names_its_field();
  void a_path_and_a_secret_come_as_they_are();
  void the_document_names_the_parameters();
};

void ControlMethodTest::what_is_asked_and_answered_survives_the_round_trip() {
  QVERIFY(comes_back(method::Pause{7200.0}));
  QVERIFY(comes_back(method::GpuPause{3, 7200.0}));
  QVERIFY(comes_back(method::GpuResume{3}));
  QVERIFY(comes_back(method::GpusTaken{"0,2-7", true, "forgotten"}));
  QVERIFY(comes_back(method::Stop{true}));
  QVERIFY(comes_back(method::Leave{true}));
  QVERIFY(comes_back(
      method::WishTaken{Wish::kPause, true, 1'763'725'000, "forgotten", method::Stake{42, 371, 500, 250.0}}));
  QVERIFY(comes_back(method::WishTaken{Wish::kRun, true}));
  QVERIFY(comes_back(method::Join{"atoll1.x", "laptop", "0.0.0.0:1", "example.org:1", "0-3", "gpu", "bf16", 2, 8, 4}));
  QVERIFY(comes_back(method::InviteLook{"atoll1.x"}));
  QVERIFY(comes_back(method::CheckRun{true}));
  QVERIFY(comes_back(method::CheckRun{false, "atoll1.x"}));
  QVERIFY(comes_back(method::AgentAlive{TransferCaps{2.5e6, {}}}));
  QVERIFY(comes_back(method::AgentAlive{}));
  QVERIFY(comes_back(method::Cancelled{true, "not kept"}));
  QVERIFY(comes_back(method::ModelExported{"/a/b", 42}));
  QVERIFY(comes_back(method::RunRollback{42, "a bad island"}));
  QVERIFY(comes_back(method::RunDecay{12, 200, 3e-5, "linear"}));
  QVERIFY(comes_back(method::RunDecay{{}, 200, {}, {}}));
  QVERIFY(comes_back(method::DecayDecided{12, 200, 3e-5, "1-sqrt"}));
  QCOMPARE(encode_message(method::Started{}).dump(), std::string(R"({"started":true})"));
  QCOMPARE(encode_message(method::Stopping{}).dump(), std::string(R"({"stopping":true})"));
}

void ControlMethodTest::what_is_not_said_is_not_there() {
  QCOMPARE(encode_message(method::Pause{}).dump(), std::string("{}"));
  QCOMPARE(encode_message(method::Join{}).dump(), std::string("{}"));
  QVERIFY(!decode_message<method::Pause>(nlohmann::json::object())->for_seconds);
  QCOMPARE(decode_message<method::Stop>(nlohmann::json::object())->now, false);
  QVERIFY(!decode_message<method::Join>(nlohmann::json::object())->threads);
  QVERIFY(!decode_message<method::AgentAlive>(nlohmann::json::object())->caps);  // of an agent of before
}

void ControlMethodTest::a_wrong_parameter_names_its_field_data() {
  QTest::addColumn<QString>("says");
  QTest::addColumn<QString>("field");
  const auto row = [](const Error& error, const char* field) {
    QTest::newRow(field) << QString::fromStdString(error.message) << field;
  };
  using nlohmann::json;
  row(decode_message<method::Pause>(json{{"for_seconds", "2h"}}).error(), "'for_seconds'");
  row(decode_message<method::Stop>(json{{"now", 1}}).error(), "'now'");
  row(decode_message<method::Leave>(json{{"force", "yes"}}).error(), "'force'");
  row(decode_message<method::CheckRun>(json{{"full", "yes"}}).error(), "'full'");
  row(decode_message<method::Join>(json{{"threads", -1}}).error(), "'threads'");
  row(decode_message<method::Join>(json{{"name", std::string(1000, 'x')}}).error(), "'name'");
  row(decode_message<method::InviteLook>(json::object()).error(), "'invite'");
  row(decode_message<method::ModelExport>(json{{"directory", 7}}).error(), "'directory'");
  row(decode_message<method::AgentAlive>(json{{"caps", {{"upload_bytes_per_second", -1}}}}).error(),
      "'upload_bytes_per_second'");
  row(decode_message<method::AgentAlive>(json{{"caps", {{"download_bytes_per_second", 0}}}}).error(),
      "'download_bytes_per_second'");
  row(decode_message<method::RunRollback>(json{{"to", 1e10}}).error(), "'to'");
  row(decode_message<method::IslandSendAway>(json::object()).error(), "'island'");
}

void ControlMethodTest::a_wrong_parameter_names_its_field() {
  QFETCH(const QString, says);
  QFETCH(const QString, field);

  QVERIFY2(says.contains(field), qPrintable(says));
}

void ControlMethodTest::a_path_and_a_secret_come_as_they_are() {
  const std::string path = "/home/me/a\tdirectory";

  QCOMPARE(decode_message<method::ModelExport>(encode_message(method::ModelExport{path}))->directory, path);
  QCOMPARE(decode_message<method::Join>(encode_message(method::Join{.invite = "a\tb"}))->invite, std::string("a\tb"));
}

void ControlMethodTest::the_document_names_the_parameters() {
  const auto methods = archived(AllMethods{});
  const auto document = documented();

  for (const auto& [name, params] : methods) {
    QVERIFY2(document.contains(name), name.c_str());
    QVERIFY2(document.at(name) == params, name.c_str());
  }
}

QTEST_APPLESS_MAIN(ControlMethodTest)
#include "control_method_test.moc"
