// Task files, pairs of tokens, scores and reports. What the harness computes itself: harness_golden_test.cpp.
#include <QtCore/QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "net/base/file.h"
#include "net/tokenizer/load_tokenizer.h"
#include "tests/trainer/evaluate/asked_model.h"
#include "trainer/evaluate/batch_loss.h"
#include "trainer/evaluate/eval_report.h"
#include "trainer/evaluate/white_space.h"

namespace {

using namespace atl;
using namespace atl::test;

std::string as_text(const std::vector<std::int32_t>& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += token < 256 ? std::string(1, static_cast<char>(token)) : "<>";
  return text;
}

constexpr const char* kChoices = R"({"kind": "multiple_choice"})";

TokenizerFacts facts_of_two_tokens() {
  TokenizerFacts facts;
  facts.vocab_size = 2;
  facts.end_of_text = 1;
  return facts;
}

// Makes no token of any text, as SentencePiece makes none of white space.
class MuteTokenizer : public Tokenizer {
 public:
  MuteTokenizer() : Tokenizer(facts_of_two_tokens()) {}
  std::unique_ptr<TokenizerScratch> make_scratch() const override { return std::make_unique<TokenizerScratch>(); }
  Status encode(std::string_view, SpecialText, TokenizerScratch&, std::vector<TokenId>&) const override {
    return ok_status();
  }
  Status decode(std::span<const TokenId>, std::string&) const override { return ok_status(); }
};

bool says(const Error& error, std::string_view words) { return error.message.find(words) != std::string::npos; }

class EvaluateTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void white_space_at_a_contexts_end_belongs_to_the_continuation();
  void an_empty_context_is_the_prefix_token();
  void text_that_spells_a_special_token_is_that_token();
  void windows_predict_each_token_once_with_all_the_context_there_is();
  void what_shares_a_beginning_is_as_likely_as_alone();
  void long_pairs_lose_their_beginning();
  void a_continuation_longer_than_the_context_is_refused();
  void a_document_that_cannot_be_asked_is_named();
  void answers_that_are_no_numbers_are_no_scores();
  void a_datasets_loss_is_the_training_engines_data();
  void a_datasets_loss_is_the_training_engines();
  void task_files_say_what_is_wrong_in_which_line_data();
  void task_files_say_what_is_wrong_in_which_line();
  void a_limit_takes_the_first_documents();
  void acc_norm_counts_characters_and_acc_bytes_bytes();
  void the_bootstrap_draws_pythons_numbers();
  void the_bootstrap_draws_as_many_rounds_as_the_harness_data();
  void the_bootstrap_draws_as_many_rounds_as_the_harness();
  void white_space_is_pythons();
  void a_report_has_the_harnesss_keys();
  void a_report_is_a_file_or_one_in_a_directory_with_its_samples();
  void names_of_any_bytes_are_reported_and_no_samples_are_lost();
};

void EvaluateTest::white_space_at_a_contexts_end_belongs_to_the_continuation() {
  ModelText text = byte_text();
  const TokenPair pair = encode_pair(text, "one two \n\xc2\xa0", "three").value();
  QCOMPARE(as_text(pair.context), std::string("one two"));
  QCOMPARE(as_text(pair.continuation), std::string(" \n\xc2\xa0three"));
}

void EvaluateTest::an_empty_context_is_the_prefix_token() {
  ModelText text = byte_text();
  const TokenPair pair = encode_pair(text, "", "word").value();
  QCOMPARE(pair.context, std::vector<std::int32_t>{256});
  QCOMPARE(as_text(pair.continuation), std::string("word"));
  // Of white space alone nothing is left as a context either.
  QCOMPARE(as_text(encode_pair(text, "  ", "word").value().continuation), std::string("  word"));
  QVERIFY(!encode_pair(text, "context", "").ok());
}

