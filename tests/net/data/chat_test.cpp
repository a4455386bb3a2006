// Chats: read from lines, in Llama 3's template as transformers has it (tests/golden/make_chat.py), and prepared into a
// dataset that says which tokens count.
#include "net/data/chat.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/data/chat_template.h"
#include "net/data/prepare.h"
#include "net/data/token_shard.h"
#include "net/data/tree_builder.h"
#include "net/tokenizer/load_tokenizer.h"

using namespace atl;
using nlohmann::json;

namespace {

const std::filesystem::path kGolden = ATOLL_TEST_DATA_DIR;

json golden() { return json::parse(*read_file(kGolden / "chat" / "llama3.json")); }

// The golden tokenizer with Llama 3's special tokens of messages.
std::string chat_tokenizer_file(const json& patch = golden().at("patch")) {
  json file = json::parse(*read_file(kGolden / "tokenizer" / "tokenizer.json"));
  file.update(patch);
  return file.dump();
}

std::vector<TokenId> tokens_of(const Tokenizer& tokenizer, const std::vector<ChatMessage>& chat) {
  std::vector<TokenId> ids;
  const ChatTokens special = llama3_chat_tokens(tokenizer).value();
  if (!append_chat(chat, special, tokenizer, *tokenizer.make_scratch(), ids).ok()) qFatal("no tokens");
  return ids;
}

std::string words_of(const Error& error) { return error.message; }

}  // namespace

class ChatTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tokens_and_what_counts_are_those_of_transformers_data();
  void tokens_and_what_counts_are_those_of_transformers();
  void exports_bring_the_template_that_was_trained();
  void both_kinds_of_lines_say_the_same();
  void a_line_that_is_no_chat_is_refused_data();
  void a_line_that_is_no_chat_is_refused();
  void what_is_not_understood_is_refused_by_name_data();
  void what_is_not_understood_is_refused_by_name();
  void keys_without_meaning_are_no_obstacle_data();
  void keys_without_meaning_are_no_obstacle();
  void a_line_says_what_is_learned_data();
  void a_line_says_what_is_learned();
  void a_system_beside_the_messages_is_the_first_of_them_data();
  void a_system_beside_the_messages_is_the_first_of_them();
  void what_is_not_learned_is_marked();
  void chats_survive_as_documents();
  void a_special_token_in_what_somebody_says_is_text();
  void a_tokenizer_without_the_special_tokens_is_refused();
  void a_dataset_of_chats_says_what_counts_data();
  void a_dataset_of_chats_says_what_counts();
  void other_files_are_refused();
};

void ChatTest::tokens_and_what_counts_are_those_of_transformers_data() {
  QTest::addColumn<bool>("gpt2");
  QTest::newRow("Llama 3's pattern") << false;
  QTest::newRow("GPT-2's pattern") << true;
}

void ChatTest::tokens_and_what_counts_are_those_of_transformers() {
  QFETCH(const bool, gpt2);
  const json all = gpt2 ? golden().at("gpt2") : golden();
  const auto tokenizer = read_tokenizer(chat_tokenizer_file(all.at("patch"))).value();
  for (const json& expected : all.at("chats")) {
    const auto chat = read_chat(expected.at("line").get<std::string>());
    QVERIFY2(chat.ok(), chat.ok() ? "" : chat.error().message.c_str());

    const std::vector<TokenId> tokens = tokens_of(*tokenizer, *chat);

    std::vector<TokenId> ids;
    std::vector<int> assistant;
    for (const TokenId token : tokens) {
      ids.push_back(token_id(token));
      assistant.push_back(token_id(token) == token ? 1 : 0);
    }
    QCOMPARE(ids, expected.at("ids").get<std::vector<TokenId>>());
    QCOMPARE(assistant, expected.at("assistant").get<std::vector<int>>());
  }
}

void ChatTest::exports_bring_the_template_that_was_trained() {
  QCOMPARE(std::string(kLlama3ChatTemplate), golden().at("template").get<std::string>());
}

