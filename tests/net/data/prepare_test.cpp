#include <QtTest>

#include <zlib.h>
#include <zstd.h>

#include <QTemporaryDir>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "net/data/parquet_text.h"
#include "net/data/prepare.h"
#include "net/data/text_input.h"
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

void write_zstd(const Path& path, std::string_view content) {
  std::string compressed(ZSTD_compressBound(content.size()), '\0');
  compressed.resize(ZSTD_compress(compressed.data(), compressed.size(), content.data(), content.size(), 3));
  write(path, compressed);
}

// As Megatron-LM or datatrove write them, by the file's name. `dtype`: Megatron's code.
void write_tokens(const Path& file, const std::vector<std::vector<std::int64_t>>& documents, int dtype) {
  const std::size_t width = dtype == 8 ? 2 : dtype == 4 ? 4 : 8;
  std::string tokens, lengths, begins, starts, ends;
  const auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  std::uint64_t sequences = 0, total = 0;
  put(starts, std::uint64_t{0});
  for (const auto& document : documents) {
    // Of two sequences each.
    for (const auto part :
         {std::span(document).first(document.size() / 2), std::span(document).subspan(document.size() / 2)}) {
      put(begins, static_cast<std::uint64_t>(tokens.size()));
      put(lengths, static_cast<std::int32_t>(part.size()));
      for (const std::int64_t token : part) tokens.append(reinterpret_cast<const char*>(&token), width);
    }
    sequences += 2;
    total += document.size();
    put(starts, sequences);
    put(ends, total);
  }
  write(file, tokens);
  if (file.extension() == ".ds") return write(token_index_of(file), ends);
  std::string header("MMIDIDX\0\0", 9);
  put(header, std::uint64_t{1});
  put(header, static_cast<std::uint8_t>(dtype));
  put(header, sequences);
  put(header, static_cast<std::uint64_t>(documents.size() + 1));
  write(token_index_of(file), header + lengths + begins + starts);
}

// Documents 0 to count - 1, each different.
std::string json_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "{\"id\": " + std::to_string(i) + ", \"doc\": {\"body\": \"document " + std::to_string(i) + " " +
             std::string(static_cast<std::size_t>(100 + i % 700), static_cast<char>('a' + i % 26)) + "\"}}\n";
  }
  return lines;
}