// As transformers' tokenizers have it, by which the harness reads templates; a begin that is written is not added.
void EvaluateTest::text_that_spells_a_special_token_is_that_token() {
  const auto file = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "tokenizer" / "tokenizer.json";
  ModelText text = ModelText::make(load_tokenizer(file).value(), 4096).value();
  const std::vector<std::int32_t> tide = text.encode("tide").value();
  QCOMPARE(tide.front(), text.prefix());
  QCOMPARE(text.encode("<|begin_of_text|>tide").value(), tide);
  QCOMPARE(text.encode_prompt("<|begin_of_text|>tide").value(), tide);
  QCOMPARE(text.encode_prompt("tide").value(), tide);
  QCOMPARE(text.encode_prompt("").value(), std::vector<std::int32_t>{text.prefix()});
  const TokenPair pair = encode_pair(text, "tide<|begin_of_text|>", "tide").value();
  QCOMPARE(pair.context.back(), text.prefix());
}

// The example of the harness: ten tokens, four at once.
void EvaluateTest::windows_predict_each_token_once_with_all_the_context_there_is() {
  ModelText text = byte_text();
  const auto windows = rolling_windows(text, "0123456789", 4).value();
  QCOMPARE(windows.size(), std::size_t{3});
  QCOMPARE(windows[0].context, std::vector<std::int32_t>{256});
  QCOMPARE(as_text(windows[0].continuation), std::string("0123"));
  QCOMPARE(as_text(windows[1].context), std::string("3"));
  QCOMPARE(as_text(windows[1].continuation), std::string("4567"));
  QCOMPARE(as_text(windows[2].context), std::string("567"));
  QCOMPARE(as_text(windows[2].continuation), std::string("89"));
}

void EvaluateTest::what_shares_a_beginning_is_as_likely_as_alone() {
  ModelText text = byte_text();
  std::vector<TokenPair> pairs;
  for (const char* context : {"The same long beginning of several", "Another", "The same long beginning of all"}) {
    for (const char* continuation : {" questions", " answers", " x", " answers and more"}) {
      pairs.push_back(encode_pair(text, context, continuation).value());
    }
  }
  const auto together = log_likelihoods(*asked_engine(2, 64), pairs, 64).value();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto alone = log_likelihoods(*asked_engine(1, 64), std::span(pairs).subspan(i, 1), 64).value();
    // fp32 in another order, over up to 17 tokens.
    QVERIFY(std::abs(together[i].sum - alone[0].sum) < 1e-4);
    QVERIFY(alone[0].sum < -1);
  }
}

void EvaluateTest::long_pairs_lose_their_beginning() {
  ModelText text = byte_text();
  const std::vector<TokenPair> whole{encode_pair(text, "a beginning that is lost, and the rest", " of it").value()};
  const std::vector<TokenPair> end{encode_pair(text, "and the rest", " of it").value()};
  const std::int64_t length = std::ssize(end[0].context) + std::ssize(end[0].continuation) - 1;
  const auto cut = log_likelihoods(*asked_engine(1, 64), whole, length).value();
  const auto short_one = log_likelihoods(*asked_engine(1, 64), end, 64).value();
  QVERIFY(std::abs(cut[0].sum - short_one[0].sum) < 1e-4);
  QCOMPARE(longest_input(whole, length), length);
}

void EvaluateTest::a_continuation_longer_than_the_context_is_refused() {
  ModelText text = byte_text();
  const std::vector<TokenPair> pairs{encode_pair(text, "x", "0123456789").value()};
  QVERIFY(log_likelihoods(*asked_engine(1, 16), pairs, 10).ok());
  const auto refused = log_likelihoods(*asked_engine(1, 16), pairs, 9);
  QVERIFY(!refused.ok());
  QVERIFY(refused.error().message.find("10 tokens") != std::string::npos);
}

void EvaluateTest::a_document_that_cannot_be_asked_is_named() {
  const Task choices = read_task(std::string(kChoices) +
                                     "\n"
                                     R"({"context": "q", "choices": ["a", "b"], "gold": 0})"
                                     "\n"
                                     R"({"context": "q", "choices": ["a", "012345678"], "gold": 0})",
                                 "t")
                           .value();
  ModelText text = byte_text();
  const auto too_long = tokenise_task(choices, text, 9);  // with the delimiter ten tokens
  QVERIFY(!too_long.ok() && says(too_long.error(), "task t, document 2: a continuation of 10 tokens"));
  QVERIFY(tokenise_task(choices, text, 10).ok());

  const Task pages = read_task(R"({"kind": "loglikelihood_rolling"})"
                               "\n"
                               R"({"text": "  "})",
                               "pages")
                         .value();
  ModelText mute = ModelText::make(std::make_unique<MuteTokenizer>(), 257).value();
  const auto nothing = tokenise_task(pages, mute, 160);
  QVERIFY(!nothing.ok() && says(nothing.error(), "task pages, document 1: the tokenizer makes no token"));
}