void ChatTest::both_kinds_of_lines_say_the_same() {
  const auto messages = read_chat(
      R"({"id": 7, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
          {"role": "assistant", "content": "a", "weight": 1}]})");
  const auto conversations = read_chat(
      R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "u"},
          {"from": "gpt", "value": "a"}]})");

  QVERIFY(messages.ok() && conversations.ok());
  QCOMPARE(messages->size(), std::size_t{3});
  QCOMPARE(document_of(*messages), document_of(*conversations));
  QCOMPARE((*messages)[2].role, ChatRole::kAssistant);
  QCOMPARE((*messages)[2].content, std::string("a"));
}

void ChatTest::a_line_that_is_no_chat_is_refused_data() {
  QTest::addColumn<QString>("line");
  QTest::addColumn<QString>("says");
  QTest::newRow("no JSON") << "hello"
                           << "";
  QTest::newRow("a list") << "[]"
                          << "";
  QTest::newRow("no messages") << R"({"text": "x"})"
                               << "messages";
  QTest::newRow("an empty one") << R"({"messages": []})"
                                << "no message";
  QTest::newRow("another role") << R"({"messages": [{"role": "tool", "content": "x"}]})"
                                << "messages[0].role";
  QTest::newRow("no role") << R"({"messages": [{"content": "x"}]})"
                           << "messages[0].role";
  QTest::newRow("content of parts") << R"({"messages": [{"role": "user", "content": ["x"]}]})"
                                    << "messages[0].content";
  QTest::newRow("a role of nobody") << R"({"conversations": [{"from": "observation", "value": "x"}]})"
                                    << "conversations[0].from' is 'observation'";
}

void ChatTest::a_line_that_is_no_chat_is_refused() {
  QFETCH(const QString, line);
  QFETCH(const QString, says);

  const auto chat = read_chat(line.toStdString());

  QVERIFY(!chat.ok());
  QCOMPARE(chat.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(QString::fromStdString(words_of(chat.error())).contains(says), words_of(chat.error()).c_str());
}

// What OpenAI, axolotl, TRL and LLaMA-Factory write into such files, and a model would learn something else without.
void ChatTest::what_is_not_understood_is_refused_by_name_data() {
  QTest::addColumn<QString>("beside");   // keys of the line
  QTest::addColumn<QString>("message");  // of an assistant's message
  QTest::addColumn<QString>("says");
  const auto row = [](const char* what, const char* beside, const char* message, const char* says) {
    QTest::newRow(what) << beside << message << says;
  };
  row("tools", R"("tools": [{"type": "function"}],)", "", "'tools' is not understood");
  row("functions", R"("functions": [{"name": "f"}],)", "", "'functions'");
  row("a weight of the line", R"("weight": 0,)", "", "'weight'");
  row("a line that is not trained on", R"("train": false,)", "", "'train'");
  row("images", R"("images": ["a.png"],)", "", "'images'");
  row("documents", R"("documents": [{"text": "x"}],)", "", "'documents'");
  row("a template", R"("chat_template": "{{ x }}",)", "", "'chat_template'");
  row("a bad example", R"("label": false,)", "", "'label' is not understood");
  row("another answer, a worse one", R"("rejected_response": "no",)", "", "'rejected_response'");
  row("another mask", R"("mask": "Assistant",)", "", "'mask'");
  row("another list", R"("conversations": [{"from": "gpt", "value": "x"}],)", "", "'messages' and conversations");
  row("tool calls", "", R"("tool_calls": [{"id": "1"}],)", "'messages[0].tool_calls' is not understood");
  row("a function call", "", R"("function_call": {"name": "f"},)", "'messages[0].function_call'");
  row("a name", "", R"("name": "Ada",)", "'messages[0].name'");
  row("reasoning", "", R"("reasoning_content": "so",)", "'messages[0].reasoning_content'");
  row("training in detail", "", R"("train_detail": [{"begin_offset": 0}],)", "'messages[0].train_detail'");
  row("a key of nobody", "", R"("foo": 1,)", "'messages[0].foo'");
  row("the other kind's words", "", R"("value": "y",)", "'messages[0].value'");
  row("half a weight", "", R"("weight": 0.5,)", "'messages[0].weight' is neither 0");
  row("a weight in words", "", R"("weight": "0",)", "'messages[0].weight'");
  row("two that disagree", "", R"("weight": 0, "train": true,)", "'messages[0].train'");
  row("a system of numbers", R"("system": 3,)", "", "'system'");
}

void ChatTest::what_is_not_understood_is_refused_by_name() {
  QFETCH(const QString, beside);
  QFETCH(const QString, message);
  QFETCH(const QString, says);
  const QString line =
      QStringLiteral(R"({%1 "messages": [{%2 "role": "assistant", "content": "x"}]})").arg(beside, message);

  const auto chat = read_chat(line.toStdString());

  QVERIFY(!chat.ok());
  QVERIFY2(QString::fromStdString(words_of(chat.error())).contains(says), words_of(chat.error()).c_str());
}

void ChatTest::keys_without_meaning_are_no_obstacle_data() {
  QTest::addColumn<QString>("line");
  QTest::newRow("nothing is said") << R"({"tools": "[]", "system": "", "messages": [
      {"role": "assistant", "content": "a", "tool_calls": [], "name": null, "function_call": {}, "refusal": null}]})";
  QTest::newRow("a description") << R"({"id": 3, "source": "x", "prompt": "p", "conversations": null, "messages": [
      {"role": "assistant", "content": "a", "timestamp": 3, "model": "m"}]})";
  QTest::newRow("words of the other kind") << R"({"conversations": [{"role": "assistant", "content": "a"}]})";
  QTest::newRow("roles of the other kind") << R"({"conversations": [{"from": "assistant", "value": "a"}]})";
  QTest::newRow("ShareGPT's in the other list") << R"({"messages": [{"from": "gpt", "value": "a"}]})";
  QTest::newRow("the mask that is meant") << R"({"mask": "User", "conversations": [{"from": "gpt", "value": "a"}]})";
}