std::string bytes_of(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Numbered lines, so that every place in the text is different.
std::string text_of(std::size_t bytes, const std::string& word = "line") {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += word + " " + std::to_string(i) + "\n";
  text.resize(text.rfind('\n', bytes - 1) + 1);  // whole lines
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
  void compressed_and_plain_give_the_same_tokens();
  void the_number_of_threads_changes_no_byte();
  void a_preparation_that_was_cut_off_goes_on_to_the_same_bytes();
  void unfinished_work_of_other_inputs_is_not_mixed_in();
  void duplicates_are_left_out_whatever_the_memory();
  void a_document_is_in_the_same_split_whatever_the_order_of_files();
  void documents_of_json_lines_are_kept_apart();
  void tokens_of_others_become_the_documents_that_they_were_data();
  void tokens_of_others_become_the_documents_that_they_were();
  void tokens_of_others_that_cannot_be_are_named_data();
  void tokens_of_others_that_cannot_be_are_named();
  void parquet_gives_the_documents_of_json_lines();
  void what_parquet_cannot_give_is_named();
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
  // Pieces come in their order, and lines are numbered: merged by number they are the text again.
  std::map<int, std::string> lines;
  std::size_t held_out = 0;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    std::string part = text_in(path("split/out"), split);
    if (split == Split::kValidation) held_out = part.size();
    std::replace(part.begin(), part.end(), '|', ' ');
    std::istringstream words(part);
    for (std::string word, number; words >> word >> number;) QVERIFY(lines.emplace(std::stoi(number), word).second);
  }
  QCOMPARE(static_cast<std::ptrdiff_t>(lines.size()), std::count(text.begin(), text.end(), '\n'));
  QVERIFY(held_out >= 4000u && held_out < 30'000u);  // a fiftieth, and at most one piece more
}

void PrepareTest::the_same_inputs_give_the_same_bytes() {
  write(path("same/in.txt"), text_of(100'000));

  const auto first = prepare_dataset({path("same/in.txt")}, path("same/a"), {}, {});
  const auto second = prepare_dataset({path("same/in.txt")}, path("same/b"), {}, {});
  const auto other_seed = prepare_dataset({path("same/in.txt")}, path("same/c"), {.seed = 3}, {});

  QCOMPARE(first->to_json(), second->to_json());
  QVERIFY(first->to_json() != other_seed->to_json());
}

void PrepareTest::compressed_and_plain_give_the_same_tokens() {
  const std::string text = text_of(100'000);
  write(path("gz/in.txt"), text);
  write_gzip(path("gz/in.dict.dz"), text);
  write_zstd(path("gz/whole.zst"), text);
  write_zstd(path("gz/a.zst"), text.substr(0, 60'000));
  write_zstd(path("gz/b.zst"), text.substr(60'000));
  write(path("gz/frames.zst"), bytes_of(path("gz/a.zst")) + bytes_of(path("gz/b.zst")));

  const auto plain = prepare_dataset({path("gz/in.txt")}, path("gz/out"), {}, {});

  for (const char* file : {"gz/in.dict.dz", "gz/whole.zst", "gz/frames.zst"}) {
    const auto compressed = prepare_dataset({path(file)}, path((std::string(file) + ".out").c_str()), {}, {});
    QVERIFY2(compressed.ok(), compressed.ok() ? "" : compressed.error().message.c_str());
    QCOMPARE(compressed->train.front().sha256, plain->train.front().sha256);
    QCOMPARE(compressed->validation.front().sha256, plain->validation.front().sha256);
  }
}

void PrepareTest::the_number_of_threads_changes_no_byte() {
  write(path("threads/in/a.jsonl"), json_lines(3000));
  write_zstd(path("threads/in/b.jsonl.zst"), json_lines(4000));
  PrepareOptions options{.read = {.field = "doc.body", .block_bytes = 5'000}, .shard_tokens = 100'000};
  options.threads = 1;
  const auto one = prepare_dataset({path("threads/in")}, path("threads/one"), options, {});
  QVERIFY2(one.ok(), one.ok() ? "" : one.error().message.c_str());

  for (const std::size_t threads : {2u, 7u}) {
    options.threads = threads;
    options.replace = true;
    const auto many = prepare_dataset({path("threads/in")}, path("threads/many"), options, {});
    QVERIFY2(many.ok(), many.ok() ? "" : many.error().message.c_str());
    QCOMPARE(many->to_json(), one->to_json());
  }
  QCOMPARE(one->statistics->duplicates, 3000u);
  QVERIFY(Dataset::open(path("threads/many"))->verify().ok());
}

// Interrupted each time after some blocks more than before, as a kill would: what was not flushed is cut off.
void PrepareTest::a_preparation_that_was_cut_off_goes_on_to_the_same_bytes() {
  write(path("cut/in/a.jsonl"), json_lines(2000));
  write(path("cut/in/b.txt"), text_of(300'000));
  PrepareOptions options{.read = {.field = "doc.body", .block_bytes = 20'000}, .shard_tokens = 90'001};
  options.threads = 2;
  options.checkpoint_every = std::chrono::milliseconds(0);
  const auto whole = prepare_dataset({path("cut/in")}, path("cut/whole"), options, {});
  QVERIFY2(whole.ok(), whole.ok() ? "" : whole.error().message.c_str());

  int interrupted = 0;
  std::uint64_t farthest = 0;
  for (int call = 0; call < 200; ++call) {
    AbortSignal interrupt;
    options.interrupt = &interrupt;
    int seen = 0;
    const auto result = prepare_dataset({path("cut/in")}, path("cut/parts"), options, [&](const PrepareProgress& now) {
      if (now.stage == PrepareStage::kWriting) farthest = std::max(farthest, now.begun_bytes);
      if (++seen == 4) interrupt.raise("test");
    });
    if (result.ok()) {
      QVERIFY(interrupted >= 10);
      QVERIFY(farthest > 0);
      QCOMPARE(result->to_json(), whole->to_json());
      QVERIFY(Dataset::open(path("cut/parts"))->verify().ok());
      QVERIFY(!std::filesystem::exists(path("cut/parts.preparing")));
      return;
    }
    QCOMPARE(result.error().code, ErrorCode::kAborted);
    ++interrupted;
  }
  QFAIL("it never came to its end");
}

void PrepareTest::unfinished_work_of_other_inputs_is_not_mixed_in() {
  write(path("other/in.txt"), text_of(100'000));
  AbortSignal interrupt;
  PrepareOptions options{.read = {.block_bytes = 20'000}};
  options.interrupt = &interrupt;
  options.checkpoint_every = std::chrono::milliseconds(0);
  const auto cut = prepare_dataset({path("other/in.txt")}, path("other/out"), options,
                                   [&](const PrepareProgress&) { interrupt.raise("test"); });
  QCOMPARE(cut.error().code, ErrorCode::kAborted);
  options.interrupt = nullptr;
  options.seed = 9;

  const auto mixed = prepare_dataset({path("other/in.txt")}, path("other/out"), options, {});
  options.restart = true;
  const auto anew = prepare_dataset({path("other/in.txt")}, path("other/out"), options, {});

  QCOMPARE(mixed.error().code, ErrorCode::kConflict);
  QVERIFY(mixed.error().message.find("--restart") != std::string::npos);
  QVERIFY2(anew.ok(), anew.ok() ? "" : anew.error().message.c_str());
}

void PrepareTest::duplicates_are_left_out_whatever_the_memory() {
  write(path("twice/a.jsonl"), json_lines(500));
  write(path("twice/b.jsonl"), json_lines(600));
  write(path("twice/once.jsonl"), json_lines(600));
  const PrepareOptions options{.read = {.field = "doc.body"}};

  const auto once = prepare_dataset({path("twice/once.jsonl")}, path("twice/x"), options, {});
  const auto twice = prepare_dataset({path("twice/a.jsonl"), path("twice/b.jsonl")}, path("twice/y"), options, {});
  PrepareOptions kept = options;
  kept.keep_duplicates = true;
  const auto all = prepare_dataset({path("twice/a.jsonl"), path("twice/b.jsonl")}, path("twice/z"), kept, {});

  QVERIFY2(twice.ok(), twice.ok() ? "" : twice.error().message.c_str());
  QCOMPARE(twice->statistics->duplicates, 500u);
  QCOMPARE(twice->train.front().sha256, once->train.front().sha256);
  QCOMPARE(all->statistics->train.documents + all->statistics->validation.documents, 1100u);
}

void PrepareTest::a_document_is_in_the_same_split_whatever_the_order_of_files() {
  write(path("order/a.jsonl"), json_lines(300));
  write(path("order/b.txt"), text_of(60'000));
  const PrepareOptions options{.read = {.field = "doc.body"}, .validation_share = 0.1};
  const auto documents = [&](const char* name) {
    const std::string text = text_in(path(name), Split::kValidation);
    const QStringList all = QString::fromStdString(text).split('|');
    return QSet<QString>(all.begin(), all.end());
  };

  QVERIFY(prepare_dataset({path("order/a.jsonl"), path("order/b.txt")}, path("order/ab"), options, {}).ok());
  QVERIFY(prepare_dataset({path("order/b.txt"), path("order/a.jsonl")}, path("order/ba"), options, {}).ok());

  // The last document has no end of text in what is read here, whose last token is a label alone.
  QVERIFY((documents("order/ab") - documents("order/ba")).size() <= 1);
  QVERIFY(documents("order/ab").size() > 20);
}

void PrepareTest::documents_of_json_lines_are_kept_apart() {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += "{\"id\": 1, \"text\": \"" +
             std::string(static_cast<std::size_t>(1000 + i), static_cast<char>('a' + i % 26)) + "\"}\n\n";
  write(path("jsonl/in.jsonl"), lines);

  const auto manifest = prepare_dataset({path("jsonl/in.jsonl")}, path("jsonl/out"), {}, {});

  QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
  const std::string train = text_in(path("jsonl/out"), Split::kTrain);
  QVERIFY(std::count(train.begin(), train.end(), '|') > 30);
  for (std::size_t i = 1; i < train.size(); ++i) {
    QVERIFY(train[i - 1] == train[i] || train[i - 1] == '|' || train[i] == '|');
  }
}

void PrepareTest::tokens_of_others_become_the_documents_that_they_were_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<int>("dtype");
  QTest::addColumn<bool>("ends");
  QTest::newRow("Megatron, uint16") << "tokens.bin" << 8 << true;
  QTest::newRow("Megatron, int32, without ends") << "tokens.bin" << 4 << false;
  QTest::newRow("Megatron, int64") << "tokens.bin" << 5 << true;
  QTest::newRow("datatrove, two bytes") << "tokens.ds" << 8 << true;
  QTest::newRow("datatrove, four bytes, without ends") << "tokens.ds" << 4 << false;
}

void PrepareTest::tokens_of_others_become_the_documents_that_they_were() {
  QFETCH(const QString, file);
  QFETCH(const int, dtype);
  QFETCH(const bool, ends);
  std::multiset<std::string> wanted;
  std::vector<std::vector<std::int64_t>> documents;
  for (int i = 0; i < 300; ++i) {
    const std::string text = "document " + std::to_string(i) + std::string(static_cast<std::size_t>(100 + i), 'x');
    wanted.insert(text);
    documents.emplace_back(text.begin(), text.end());
    if (ends) documents.back().push_back(kEndOfText);
  }
  const Path place = path("given") / QTest::currentDataTag();
  write_tokens(place / file.toStdString(), documents, dtype);

  const auto made = prepare_dataset({place}, place / "out", {.read = {.block_bytes = 5'000}}, {});

  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  std::multiset<std::string> got;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    std::istringstream text(text_in(place / "out", split));
    for (std::string one; std::getline(text, one, '|');) got.insert(one);
  }
  QCOMPARE(got.size(), wanted.size());
  QVERIFY(got == wanted);
  std::uint64_t text_bytes = 0;
  for (const std::string& text : wanted) text_bytes += text.size();
  QCOMPARE(made->statistics->train.text_bytes + made->statistics->validation.text_bytes, text_bytes);
}

void PrepareTest::tokens_of_others_that_cannot_be_are_named_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<QString>("change");
  QTest::addColumn<QString>("says");
  QTest::newRow("no index") << "tokens.bin"
                            << "remove"
                            << "tokens.idx, which is not there";
  QTest::newRow("no index of datatrove") << "tokens.ds"
                                         << "remove"
                                         << "tokens.ds.index, which is not there";
  QTest::newRow("index cut short") << "tokens.bin"
                                   << "cut"
                                   << "tokens.idx does not fit";
  QTest::newRow("index of datatrove cut short") << "tokens.ds"
                                                << "cut"
                                                << "tokens.ds.index does not fit";
  QTest::newRow("tokens cut short") << "tokens.bin"
                                    << "cut tokens"
                                    << "lies behind its end";
  QTest::newRow("tokens of datatrove cut short") << "tokens.ds"
                                                 << "cut tokens"
                                                 << "tokens.ds.index does not fit";
  QTest::newRow("another tokenizer") << "tokens.bin"
                                     << "none"
                                     << "holds token 300, and the tokenizer's vocabulary has 257";
}

void PrepareTest::tokens_of_others_that_cannot_be_are_named() {
  QFETCH(const QString, file);
  QFETCH(const QString, change);
  QFETCH(const QString, says);
  const Path place = path("wrong") / QTest::currentDataTag();
  const Path tokens = place / file.toStdString();
  std::vector<std::vector<std::int64_t>> documents(200, std::vector<std::int64_t>(100, 300));
  for (std::size_t i = 0; i < documents.size(); ++i) documents[i][50] = static_cast<std::int64_t>(i);
  write_tokens(tokens, documents, 4);
  const Path index = token_index_of(tokens);
  if (change == "remove") std::filesystem::remove(index);
  if (change == "cut") std::filesystem::resize_file(index, std::filesystem::file_size(index) - 12);
  if (change == "cut tokens") std::filesystem::resize_file(tokens, std::filesystem::file_size(tokens) - 400);

  const auto made = prepare_dataset({tokens}, place / "out", {}, {});

  QVERIFY(!made.ok());
  QVERIFY2(QString::fromStdString(made.error().message).contains(says), made.error().message.c_str());
  QVERIFY(!std::filesystem::exists(place / "out"));
}

// tests/golden/make_parquet.py
void PrepareTest::parquet_gives_the_documents_of_json_lines() {
  if (!reads_parquet()) QSKIP("this build reads no Parquet: run installer/arrow.sh");
  write(path("parquet/lines.jsonl"), json_lines(600));
  const Path golden = ATOLL_TEST_DATA_DIR "/data";
  PrepareOptions options{.read = {.field = "doc.body"}};
  const auto lines = prepare_dataset({path("parquet/lines.jsonl")}, path("parquet/lines"), options, {});
  const auto nested = prepare_dataset({golden / "nested.parquet"}, path("parquet/nested"), options, {});
  options.read.field = "text";
  options.threads = 2;
  const auto flat = prepare_dataset({golden / "flat.parquet"}, path("parquet/flat"), options, {});

  QVERIFY(lines.ok());
  for (const auto* made : {&nested, &flat}) {
    QVERIFY2(made->ok(), made->ok() ? "" : made->error().message.c_str());
    QCOMPARE((*made)->train.at(0).sha256, lines->train.at(0).sha256);
    QCOMPARE((*made)->validation.at(0).sha256, lines->validation.at(0).sha256);
    QCOMPARE((*made)->statistics->train.documents, lines->statistics->train.documents);
  }
}

void PrepareTest::what_parquet_cannot_give_is_named() {
  if (!reads_parquet()) QSKIP("this build reads no Parquet: run installer/arrow.sh");
  const Path golden = ATOLL_TEST_DATA_DIR "/data";
  const auto refusal = [&](const Path& file, const std::string& field) {
    const auto made = prepare_dataset({file}, path("no-parquet"), {.read = {.field = field}}, {});
    return made.ok() ? std::string() : made.error().message;
  };
  const std::string whole = bytes_of(golden / "nested.parquet");
  write(path("parquet-bad/cut.parquet"), whole.substr(0, whole.size() / 2));
  std::string wrong = whole;
  wrong.replace(wrong.size() / 3, 8, "oh, oops");
  write(path("parquet-bad/wrong.parquet"), wrong);

  const auto says = [](const std::string& message, const char* words) {
    return message.find(words) != std::string::npos;
  };
  QVERIFY(says(refusal(golden / "nested.parquet", "doc.title"), "it has id, doc.body, doc.length"));
  QVERIFY(says(refusal(golden / "nested.parquet", "id"), "no text"));
  QVERIFY(says(refusal(path("parquet-bad/cut.parquet"), "doc.body"), "cut.parquet cannot be read"));
  QVERIFY(says(refusal(path("parquet-bad/wrong.parquet"), "doc.body"), "wrong.parquet cannot be read"));
  QVERIFY(!std::filesystem::exists(path("no-parquet")));
}

void PrepareTest::a_directory_is_read_recursively_in_order() {
  write(path("tree/in/b.txt"), text_of(20'000, "second"));
  write(path("tree/in/a/deep.txt"), text_of(20'000, "first"));
  write(path("tree/in/ignored.bin"), std::string(100, '\0'));

  const auto tree = prepare_dataset({path("tree/in")}, path("tree/out"), {}, {});
  const auto listed = prepare_dataset({path("tree/in/a/deep.txt"), path("tree/in/b.txt")}, path("tree/out2"), {}, {});

  QVERIFY2(tree.ok(), tree.ok() ? "" : tree.error().message.c_str());
  QCOMPARE(tree->train.front().sha256, listed->train.front().sha256);
}

void PrepareTest::long_text_becomes_several_shards_that_read_as_one() {
  write(path("shards/in.txt"), text_of(100'000));

  const auto one = prepare_dataset({path("shards/in.txt")}, path("shards/one"), {}, {});
  const auto many = prepare_dataset({path("shards/in.txt")}, path("shards/many"), {.shard_tokens = 7'001}, {});

  QCOMPARE(one->train.size(), 1u);
  QVERIFY(many->train.size() >= 13u);
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
  QTest::newRow("zstd cut short") << "cut.zst" << QByteArray("\x28\xb5\x2f\xfd\x24", 5) << "damaged zstd";
  QTest::newRow("no Parquet") << "x.parquet" << QByteArray("hello, hello, hello") << "x.parquet";
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
                      [&](const PrepareProgress& now) { last_done = now.done_bytes, last_total = now.total_bytes; });

  QVERIFY(manifest.ok());
  QCOMPARE(last_total, 50'000u);
  QCOMPARE(last_done, last_total);
}

QTEST_APPLESS_MAIN(PrepareTest)
#include "prepare_test.moc"