void EvaluateTest::answers_that_are_no_numbers_are_no_scores() {
  ModelText text = byte_text();
  Task task = load_task(task_file("endings")).value();
  const TokenTask tokens = tokenise_task(task, text, 160).value();
  const auto damaged = evaluate_task(*damaged_engine(1, 160), std::move(task), tokens, 160, 0, {});
  QVERIFY(!damaged.ok());
  QCOMPARE(damaged.error().code, ErrorCode::kNonFinite);
  QVERIFY(says(damaged.error(), "task endings, document 1"));
}

void EvaluateTest::a_datasets_loss_is_the_training_engines_data() {
  QTest::addColumn<bool>("in_documents");
  QTest::addColumn<bool>("marked");
  QTest::newRow("packed") << false << false;
  QTest::newRow("packed, some labels marked") << false << true;
  QTest::newRow("in documents") << true << false;
  QTest::newRow("in documents, some labels marked") << true << true;
}

void EvaluateTest::a_datasets_loss_is_the_training_engines() {
  QFETCH(const bool, in_documents);
  QFETCH(const bool, marked);
  constexpr std::int32_t kSequences = 3, kLength = 24;
  std::mt19937 random(5);
  std::vector<std::int32_t> tokens(kSequences * (kLength + 1)), starts;
  std::vector<std::uint8_t> counts(tokens.size(), 1);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 257);
  for (std::size_t i = 0; marked && i < counts.size(); ++i) counts[i] = i % 3 == 0 ? 0 : 1;
  for (std::int32_t i = 0; in_documents && i < kSequences * kLength; ++i) {
    const std::int32_t sequence = i / kLength, place = i % kLength;
    // One of them of a single token; the second sequence is a document.
    starts.push_back(sequence == 1 || place < 9 ? 0 : place < 10 ? 9 : 10);
    if (starts.back() == place && place > 0) counts[static_cast<std::size_t>(sequence * (kLength + 1) + place)] = 0;
  }
  const TokenBatch batch{
      .tokens = tokens, .sequences = kSequences, .length = kLength, .starts = starts, .counts = counts};
  EngineOptions options;
  options.seed = 11;  // as asked_parameters()
  options.attention = in_documents ? AttentionScope::kDocument : AttentionScope::kPacked;
  const double expected = Engine::create(asked_config(), options).value()->evaluate(batch).value();

  const LossSum found = batch_loss(*asked_engine(2, kLength), batch).value();

  QCOMPARE(found.labels, batch.predicted_count());
  // fp32 in another order.
  QVERIFY(std::abs(found.nats / static_cast<double>(found.labels) - expected) < 1e-4);
  QCOMPARE(batch_loss(*damaged_engine(2, kLength), batch).error().code, ErrorCode::kNonFinite);
}

void EvaluateTest::task_files_say_what_is_wrong_in_which_line_data() {
  QTest::addColumn<QByteArray>("lines");
  QTest::addColumn<QByteArray>("words");
  const QByteArray choices = kChoices;
  QTest::newRow("no header") << QByteArray(R"({"context": "a"})") << QByteArray("line 1: \"kind\" must be a text");
  QTest::newRow("kind") << QByteArray(R"({"kind": "essay"})") << QByteArray("line 1: \"kind\" must be multiple_choice");
  QTest::newRow("nothing asked") << choices << QByteArray("asks nothing");
  QTest::newRow("no JSON") << choices + "\n{" << QByteArray("line 2");
  QTest::newRow("a list") << choices + "\n[1]" << QByteArray("line 2: it is no JSON object");
  QTest::newRow("choices") << choices +
                                  "\n"
                                  R"({"context": "a", "choices": "b", "gold": 0})"
                           << QByteArray("\"choices\" must be a list of texts");
  QTest::newRow("an empty choice") << choices +
                                          "\n\n"
                                          R"({"context": "a", "choices": ["b", ""], "gold": 0})"
                                   << QByteArray("line 3: a choice is empty");
  QTest::newRow("gold") << choices +
                               "\n"
                               R"({"context": "a", "choices": ["b", "c"], "gold": 2})"
                        << QByteArray("from 0 to 1");
  QTest::newRow("negative gold") << choices +
                                        "\n"
                                        R"({"context": "a", "choices": ["b", "c"], "gold": -1})"
                                 << QByteArray("from 0 to 1");
  QTest::newRow("no gold") << choices +
                                  "\n"
                                  R"({"context": "a", "choices": ["b", "c"]})"
                           << QByteArray("\"gold\"");
  QTest::newRow("no text") << QByteArray(R"({"kind": "loglikelihood_rolling"})"
                                         "\n"
                                         R"({"text": ""})")
                           << QByteArray("nothing in it to be scored");
}