void ChatTest::keys_without_meaning_are_no_obstacle() {
  QFETCH(const QString, line);

  const auto chat = read_chat(line.toStdString());

  QVERIFY2(chat.ok(), chat.ok() ? "" : words_of(chat.error()).c_str());
  QCOMPARE(chat->size(), std::size_t{1});
  QCOMPARE((*chat)[0].role, ChatRole::kAssistant);
  QCOMPARE((*chat)[0].content, std::string("a"));
  QVERIFY((*chat)[0].is_learned());
}

void ChatTest::a_line_says_what_is_learned_data() {
  QTest::addColumn<QString>("message");
  QTest::addColumn<bool>("learned");
  const auto row = [](const char* message, bool learned) { QTest::newRow(message) << message << learned; };
  row(R"("role": "assistant")", true);
  row(R"("role": "assistant", "weight": 1)", true);
  row(R"("role": "assistant", "weight": 0)", false);
  row(R"("role": "assistant", "weight": 0.0)", false);
  row(R"("role": "assistant", "weight": null)", true);
  row(R"("role": "assistant", "loss": false)", false);
  row(R"("role": "assistant", "train": false)", false);
  row(R"("role": "assistant", "training": false, "weight": 0)", false);
  row(R"("role": "user")", false);
  row(R"("role": "user", "weight": 1)", false);  // OpenAI's weights are the assistant's
  row(R"("role": "user", "train": true)", true);
  row(R"("role": "system", "train": false)", false);
}

void ChatTest::a_line_says_what_is_learned() {
  QFETCH(const QString, message);
  QFETCH(const bool, learned);

  const auto chat = read_chat(QStringLiteral(R"({"messages": [{%1, "content": "x"}]})").arg(message).toStdString());

  QVERIFY2(chat.ok(), chat.ok() ? "" : words_of(chat.error()).c_str());
  QCOMPARE(chat->front().is_learned(), learned);
}

