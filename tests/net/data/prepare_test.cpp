#include <QtTest>

#include <zlib.h>

#include <QTemporaryDir>
#include <fstream>

#include "net/data/prepare.h"
#include "net/data/token_shard.h"

using namespace atl;

namespace {

using Path = std::filesystem::path;

void write(const Path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

void write_gzip(const Path& path, std::string_view content) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

// Numbered lines, so that every place in the text is different.
std::string text_of(std::size_t bytes, const std::string& word = "line") {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += word + " " + std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

// All tokens of a split, as text, with '|' for the end of text.
std::string text_in(const Path& directory, Split split) {
  const auto dataset = Dataset::open(directory);
  std::string text;
  std::vector<std::int32_t> tokens(2);
  for (std::uint64_t i = 0; i < dataset->sequences(split, 1); ++i) {
    dataset->read_sequence(split, i, 1, tokens);
    text += tokens[0] == kEndOfText ? '|' : static_cast<char>(tokens[0]);
  }
  return text;
}

}  // namespace

class PrepareTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_byte_lands_in_exactly_one_split();
  void the_same_inputs_give_the_same_bytes();
  void gzip_and_plain_give_the_same_tokens();
  void documents_of_json_lines_are_kept_apart();
  void a_directory_is_read_recursively_in_order();
  void long_text_becomes_several_shards_that_read_as_one();
  void bad_inputs_are_named_data();
  void bad_inputs_are_named();
  void only_a_dataset_is_ever_replaced();
  void a_failure_leaves_nothing_behind();
  void progress_ends_at_the_total();

 private:
  Path path(const char* name) const { return Path(directory_.path().toStdString()) / name; }
  QTemporaryDir directory_;
};

void PrepareTest::every_byte_lands_in_exactly_one_split() {
  const std::string text = text_of(200'000);
  write(path("split/in.txt"), text);

  const auto manifest = prepare_dataset({path("split/in.txt")}, path("split/out"), {}, {});

  QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
  QVERIFY(Dataset::open(path("split/out"))->verify().ok());
  const std::string held_out = text_in(path("split/out"), Split::kValidation);
  std::string train = text_in(path("split/out"), Split::kTrain);
  QCOMPARE(held_out.size(), 4000u);  // one of the 50 blocks; the last token is the end of text
  QVERIFY(text.find(held_out) != std::string::npos);
  QVERIFY(train.find(held_out.substr(0, 100)) == std::string::npos);
  train.insert(train.find('|'), held_out);
  std::erase(train, '|');
  QCOMPARE(train, text);
}

void PrepareTest::the_same_inputs_give_the_same_bytes() {
  write(path("same/in.txt"), text_of(100'000));

  const auto first = prepare_dataset({path("same/in.txt")}, path("same/a"), {}, {});
  const auto second = prepare_dataset({path("same/in.txt")}, path("same/b"), {}, {});
  const auto other_seed = prepare_dataset({path("same/in.txt")}, path("same/c"), {.seed = 3}, {});

  QCOMPARE(first->to_json(), second->to_json());
  QVERIFY(first->to_json() != other_seed->to_json());
}

void PrepareTest::gzip_and_plain_give_the_same_tokens() {
  write(path("gz/in.txt"), text_of(100'000));
  write_gzip(path("gz/in.dict.dz"), text_of(100'000));

  const auto plain = prepare_dataset({path("gz/in.txt")}, path("gz/a"), {}, {});
  const auto compressed = prepare_dataset({path("gz/in.dict.dz")}, path("gz/b"), {}, {});

  QCOMPARE(plain->to_json(), compressed->to_json());
}

void PrepareTest::documents_of_json_lines_are_kept_apart() {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += "{\"id\": 1, \"text\": \"" + std::string(1000, static_cast<char>('a' + i % 26)) + "\"}\n\n";
  write(path("jsonl/in.jsonl"), lines);

  const auto manifest = prepare_dataset({path("jsonl/in.jsonl")}, path("jsonl/out"), {}, {});

  QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
  const std::string train = text_in(path("jsonl/out"), Split::kTrain);
  QVERIFY(train.find("a|b") != std::string::npos);
  QVERIFY(train.find("ab") == std::string::npos);
}

void PrepareTest::a_directory_is_read_recursively_in_order() {
  write(path("tree/in/b.txt"), text_of(20'000, "second"));
  write(path("tree/in/a/deep.txt"), text_of(20'000, "first"));
  write(path("tree/in/ignored.bin"), std::string(100, '\0'));

  const auto tree = prepare_dataset({path("tree/in")}, path("tree/out"), {}, {});
  const auto listed = prepare_dataset({path("tree/in/a/deep.txt"), path("tree/in/b.txt")}, path("tree/out2"), {}, {});

  QVERIFY2(tree.ok(), tree.ok() ? "" : tree.error().message.c_str());
  QCOMPARE(tree->to_json(), listed->to_json());
}

void PrepareTest::long_text_becomes_several_shards_that_read_as_one() {
  write(path("shards/in.txt"), text_of(100'000));

  const auto one = prepare_dataset({path("shards/in.txt")}, path("shards/one"), {}, {});
  const auto many = prepare_dataset({path("shards/in.txt")}, path("shards/many"), {.shard_tokens = 7'001}, {});

  QCOMPARE(one->train.size(), 1u);
  QCOMPARE(many->train.size(), 14u);
  QCOMPARE(text_in(path("shards/many"), Split::kTrain), text_in(path("shards/one"), Split::kTrain));
}

void PrepareTest::bad_inputs_are_named_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QString>("says");
  std::string nul = text_of(50'000);
  nul[40'000] = '\0';
  const QByteArray compressed = [&] {
    write_gzip(path("whole.gz"), text_of(100'000));
    std::ifstream file(path("whole.gz"), std::ios::binary);
    return QByteArray::fromStdString(std::string(std::istreambuf_iterator<char>(file), {}));
  }();
  QTest::newRow("NUL byte") << "nul.txt" << QByteArray::fromStdString(nul) << "byte 40000 is 0";
  QTest::newRow("empty") << "empty.txt" << QByteArray() << "0 bytes of text";
  QTest::newRow("too short") << "short.txt" << QByteArray("hello") << "5 bytes of text";
  QTest::newRow("gzip cut short") << "cut.gz" << compressed.left(compressed.size() / 2) << "damaged gzip";
  QTest::newRow("gzip damaged") << "bad.gz" << QByteArray(compressed).replace(5'000, 4, "oops") << "damaged gzip";
  QTest::newRow("no JSON") << "x.jsonl" << QByteArray("{\"text\": \"a\"}\nhello\n") << "line 2";
  QTest::newRow("JSON without text") << "y.jsonl" << QByteArray("{\"content\": \"a\"}") << "line 1";
}

void PrepareTest::bad_inputs_are_named() {
  QFETCH(const QString, name);
  QFETCH(const QByteArray, content);
  QFETCH(const QString, says);
  const Path input = path("bad") / name.toStdString();
  write(input, content.toStdString());

  const auto result = prepare_dataset({input}, path("bad/out"), {}, {});
  const auto missing = prepare_dataset({path("no such file")}, path("bad/out"), {}, {});
  const auto nothing_inside = prepare_dataset({path("bad-empty-directory")}, path("bad/out"), {}, {});

  QVERIFY(!result.ok());
  QVERIFY2(QString::fromStdString(result.error().message).contains(says), result.error().message.c_str());
  QCOMPARE(missing.error().code, ErrorCode::kNotFound);
  QCOMPARE(nothing_inside.error().code, ErrorCode::kNotFound);
  QVERIFY(!std::filesystem::exists(path("bad/out")));
}

void PrepareTest::only_a_dataset_is_ever_replaced() {
  write(path("force/in.txt"), text_of(50'000));
  write(path("force/precious/thesis.tex"), "years of work");
  QVERIFY(prepare_dataset({path("force/in.txt")}, path("force/old"), {}, {}).ok());

  const auto foreign = prepare_dataset({path("force/in.txt")}, path("force/precious"), {.replace = true}, {});
  const auto without_force = prepare_dataset({path("force/in.txt")}, path("force/old"), {}, {});
  const auto with_force = prepare_dataset({path("force/in.txt")}, path("force/old/"), {.seed = 3, .replace = true}, {});

  QVERIFY(!foreign.ok());
  QVERIFY(std::filesystem::exists(path("force/precious/thesis.tex")));
  QVERIFY(without_force.error().message.find("--force") != std::string::npos);
  QVERIFY2(with_force.ok(), with_force.ok() ? "" : with_force.error().message.c_str());
}

void PrepareTest::a_failure_leaves_nothing_behind() {
  write(path("fail/in.txt"), text_of(50'000));
  std::filesystem::create_directories(path("fail/locked"));
  // A file where a directory must be: fails for root as well.
  write(path("fail/file"), "");

  const auto result = prepare_dataset({path("fail/in.txt")}, path("fail/file/out"), {}, {});

  QVERIFY(!result.ok());
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path("fail"))) ++entries;
  QCOMPARE(entries, 3);
}

void PrepareTest::progress_ends_at_the_total() {
  write(path("progress/in.txt"), text_of(50'000));
  std::uint64_t last_done = 0, last_total = 0;

  const auto manifest =
      prepare_dataset({path("progress/in.txt")}, path("progress/out"), {},
                      [&](std::uint64_t done, std::uint64_t total) { last_done = done, last_total = total; });

  QVERIFY(manifest.ok());
  QCOMPARE(last_total, 50'000u);
  QCOMPARE(last_done, last_total);
}

QTEST_APPLESS_MAIN(PrepareTest)
#include "prepare_test.moc"