void EvaluateTest::task_files_say_what_is_wrong_in_which_line() {
  QFETCH(QByteArray, lines);
  QFETCH(QByteArray, words);
  const auto task = read_task(lines.toStdString(), "mine");
  QVERIFY(!task.ok());
  QCOMPARE(task.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(task.error().message.find(words.toStdString()) != std::string::npos, task.error().message.c_str());
}

void EvaluateTest::a_limit_takes_the_first_documents() {
  const Task task = load_task(task_file("endings"), 2).value();
  QCOMPARE(task.documents.size(), std::size_t{2});
  QCOMPARE(task.name, std::string("endings"));
  QVERIFY(task.documents[1].contexts[0].starts_with("Two men"));
}

void EvaluateTest::acc_norm_counts_characters_and_acc_bytes_bytes() {
  const Task task = read_task(std::string(kChoices) +
                                  "\n"
                                  R"({"context": "q", "choices": ["ab", "éééé", "abcdef"], "gold": 1})",
                              "t")
                        .value();
  // As they are -2, -3.9, -6; by characters -1, -0.975, -1; by bytes -1, -0.4875, -1. And then -2, -4.4, -6.
  const auto scores = [&](double second) {
    return score_task(task, std::vector<std::vector<LogLikelihood>>{{{-2, false}, {second, false}, {-6, false}}});
  };
  const TaskScores close = scores(-3.9), further = scores(-4.4);
  QCOMPARE(close.metrics.size(), std::size_t{3});
  QCOMPARE(close.documents[0].values, (std::vector<double>{0, 1, 1}));
  QCOMPARE(further.documents[0].values, (std::vector<double>{0, 0, 1}));
  QCOMPARE(further.metrics[2].name, std::string("acc_bytes"));
  // One document has no deviation.
  QVERIFY(!further.metrics[0].standard_error);
}

// >>> random.Random(3).random(), of CPython 3.11; and of seed 0.
void EvaluateTest::the_bootstrap_draws_pythons_numbers() {
  PythonRandom three(3), zero(0);
  QCOMPARE(three.uniform(), 0.23796462709189137);
  QCOMPARE(three.uniform(), 0.5442292252959519);
  QCOMPARE(zero.uniform(), 0.8444218515250481);
}

// By the harness's bootstrap_stderr (api/metrics.py), over these five values.
void EvaluateTest::the_bootstrap_draws_as_many_rounds_as_the_harness_data() {
  QTest::addColumn<int>("rounds");
  QTest::addColumn<double>("expected");
  QTest::newRow("fewer than a thousand") << 300 << 6.650239314140928;
  QTest::newRow("whole thousands") << 2000 << 6.686632191883755;
  QTest::newRow("of more the whole thousands") << 2500 << 6.686632191883755;
}

void EvaluateTest::the_bootstrap_draws_as_many_rounds_as_the_harness() {
  QFETCH(const int, rounds);
  QFETCH(const double, expected);
  Task task{.name = "t", .kind = TaskKind::kLogLikelihood, .documents = std::vector<TaskDocument>(5)};
  const std::vector<std::vector<LogLikelihood>> answers{
      {{-1.0, false}}, {{-2.5, false}}, {{-0.25, true}}, {{-4.0, false}}, {{-3.0, false}}};
  const Metric perplexity = score_task(task, answers, rounds).metrics.at(1);
  QCOMPARE(perplexity.name, std::string("perplexity"));
  QVERIFY(std::abs(perplexity.standard_error.value() - expected) < 1e-12 * expected);
  QVERIFY(!score_task(task, answers, 0).metrics.at(1).standard_error);
}

void EvaluateTest::white_space_is_pythons() {
  QCOMPARE(trailing_white_space("a b \t\n\x1f\xe3\x80\x80\xc2\x85"), std::size_t{9});
  QCOMPARE(trailing_white_space("a\xe2\x80\x8b"), std::size_t{0});  // a space of no width is none
  QCOMPARE(trailing_white_space("  "), std::size_t{2});
  QCOMPARE(split_count("one two\n\n three"), std::size_t{3});
  QCOMPARE(split_count(" one "), std::size_t{3});  // as ['', 'one', '']
  QCOMPARE(split_count(""), std::size_t{1});
  QCOMPARE(characters("a\xc3\xa9\xe6\x97\xa5"), std::size_t{3});
}

EvaluatedTask evaluated() {
  const std::int64_t max_length = asked_config().max_position_embeddings;
  ModelText text = byte_text();
  Task task = load_task(task_file("last_word")).value();
  const TokenTask tokens = tokenise_task(task, text, max_length).value();
  return evaluate_task(*asked_engine(2, longest_input(tokens.pairs, max_length)), std::move(task), tokens, max_length,
                       1000, {})
      .value();
}

void EvaluateTest::a_report_has_the_harnesss_keys() {
  const std::vector<EvaluatedTask> tasks{evaluated()};
  const nlohmann::json report = report_json({.model = "m", .tokenizer = "bytes", .max_length = 160}, tasks);
  for (const char* key :
       {"results", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples", "config"}) {
    QVERIFY2(report.contains(key), key);
  }
  const nlohmann::json& result = report.at("results").at("last_word");
  QCOMPARE(result.at("acc,none").get<double>(), tasks[0].scores.metrics[0].value);
  QVERIFY(result.at("perplexity_stderr,none").is_number());
  QCOMPARE(report.at("n-samples").at("last_word").at("effective").get<int>(), 9);
  QVERIFY(report_table(tasks).find("perplexity") != std::string::npos);
}

void EvaluateTest::a_report_is_a_file_or_one_in_a_directory_with_its_samples() {
  const QTemporaryDir directory;
  const std::filesystem::path root = directory.path().toStdString();
  const std::vector<EvaluatedTask> tasks{evaluated()};
  const EvaluationFacts facts{.model = "m", .tokenizer = "bytes", .began = 1700000000.25};
  const auto file = write_report(root / "mine.json", facts, tasks, /*samples=*/false).value();
  QCOMPARE(file, root / "mine.json");
  QVERIFY(std::filesystem::exists(file));
  const auto dated = write_report(root / "results", facts, tasks, /*samples=*/true).value();
  QCOMPARE(dated.filename().string(), std::string("results_2023-11-14T22-13-20.250000.json"));
  const std::string samples =
      read_file(root / "results" / "samples_last_word_2023-11-14T22-13-20.250000.jsonl").value();
  QCOMPARE(std::ranges::count(samples, '\n'), 9);
}

void EvaluateTest::names_of_any_bytes_are_reported_and_no_samples_are_lost() {
  const QTemporaryDir directory;
  const std::filesystem::path root = directory.path().toStdString();
  std::vector<EvaluatedTask> tasks{evaluated(), evaluated(), evaluated()};
  tasks[0].task.name = "a:b";
  tasks[1].task.name = "a/b";
  tasks[2].task.name = "a\xff";  // a file's stem may be so
  QVERIFY(write_report(root, {.model = "m\xff", .began = 1}, tasks, /*samples=*/true).ok());
  QCOMPARE(std::distance(std::filesystem::directory_iterator(root), std::filesystem::directory_iterator()),
           std::ptrdiff_t{4});
  QVERIFY(!check_output("/proc/nowhere").ok());
}

}  // namespace

QTEST_APPLESS_MAIN(EvaluateTest)
#include "evaluate_test.moc"