void ChatTest::a_system_beside_the_messages_is_the_first_of_them_data() {
  QTest::addColumn<QString>("line");
  QTest::newRow("ShareGPT's") << R"({"system": "s", "conversations": [{"from": "gpt", "value": "a"}]})";
  QTest::newRow("Anthropic's") << R"({"system": "s", "messages": [{"role": "assistant", "content": "a"}]})";
  QTest::newRow("OpenHermes'") << R"({"system_prompt": "s", "conversations": [{"from": "gpt", "value": "a"}]})";
  QTest::newRow("said twice") << R"({"system": "s", "system_prompt": " s ", "messages": [
      {"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}]})";
}

void ChatTest::a_system_beside_the_messages_is_the_first_of_them() {
  QFETCH(const QString, line);

  const auto chat = read_chat(line.toStdString());
  const auto two = read_chat(R"({"system": "s", "messages": [{"role": "system", "content": "t"}]})");

  QVERIFY2(chat.ok(), chat.ok() ? "" : words_of(chat.error()).c_str());
  QCOMPARE(chat->size(), std::size_t{2});
  QCOMPARE((*chat)[0].role, ChatRole::kSystem);
  QCOMPARE((*chat)[0].content, std::string("s"));
  QVERIFY(!two.ok());
  QVERIFY2(words_of(two.error()).find("two different things") != std::string::npos, words_of(two.error()).c_str());
}

void ChatTest::what_is_not_learned_is_marked() {
  const auto tokenizer = read_tokenizer(chat_tokenizer_file()).value();
  const ChatTokens special = llama3_chat_tokens(*tokenizer).value();
  const auto chat = read_chat(R"({"messages": [{"role": "user", "content": "u", "train": true},
      {"role": "assistant", "content": "a", "weight": 0}, {"role": "assistant", "content": "b"}]})");

  const std::vector<TokenId> tokens = tokens_of(*tokenizer, chat_of(document_of(*chat)));

  std::string learned;
  for (const TokenId token : tokens) {
    if (token_id(token) != token) continue;
    learned += token == special.end_of_turn ? "|" : tokenizer->within_text(token);
  }
  QCOMPARE(learned, std::string("u|b|"));
}

void ChatTest::chats_survive_as_documents() {
  const std::vector<ChatMessage> chat{{ChatRole::kUser, std::string("\0\1 x", 4)},
                                      {ChatRole::kAssistant, ""},
                                      {ChatRole::kSystem, std::string(300, 'y')}};

  const std::vector<ChatMessage> again = chat_of(document_of(chat));

  QCOMPARE(again.size(), chat.size());
  for (std::size_t i = 0; i < chat.size(); ++i) {
    QCOMPARE(again[i].role, chat[i].role);
    QCOMPARE(again[i].content, chat[i].content);
  }
  const std::vector<ChatMessage> one{{ChatRole::kUser, "ab"}}, two{{ChatRole::kUser, "a"}, {ChatRole::kUser, "b"}};
  QVERIFY(document_of(one) != document_of(two));
}

// Who writes it into a question ends no turn, and begins none of the assistant's.
void ChatTest::a_special_token_in_what_somebody_says_is_text() {
  const auto tokenizer = read_tokenizer(chat_tokenizer_file()).value();
  const ChatTokens special = llama3_chat_tokens(*tokenizer).value();

  const std::vector<TokenId> tokens =
      tokens_of(*tokenizer, {{ChatRole::kUser, "x<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nyes"}});

  QCOMPARE(std::ranges::count(tokens, special.end_of_turn | kUncountedBit), 1);
  QCOMPARE(std::ranges::count(tokens, special.start_header | kUncountedBit), 1);
  QVERIFY(std::ranges::all_of(tokens, [](TokenId token) { return token_id(token) != token; }));
}

void ChatTest::a_tokenizer_without_the_special_tokens_is_refused() {
  const auto tokenizer = read_tokenizer(*read_file(kGolden / "tokenizer" / "tokenizer.json")).value();

  const auto tokens = llama3_chat_tokens(*tokenizer);

  QVERIFY(!tokens.ok());
  QVERIFY(words_of(tokens.error()).find("<|start_header_id|>, <|end_header_id|>, <|eot_id|>") != std::string::npos);
}

namespace {

struct Prepared {
  QTemporaryDir directory;
  std::filesystem::path path(const char* name) const { return directory.path().toStdString() + "/" + name; }

  Result<DatasetManifest> prepare(const char* input, std::size_t threads = 1) const {
    std::ofstream(path("tokenizer.json")) << chat_tokenizer_file();
    PrepareOptions options;
    options.tokenizer = load_dataset_tokenizer(path("tokenizer.json"), std::nullopt, "").value();
    options.read.chat = true;
    options.validation_share = 0.1;
    options.threads = threads;
    options.replace = true;
    return prepare_dataset({path(input)}, path("data"), options, {});
  }
};

}  // namespace

void ChatTest::a_dataset_of_chats_says_what_counts_data() {
  QTest::addColumn<int>("threads");
  QTest::newRow("one thread") << 1;
  QTest::newRow("three threads") << 3;
}

