// Fine-tuning on chats over two islands, with programs alone: what assistants say is learned, and nothing else counts,
// however many labels each island's chats have; both end with the same model.
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/data/dataset.h"
#include "net/data/token_shard.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

const std::filesystem::path kGolden = ATOLL_TEST_DATA_DIR;
constexpr std::uint32_t kLength = 64;
constexpr int kIslands = 2;
// Of 2,176 tokens, of which a fresh model finds each as likely as another.
constexpr double kFreshLoss = 7.6;

nlohmann::json json_of(const std::filesystem::path& file) { return nlohmann::json::parse(require(read_file(file))); }

// Questions of any length, and an answer that is always the same.
std::string chats() {
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    const std::string question = "How high is the tide at island " + std::to_string(i * 7919 % 1000) + "?";
    nlohmann::json messages = nlohmann::json::array();
    for (int turn = 0; turn <= i % 3; ++turn) {
      messages.push_back(
          {{"role", "user"}, {"content", question + std::string(static_cast<std::size_t>(i % 40), '!')}});
      messages.push_back({{"role", "assistant"}, {"content", "As high as the reef."}});
    }
    lines += nlohmann::json{{"messages", messages}}.dump() + "\n";
  }
  return lines;
}

}  // namespace

class ChatRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void islands_learn_together_what_assistants_say();

 private:
  ProgramOutcome must(const std::vector<std::string>& arguments) const {
    ProgramOutcome outcome = scene_.run(arguments);
    if (outcome.exit_code != 0)
      qFatal("%s: exit code %d: %s", arguments[0].c_str(), outcome.exit_code, outcome.err.c_str());
    return outcome;
  }
  std::string path(const std::string& name) const { return scene_.path(name).string(); }
  // Of the validation split's sequences.
  std::int64_t labels_that_count() const;

  Scene scene_;
};

void ChatRunTest::initTestCase() {
  nlohmann::json tokenizer = json_of(kGolden / "tokenizer" / "tokenizer.json");
  tokenizer.merge_patch(json_of(kGolden / "chat" / "llama3.json").at("patch"));
  require(write_file_atomically(path("tokenizer.json"), tokenizer.dump(), FileMode::kPublic));
  require(write_file_atomically(path("chats.jsonl"), chats(), FileMode::kPublic));
  must({"data", "prepare", "--chat", path("chats.jsonl"), "--tokenizer", path("tokenizer.json"), "--validation", "10",
        "--keep-duplicates", "--output", path("data")});
}

std::int64_t ChatRunTest::labels_that_count() const {
  const Dataset dataset = require(Dataset::open(path("data")));
  std::vector<std::int32_t> tokens(kLength + 1);
  std::int64_t labels = 0;
  for (std::uint64_t i = 0; i < dataset.sequences(Split::kValidation, kLength); ++i) {
    dataset.read_sequence(Split::kValidation, i, kLength, tokens);
    labels += std::ranges::count_if(std::span(tokens).subspan(1), [](std::int32_t token) {
      return token_id(static_cast<std::uint32_t>(token)) == static_cast<std::uint32_t>(token);
    });
  }
  return labels;
}

void ChatRunTest::islands_learn_together_what_assistants_say() {
  must({"hub",
        "init",
        "--home",
        path("hub"),
        "--data",
        path("data"),
        "--name",
        "chats",
        "--islands",
        std::to_string(kIslands),
        "--rounds",
        "4",
        "--inner-steps",
        "6",
        "--batch",
        "4",
        "--sequence-length",
        std::to_string(kLength),
        "--lr",
        "0.003",
        "--warmup-steps",
        "0",
        "--validate-every",
        "0"});
  scene_.serve_hub();
  std::vector<std::unique_ptr<QProcess>> islands;
  for (int i = 0; i < kIslands; ++i) {
    islands.push_back(scene_.start({"join", scene_.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0",
                                    "--home", path("island-" + std::to_string(i))}));
  }
  for (const auto& island : islands) {
    const ProgramOutcome outcome = outcome_of(*island);
    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  }

  std::vector<std::string> models;
  for (int i = 0; i < kIslands; ++i) {
    const std::string model = path("model-" + std::to_string(i));
    must({"export", "--home", path("island-" + std::to_string(i)), "--output", model});
    models.push_back(require(read_file(std::filesystem::path(model) / "model.safetensors")));
  }
  QVERIFY(models[0] == models[1]);
  // Who generates with it stops where a turn ends, too.
  const auto read = [&](const char* file) {
    return nlohmann::json::parse(require(read_file(std::filesystem::path(path("model-0")) / file)));
  };
  const auto ends = read("generation_config.json").at("eos_token_id");
  QCOMPARE(ends.size(), std::size_t{2});
  QVERIFY(ends[0] == read("config.json").at("eos_token_id") && ends[1] != ends[0]);
  // Who asks it writes as it was taught.
  const std::string chat_template = json_of(kGolden / "chat" / "llama3.json").at("template").get<std::string>();
  QCOMPARE(read("tokenizer_config.json").at("chat_template").get<std::string>(), chat_template);
  QCOMPARE(require(read_file(std::filesystem::path(path("model-0")) / "chat_template.jinja")), chat_template);
  QCOMPARE(read("tokenizer_config.json").at("eos_token").get<std::string>(), std::string("<|eot_id|>"));
  const auto loss =
      nlohmann::json::parse(must({"eval", "--model", path("model-0"), "--data", path("data"), "--sequences", "100000",
                                  "--sequence-length", std::to_string(kLength), "--json"})
                                .out);
  QCOMPARE(loss.at("tokens").get<std::int64_t>(), labels_that_count());
  QVERIFY(!loss.contains("loss_nats_a_byte"));  // of what is predicted the bytes are not known
  QVERIFY2(loss.at("loss_nats").get<double>() < kFreshLoss / 2, loss.dump().c_str());
}

QTEST_GUILESS_MAIN(ChatRunTest)
#include "chat_run_test.moc"
