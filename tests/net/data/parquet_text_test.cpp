// Parquet's text columns: what is read, and that no file ends more than its reader.
#include <QTemporaryDir>
#include <QtTest>
#include <cstring>
#include <fstream>

#include "net/data/parquet_text.h"
#include "net/data/prepare.h"

using namespace atl;

namespace {

using Path = std::filesystem::path;

const Path kGolden = ATOLL_TEST_DATA_DIR "/data";  // tests/golden/make_parquet.py

void write(const Path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string bytes_of(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Numbered lines, so that every place in the text is different.
std::string text_of(std::size_t bytes, const std::string& word = "line") {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += word + " " + std::to_string(i) + "\n";
  return text;
}

std::string body(int i) {
  return "document " + std::to_string(i) + " " +
         std::string(static_cast<std::size_t>(100 + i % 700), static_cast<char>('a' + i % 26));
}

std::string json_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "{\"text\": \"" + body(i) + "\"}\n";
  return lines;
}

std::string said(const Result<DatasetManifest>& made) { return made.ok() ? "it was taken" : made.error().message; }

bool is_there(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// All rows of it; empty where it cannot be read, which `error` says.
std::size_t rows_in(const Path& file, const char* column, std::string& error) {
  const TextFile text{file, TextFormat::kParquet, 0, 0, 0};
  std::size_t rows = 0;
  auto blocks = open_parquet_text(text, {.field = column}, nullptr);
  if (!blocks.ok()) error = blocks.error().message;
  while (blocks.ok()) {
    const auto block = (*blocks)->next();
    if (!block.ok()) error = block.error().message;
    if (!block.ok() || !*block) break;
    rows += (*block)->ends.size();
  }
  return rows;
}

}  // namespace

class ParquetTextTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cleanup() { qunsetenv("ATOLL_PARQUET"); }
  void parquet_text_is_read_of_every_type_data();
  void parquet_text_is_read_of_every_type();
  void parquet_rows_that_are_no_utf8_are_named();
  void altered_parquet_files_end_with_a_word_or_with_rows();
  void a_parquet_reader_that_ends_is_an_error_data();
  void a_parquet_reader_that_ends_is_an_error();
  void an_interrupt_ends_the_wait_for_a_parquet_reader();

 private:
  Path path(const std::string& name) const { return Path(directory_.path().toStdString()) / name; }
  Result<DatasetManifest> prepare(const std::vector<Path>& inputs, const ReadOptions& read = {}) {
    return prepare_dataset(inputs, path("out" + std::to_string(outputs_++)), {.read = read}, {});
  }
  // The program that is started for any.parquet is this script.
  void be_reader(const std::string& script) {
    write(path("any.parquet"), "PAR1");
    write(path("reader.sh"), "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path("reader.sh"), std::filesystem::perms::owner_all);
    qputenv("ATOLL_PARQUET", QByteArray::fromStdString(path("reader.sh").string()));
  }

  QTemporaryDir directory_;
  int outputs_ = 0;
};

void ParquetTextTest::parquet_text_is_read_of_every_type_data() {
  QTest::addColumn<QString>("column");
  for (const char* column : {"string", "large_string", "string_view", "binary", "large_binary", "binary_view",
                             "dictionary", "json", "marked"}) {
    QTest::newRow(column) << column;
  }
}

void ParquetTextTest::parquet_text_is_read_of_every_type() {
  QFETCH(const QString, column);
  if (!reads_parquet()) QSKIP("this build reads no Parquet: run installer/arrow.sh");
  write(path("kinds.jsonl"), json_lines(60));
  // More of the same, so that there is text enough.
  write(path("more.txt"), text_of(20'000));

  const auto lines = prepare({path("kinds.jsonl"), path("more.txt")});
  const auto made = prepare({kGolden / "kinds.parquet", path("more.txt")}, {.field = column.toStdString()});

  QVERIFY2(made.ok(), said(made).c_str());
  QVERIFY2(lines.ok(), said(lines).c_str());
  QCOMPARE(made->train.front().sha256, lines->train.front().sha256);
  QCOMPARE(made->validation.front().sha256, lines->validation.front().sha256);
  QCOMPARE(made->statistics->without_text, 60u);
}

void ParquetTextTest::parquet_rows_that_are_no_utf8_are_named() {
  if (!reads_parquet()) QSKIP("this build reads no Parquet: run installer/arrow.sh");

  const auto latin = prepare({kGolden / "kinds.parquet"}, {.field = "latin"});
  const auto nothing = prepare({kGolden / "kinds.parquet"}, {.field = "nothing"});
  const auto fixed = prepare({kGolden / "kinds.parquet"}, {.field = "fixed"});

  QVERIFY2(is_there(said(latin), "kinds.parquet row 1 is no UTF-8, as text of Parquet is: byte 115 of it is 0xe9"),
           said(latin).c_str());
  QVERIFY2(is_there(said(nothing), "120 documents have none"), said(nothing).c_str());
  QVERIFY2(is_there(said(fixed), "6000 bytes of text are too few"), said(fixed).c_str());
}

// An altered file gives its rows, or says what is wrong with it, and ends nothing.
void ParquetTextTest::altered_parquet_files_end_with_a_word_or_with_rows() {
  if (!reads_parquet()) QSKIP("this build reads no Parquet: run installer/arrow.sh");
  struct Alteration {
    std::size_t at;
    unsigned char byte;
    const char* says;
  };
  // Codes that are not in their dictionary, for which Arrow aborts where it is asked for them; and a wrong count.
  const Alteration found[] = {{17'741, 255, "code 1021 is not in its dictionary of 601"},
                              {18'545, 255, "code 961 is not in its dictionary of 601"},
                              {18'875, 7, "code 789 is not in its dictionary of 601"},
                              {19'193, 29, "it has 1800 rows and says that it has"}};
  const std::string flat = bytes_of(kGolden / "flat.parquet");
  for (const Alteration& alteration : found) {
    std::string altered = flat, error;
    altered[alteration.at] = static_cast<char>(alteration.byte);
    write(path("altered.parquet"), altered);
    rows_in(path("altered.parquet"), "text", error);
    QVERIFY2(is_there(error, "altered.parquet cannot be read") && is_there(error, alteration.says), error.c_str());
  }

  // Lengths, counts and places, which the footer holds, first of all.
  std::uint64_t random = 43;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((random >> 33) % below);
  };
  int refused = 0;
  for (int i = 0; i < 90; ++i) {
    const bool is_flat = i % 3 == 0, in_footer = i % 3 != 2;
    std::string altered = is_flat ? flat : bytes_of(kGolden / (i % 3 == 1 ? "nested.parquet" : "kinds.parquet"));
    std::uint32_t footer = 0;
    std::memcpy(&footer, altered.data() + altered.size() - 8, sizeof(footer));
    for (std::size_t changes = 1 + next(3); changes > 0; --changes) {
      const std::size_t at = in_footer ? altered.size() - 1 - next(footer + 8) : next(altered.size());
      altered[at] = static_cast<char>(next(2) == 0 ? 0xff : next(256));
    }
    write(path("altered.parquet"), altered);
    std::string error;
    const std::size_t rows = rows_in(path("altered.parquet"),
                                     is_flat      ? "text"
                                     : i % 3 == 1 ? "doc.body"
                                                  : "string",
                                     error);
    QVERIFY2(rows > 0 || is_there(error, "altered.parquet"), error.c_str());
    refused += error.empty() ? 0 : 1;
  }
  QVERIFY(refused > 20);
}

void ParquetTextTest::a_parquet_reader_that_ends_is_an_error_data() {
  QTest::addColumn<QString>("does");
  QTest::addColumn<QString>("says");
  QTest::addColumn<int>("code");
  const int corrupt = static_cast<int>(ErrorCode::kCorrupt), io = static_cast<int>(ErrorCode::kIo),
            wrong = static_cast<int>(ErrorCode::kInvalidArgument), not_found = static_cast<int>(ErrorCode::kNotFound);
  QTest::newRow("aborts") << "printf '\\003\\000\\000\\000abc'; kill -ABRT $$"
                          << "cannot be read behind row 1: Apache Arrow ended with signal 6" << corrupt;
  QTest::newRow("crashes at once") << "kill -SEGV $$"
                                   << "behind row 0: Apache Arrow ended with signal 11" << corrupt;
  QTest::newRow("is not loaded") << "exit 127"
                                << "cannot be started, for a library that it needs is missing" << not_found;
  QTest::newRow("is killed") << "kill -KILL $$"
                             << "was killed behind row 0, as the system does where memory is short" << io;
  QTest::newRow("ends in the middle") << "printf '\\377\\000'"
                                      << "Apache Arrow ended with status 0" << corrupt;
  QTest::newRow("says a length that lies") << "printf '\\360\\377\\377\\377'; sleep 60"
                                           << "row 1 is longer than 64 MiB" << wrong;
  QTest::newRow("fails with endless words") << "printf '\\375\\377\\377\\377\\000\\000\\000\\100'; yes | head -c 9000"
                                            << "cannot be read: y" << wrong;
}

void ParquetTextTest::a_parquet_reader_that_ends_is_an_error() {
  QFETCH(const QString, does);
  QFETCH(const QString, says);
  QFETCH(const int, code);
  be_reader(does.toStdString());

  const auto made = prepare({path("any.parquet")});

  QVERIFY(!made.ok());
  QVERIFY2(is_there(said(made), "any.parquet") && is_there(said(made), says.toStdString()), said(made).c_str());
  QCOMPARE(static_cast<int>(made.error().code), code);
}

void ParquetTextTest::an_interrupt_ends_the_wait_for_a_parquet_reader() {
  be_reader("exec sleep 600");
  AbortSignal interrupt;
  const auto blocks = open_parquet_text({path("any.parquet"), TextFormat::kParquet, 0, 0, 0}, {}, &interrupt);
  QVERIFY2(blocks.ok(), blocks.ok() ? "" : blocks.error().message.c_str());
  interrupt.raise("test");

  const auto block = (*blocks)->next();

  QVERIFY(!block.ok());
  QCOMPARE(block.error().code, ErrorCode::kAborted);
}

QTEST_APPLESS_MAIN(ParquetTextTest)
#include "parquet_text_test.moc"