void ChatTest::a_dataset_of_chats_says_what_counts() {
  QFETCH(const int, threads);
  const Prepared prepared;
  constexpr int kChats = 200;
  {
    std::ofstream lines(prepared.path("chats.jsonl"));
    for (int i = 0; i < kChats + 1; ++i) {  // the last once more
      const std::string number = std::to_string(std::min(i, kChats - 1));
      const json question{{"role", "user"}, {"content", "question " + number + std::string(80, 'q')}};
      const json answer{{"role", "assistant"}, {"content", "answer " + number}};
      lines << json{{"messages", {question, answer}}}.dump() << "\n";
    }
  }

  const auto manifest = prepared.prepare("chats.jsonl", static_cast<std::size_t>(threads));

  QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
  QVERIFY(manifest->marked_labels);
  QCOMPARE(manifest->statistics->duplicates, std::uint64_t{1});
  const auto dataset = Dataset::open(prepared.path("data"));
  QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().message.c_str());
  QVERIFY(dataset->manifest().marked_labels);
  QVERIFY(dataset->verify().ok());
  const auto tokenizer = load_dataset_tokenizer(prepared.path("tokenizer.json"), std::nullopt, "").value();
  const TokenId end_of_turn = tokenizer.tokenizer->special_token("<|eot_id|>").value();
  std::int64_t documents = 0, counted_ends = 0, counted = 0;
  std::string learned;
  std::vector<std::int32_t> pair(2);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    for (std::uint64_t i = 0; i <= dataset->sequences(split, 1); ++i) {
      const bool last = i == dataset->sequences(split, 1);
      dataset->read_sequence(split, last ? i - 1 : i, 1, pair);
      const auto token = static_cast<TokenId>(pair[last ? 1 : 0]);
      documents += token == (tokenizer.end_of_text | kUncountedBit) ? 1 : 0;
      counted_ends += token == end_of_turn ? 1 : 0;
      if (token_id(token) != token) continue;
      ++counted;
      learned += token == end_of_turn ? "|" : tokenizer.tokenizer->within_text(token);
    }
  }
  QCOMPARE(documents, std::int64_t{kChats});
  QCOMPARE(counted_ends, std::int64_t{kChats});
  QVERIFY(counted > kChats);
  QVERIFY(learned.find("answer 17|") != std::string::npos);
  QVERIFY(learned.find('q') == std::string::npos);

  // The marks are no part of a token's number for whoever fetches it chunk by chunk.
  const std::filesystem::path tree = prepared.path("train.tree");
  QVERIFY(make_chunk_tree(*dataset, Split::kTrain, kMinChunkBytes, tree).ok());
  const TreeHead head = read_tree_head(tree).value();
  QVERIFY(head.index.chunks() > 2);
  const std::string file = *read_file(tree);
  const auto leaves =
      decode_tree_part(head.index, 0, as_bytes(file).subspan(head.index_bytes, head.index.chunks() * kChunkLeafBytes));
  QVERIFY2(leaves.ok(), leaves.ok() ? "" : leaves.error().message.c_str());
  const ByteView tokens = dataset->shard_file(Split::kTrain, 0).subspan(kTokenShardHeaderBytes);
  QVERIFY(check_chunk(head.index, 1, (*leaves)[1], tokens.subspan(kMinChunkBytes, kMinChunkBytes)).ok());
}

void ChatTest::other_files_are_refused() {
  const Prepared prepared;
  std::ofstream(prepared.path("chats.txt")) << std::string(20'000, 'x');
  std::ofstream(prepared.path("odd.jsonl")) << R"({"messages": [{"role": "user", "content": "x"}]})"
                                            << "\n{\"messages\": 3}\n";

  const auto text = prepared.prepare("chats.txt"), odd = prepared.prepare("odd.jsonl");

  QVERIFY(!text.ok() && !odd.ok());
  QVERIFY2(words_of(text.error()).find("chats.txt is no JSON Lines") != std::string::npos,
           words_of(text.error()).c_str());
  QVERIFY2(words_of(odd.error()).find("odd.jsonl line 2 is no chat") != std::string::npos,
           words_of(odd.error()).c_str());
}

QTEST_APPLESS_MAIN(ChatTest)
#include "chat_test.moc"
