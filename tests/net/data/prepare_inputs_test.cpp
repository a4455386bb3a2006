// What `atoll data prepare` takes for text, and what it refuses or leaves out, and says.
#include <zdict.h>
#include <zlib.h>
#include <zstd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/data/documents.h"
#include "net/data/prepare.h"
#include "net/data/text_input.h"

using namespace atl;

namespace {

using Path = std::filesystem::path;
using namespace std::string_literals;

void write(const Path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string zstd(std::string_view content) {
  std::string compressed(ZSTD_compressBound(content.size()), '\0');
  compressed.resize(ZSTD_compress(compressed.data(), compressed.size(), content.data(), content.size(), 3));
  return compressed;
}

// As pzstd has one before each frame: what it says is the frame's size.
std::string skippable(std::string_view content, char kind = 0) {
  const auto size = static_cast<std::uint32_t>(content.size());
  return {static_cast<char>(0x50 + kind) + "\x2a\x4d\x18"s + std::string(reinterpret_cast<const char*>(&size), 4) +
          std::string(content)};
}

std::string pzstd_frame(std::string_view content) {
  const std::string frame = zstd(content);
  const auto size = static_cast<std::uint32_t>(frame.size());
  return skippable({reinterpret_cast<const char*>(&size), 4}) + frame;
}

std::string gzip(std::string_view content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string compressed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
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

// Of ASCII, or below U+0100.
std::string utf16(std::u16string_view text, bool big) {
  std::string bytes;
  for (const char16_t unit : text) {
    const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xff);
    bytes += big ? high : low;
    bytes += big ? low : high;
  }
  return bytes;
}
std::u16string wide(std::string_view text) { return {text.begin(), text.end()}; }

std::string said(const Result<DatasetManifest>& made) { return made.ok() ? "it was taken" : made.error().message; }

bool is_there(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

class PrepareInputsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void whatever_zstd_and_gzip_write_is_read_data();
  void whatever_zstd_and_gzip_write_is_read();
  void zstd_with_a_dictionary_is_refused_as_that();
  void compressed_text_that_is_cut_anywhere_is_refused();
  void what_others_compress_or_pack_is_refused_by_name_data();
  void what_others_compress_or_pack_is_refused_by_name();
  void bytes_that_are_no_utf8_are_refused_with_their_place_data();
  void bytes_that_are_no_utf8_are_refused_with_their_place();
  void text_in_a_named_encoding_gives_the_tokens_of_utf8_data();
  void text_in_a_named_encoding_gives_the_tokens_of_utf8();
  void an_encoding_that_is_not_known_or_not_the_files_is_refused();
  void byte_order_marks_are_no_text();
  void a_line_is_read_as_python_reads_it_data();
  void a_line_is_read_as_python_reads_it();
  void what_stands_beside_a_chat_may_be_no_number();
  void documents_without_text_are_left_out_and_counted();
  void a_directory_gives_what_is_meant_and_says_what_it_leaves_out();
  void a_link_beside_its_file_is_left_out();
  void a_token_beyond_the_vocabulary_leaves_nothing_behind();

 private:
  Path path(const std::string& name) const { return Path(directory_.path().toStdString()) / name; }
  Result<DatasetManifest> prepare(const std::vector<Path>& inputs, const ReadOptions& read = {}) {
    return prepare_dataset(inputs, path("out" + std::to_string(outputs_++)), {.read = read}, {});
  }
  // Tokens alone: what is said about the documents may differ.
  std::string shards_of(const Result<DatasetManifest>& made) {
    return made.ok() ? made->train.front().sha256 + made->validation.front().sha256 : made.error().message;
  }

  QTemporaryDir directory_;
  int outputs_ = 0;
};

void PrepareInputsTest::whatever_zstd_and_gzip_write_is_read_data() {
  QTest::addColumn<QByteArray>("content");
  const std::string text = text_of(100'000), a = text.substr(0, 40'000), b = text.substr(40'000);
  const auto row = [](const char* name, const std::string& content) {
    QTest::newRow(name) << QByteArray::fromStdString(content);
  };
  row("pzstd", pzstd_frame(a) + pzstd_frame(b));
  row("a seek table behind the frames", zstd(a) + zstd(b) + skippable(std::string(100, 'x'), 14));
  row("frames to be skipped all over", skippable("") + skippable(text, 15) + zstd(a) + skippable("x", 7) + zstd(b));
  row("empty frames", zstd("") + zstd(a) + zstd("") + zstd(b) + zstd(""));
  row("bgzip", gzip(a) + gzip(b) + gzip(""));
  row("gzip, an empty member first", gzip("") + gzip(text));
  row("gzip, filled up with zeros", gzip(text) + std::string(2'000, '\0'));
}

void PrepareInputsTest::whatever_zstd_and_gzip_write_is_read() {
  QFETCH(const QByteArray, content);
  write(path("in.txt"), text_of(100'000));
  write(path("in.compressed"), content.toStdString());

  const auto plain = prepare({path("in.txt")});
  const auto compressed = prepare({path("in.compressed")});

  QVERIFY2(compressed.ok(), said(compressed).c_str());
  QCOMPARE(shards_of(compressed), shards_of(plain));
}

void PrepareInputsTest::zstd_with_a_dictionary_is_refused_as_that() {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  const std::string samples = text_of(100'000), text = text_of(50'000);
  std::string dictionary(4'000, '\0');
  const std::vector<std::size_t> sizes(100, 1'000);
  dictionary.resize(ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(), sizes.data(), 100));
  std::string compressed(ZSTD_compressBound(text.size()), '\0');
  compressed.resize(ZSTD_compress_usingDict(context.get(), compressed.data(), compressed.size(), text.data(),
                                            text.size(), dictionary.data(), dictionary.size(), 3));
  write(path("in.txt.zst"), compressed);

  const auto made = prepare({path("in.txt.zst")});

  QVERIFY2(is_there(said(made), "it was compressed with a dictionary"), said(made).c_str());
  QCOMPARE(made.error().code, ErrorCode::kInvalidArgument);
}

void PrepareInputsTest::compressed_text_that_is_cut_anywhere_is_refused() {
  const std::string text = text_of(50'000);
  for (const std::string& whole : {pzstd_frame(text), zstd(text), gzip(text)}) {
    for (const std::size_t left :
         {std::size_t{6}, std::size_t{11}, std::size_t{13}, whole.size() / 2, whole.size() - 1}) {
      write(path("cut"), std::string_view(whole).substr(0, left));
      const auto made = prepare({path("cut")});
      // Of what is to be skipped, all may be there, and no text behind it.
      QVERIFY2(!made.ok(), std::to_string(left).c_str());
      QVERIFY2(is_there(said(made), "damaged") || is_there(said(made), "0 bytes of text"), said(made).c_str());
    }
  }
}

void PrepareInputsTest::what_others_compress_or_pack_is_refused_by_name_data() {
  QTest::addColumn<QByteArray>("begins");
  QTest::addColumn<QString>("name");
  const auto row = [](const char* name, const std::string& begins) {
    QTest::newRow(name) << QByteArray::fromStdString(begins) << QString(name);
  };
  row("xz", "\xfd"s + "7zXZ\0"s);
  row("bzip2", "BZh61AY&SY");
  row("lz4", "\x04\x22\x4d\x18");
  row("lzip", "LZIP\x01");
  row("lzma", "\x5d\0\0\x80"s);
  row("Snappy", "\xff\x06\0\0sNaPpY"s);
  row("compress", "\x1f\x9d\x90");
  row("zip", "PK\x03\x04");
  row("7-Zip", "7z\xbc\xaf\x27\x1c");
  row("tar", std::string(257, 'n') + "ustar\0"s);
  row("Parquet", "PAR1\x15\x04");
  row("Arrow IPC", "ARROW1\0\0"s);
}

void PrepareInputsTest::what_others_compress_or_pack_is_refused_by_name() {
  QFETCH(const QByteArray, begins);
  QFETCH(const QString, name);
  write(path("in.jsonl"), begins.toStdString() + text_of(50'000));

  const auto made = prepare({path("in.jsonl")});

  QVERIFY(!made.ok());
  QCOMPARE(made.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(is_there(said(made), "in.jsonl is " + name.toStdString() + " data, which is not read"), said(made).c_str());
}

void PrepareInputsTest::bytes_that_are_no_utf8_are_refused_with_their_place_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QString>("says");
  const auto row = [](const char* name, const char* file, const std::string& content, const char* says) {
    QTest::newRow(name) << file << QByteArray::fromStdString(content) << says;
  };
  const std::string text = text_of(50'000).substr(0, 40'000);
  const std::string line = "{\"text\": \"" + std::string(20'000, 'x') + "\"}\n";  // 20,013 bytes
  row("Latin-1", "in.txt", text + "caf\xe9 au lait" + text,
      "in.txt is no UTF-8: byte 40003 of the file's text is 0xe9");
  row("Latin-1, compressed", "in.txt.gz", gzip(text + "caf\xe9 au lait"), "byte 40003 of the file's text is 0xe9");
  row("behind a byte order mark", "in.txt", "\xef\xbb\xbf" + text + "caf\xe9", "byte 40006 of the file's text is 0xe9");
  row("overlong", "in.txt", text + "\xc0\xaf" + text, "byte 40000 of the file's text is 0xc0");
  row("a surrogate", "in.txt", text + "\xed\xa0\x80" + text, "byte 40000 of the file's text is 0xed");
  row("cut within a character", "in.txt", text + "\xe2\x82", "byte 40000 of the file's text is 0xe2");
  row("UTF-16", "in.txt", "\xff\xfe" + utf16(wide(text), false), "looks like UTF-16: say so by --encoding UTF-16");
  row("UTF-16 without mark", "in.txt", utf16(wide(text), false), "looks like UTF-16LE");
  row("UTF-16, big-endian, without mark", "in.txt", utf16(wide(text), true), "looks like UTF-16BE");
  row("UTF-32", "in.txt", "\xff\xfe\0\0"s + utf16(wide(text), false), "looks like UTF-32");
  row("JSON in Latin-1", "in.jsonl", line + "{\"text\": \"caf\xe9\"}\n",
      "in.jsonl line 2 is no UTF-8: byte 20026 of the file's text is 0xe9");
  row("JSON, beside the text", "in.jsonl", line + "{\"name\": \"caf\xe9\", \"text\": \"\"}\n", "line 2 is no UTF-8");
  row("JSON in UTF-16", "in.jsonl", "\xff\xfe" + utf16(wide(line), false), "looks like UTF-16");
  row("JSON in UTF-16 without mark", "in.jsonl", utf16(wide(line), false), "looks like UTF-16LE");
}

void PrepareInputsTest::bytes_that_are_no_utf8_are_refused_with_their_place() {
  QFETCH(const QString, file);
  QFETCH(const QByteArray, content);
  QFETCH(const QString, says);
  write(path(file.toStdString()), content.toStdString());

  const auto made = prepare({path(file.toStdString())});
  const auto whole = prepare({path(file.toStdString())}, {.whole_files = true});

  for (const auto* result : {&made, &whole}) {
    QVERIFY(!result->ok());
    QCOMPARE(result->error().code, ErrorCode::kInvalidArgument);
    QVERIFY2(is_there(said(*result), says.toStdString()), said(*result).c_str());
    QVERIFY2(is_there(said(*result), "--encoding"), said(*result).c_str());
  }
}

void PrepareInputsTest::text_in_a_named_encoding_gives_the_tokens_of_utf8_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<QString>("encoding");
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QByteArray>("utf8");
  std::string latin, utf8;
  for (int i = 0; i < 10'000; ++i) {
    latin += "caf\xe9 " + std::to_string(i) + "\n";
    utf8 += "caf\xc3\xa9 " + std::to_string(i) + "\n";
  }
  std::u16string units;
  for (const char c : latin) units += static_cast<char16_t>(static_cast<unsigned char>(c));
  const std::string lines = json_lines(300);
  const auto row = [](const char* name, const char* file, const std::string& content, const std::string& same) {
    QTest::newRow(name) << file << name << QByteArray::fromStdString(content) << QByteArray::fromStdString(same);
  };
  row("latin1", "in.txt", latin, utf8);
  row("latin-1", "in.txt", latin, utf8);
  row("ISO-8859-1", "in.txt.gz", gzip(latin), utf8);
  row("windows-1252", "in.txt", latin, utf8);
  row("UTF-16", "in.txt", "\xff\xfe" + utf16(units, false), utf8);
  row("UTF-16BE", "in.txt", "\xfe\xff" + utf16(units, true), utf8);
  row("UTF-16LE", "in.txt", utf16(units, false), utf8);
  row("utf-16", "in.jsonl", "\xff\xfe" + utf16(wide(lines), false), lines);
  row("utf-8", "in.txt", utf8, utf8);
  row("UTF-8-SIG", "in.txt", "\xef\xbb\xbf" + utf8, utf8);
}

void PrepareInputsTest::text_in_a_named_encoding_gives_the_tokens_of_utf8() {
  QFETCH(const QString, file);
  QFETCH(const QString, encoding);
  QFETCH(const QByteArray, content);
  QFETCH(const QByteArray, utf8);
  const Path same = path(file.endsWith("jsonl") ? "same.jsonl" : "same.txt");
  write(path(file.toStdString()), content.toStdString());
  write(same, utf8.toStdString());

  const auto wanted = prepare({same});
  const auto made = prepare({path(file.toStdString())}, {.encoding = encoding.toStdString()});

  QVERIFY2(made.ok(), said(made).c_str());
  QCOMPARE(shards_of(made), shards_of(wanted));
}

void PrepareInputsTest::an_encoding_that_is_not_known_or_not_the_files_is_refused() {
  const std::string text = text_of(50'000).substr(0, 40'000);
  write(path("in.txt"), text + "\x81 is no character of windows-1252");
  write(path("odd.txt"), utf16(wide(text), false) + "x");
  write(path("marked.txt"), "\xef\xbb\xbf" + text);
  write(path("little.txt"), "\xff\xfe" + utf16(wide(text), false));

  const auto marked = prepare({path("marked.txt")}, {.encoding = "latin1"});
  const auto swapped = prepare({path("little.txt")}, {.encoding = "UTF-16BE"});
  const auto unknown = prepare({path("in.txt")}, {.encoding = "klingon"});
  const auto approximate = prepare({path("in.txt")}, {.encoding = "latin1//TRANSLIT"});
  const auto wrong = prepare({path("in.txt")}, {.encoding = "windows-1252"});
  const auto cut = prepare({path("odd.txt")}, {.encoding = "UTF-16LE"});

  QVERIFY2(is_there(said(marked), "begins with the byte order mark of UTF-8, so it is no latin1"),
           said(marked).c_str());
  QVERIFY2(is_there(said(swapped), "mark of the other byte order, so it is no UTF-16BE"), said(swapped).c_str());
  QVERIFY2(is_there(said(unknown), "no encoding 'klingon'"), said(unknown).c_str());
  QVERIFY2(is_there(said(approximate), "no encoding 'latin1//TRANSLIT'"), said(approximate).c_str());
  QVERIFY2(is_there(said(wrong), "in.txt cannot be read: from byte 40000 on it is no windows-1252"),
           said(wrong).c_str());
  QVERIFY2(is_there(said(cut), "from byte 80000 on it is no UTF-16LE (it ends in the middle)"), said(cut).c_str());
}

void PrepareInputsTest::byte_order_marks_are_no_text() {
  const std::string mark = "\xef\xbb\xbf", text = text_of(600'000), lines = json_lines(300);
  write(path("plain.txt"), text);
  write(path("marked.txt"), mark + text);
  write(path("plain.jsonl"), lines);
  std::string marked = lines;
  marked.replace(marked.find("document 7"), 8, mark + mark + "document");
  marked.replace(marked.find("document 9"), 8, "\\ufeffdocument");
  write(path("marked.jsonl"), mark + marked.insert(marked.find('\n') + 1, mark));

  const auto plain = prepare({path("plain.txt")}), with_mark = prepare({path("marked.txt")});
  const auto whole = prepare({path("plain.txt"), path("plain.jsonl")}, {.whole_files = true});
  const auto whole_with_mark = prepare({path("marked.txt"), path("marked.jsonl")}, {.whole_files = true});

  QVERIFY2(with_mark.ok(), said(with_mark).c_str());
  QCOMPARE(shards_of(with_mark), shards_of(plain));
  QVERIFY2(whole_with_mark.ok(), said(whole_with_mark).c_str());
  QCOMPARE(shards_of(whole_with_mark), shards_of(whole));
}

void PrepareInputsTest::a_line_is_read_as_python_reads_it_data() {
  QTest::addColumn<QByteArray>("line");
  QTest::addColumn<QString>("refused");  // empty: it is the text "here"
  const auto row = [](const char* line, const char* refused = "") {
    QTest::newRow(line) << QByteArray(line) << refused;
  };
  row(R"({"score": NaN, "text": "here"})");
  row(R"({"scores": [Infinity, -Infinity, NaN], "text": "here"})");
  row(R"({"text": "here", "n": 1e400})");
  row(R"({"text": "here", "n": -1E+400, "m": 123456789012345678901234567890})");
  row(R"({"title": "half \ud83d", "text": "here"})");
  row(R"({"title": "\udc00\ud83d\ud83d", "text": "h\u0065re", "n": NaN})");
  row(R"({"\ud83d": 1, "text": "here"})");
  row(R"({"text": 1, "x": {"text": NaN}, "text": "here"})");
  row(R"({"text": "here", "x": {"text": "there"}, "n": [[NaN]]})");
  row("\t{ \"n\" :\tNaN , \"text\" : \"here\" }\r");
  row(R"({"text": "half \ud83d"})", "half of a surrogate pair (\\ud83d)");
  row(R"({"text": "here", "n": nan})", "cannot be read from column 23 on");
  row(R"({"text": "here", "n": +1})", "cannot be read from column 23 on");
  row(R"({"text": "here", "n": 01})", "cannot be read from column 24 on");
  row(R"({"text": "here", "n": 1.})", "cannot be read from column 25 on");
  row(R"({"text": "here", "n": NaN,})", "cannot be read from column 27 on");
  row(R"({"text": "here", "n": NaN} x)", "cannot be read from column 28 on");
  row(R"({"text": "here", "n": NaN)", "cannot be read from column 26 on");
  row("{\"text\": \"here\", \"n\": NaN, \"x\": \"\t\"}", "cannot be read from column 34 on");
  row(R"({"text": "h\xere"})", "cannot be read from column 13 on");
  row(R"({"n": NaN})", "field 'text' is missing");
  row(R"({"n": NaN, "text": NaN})", "field 'text' is no text");
  row(R"({"n": NaN, "text": ["here"]})", "field 'text' is no text");
  row(R"([NaN])", "it is no JSON object");
  row(R"(null)", "it is no JSON object");
}

void PrepareInputsTest::a_line_is_read_as_python_reads_it() {
  QFETCH(const QByteArray, line);
  QFETCH(const QString, refused);
  const std::string lines = json_lines(300);
  write(path("wanted.jsonl"), lines + "{\"text\": \"here\"}\n" + lines);
  write(path("in.jsonl"), lines + line.toStdString() + "\n" + lines);

  const auto wanted = prepare({path("wanted.jsonl")});
  const auto made = prepare({path("in.jsonl")});

  if (refused.isEmpty()) {
    QVERIFY2(made.ok(), said(made).c_str());
    QCOMPARE(shards_of(made), shards_of(wanted));
    return;
  }
  QVERIFY(!made.ok());
  QVERIFY2(is_there(said(made), "in.jsonl line 301 "), said(made).c_str());
  QVERIFY2(is_there(said(made), refused.toStdString()), said(made).c_str());
}

void PrepareInputsTest::what_stands_beside_a_chat_may_be_no_number() {
  const std::string chat = R"("messages": [{"role": "user", "content": "NaN 1e400"}])";
  const TextFile file{path("chat.jsonl"), TextFormat::kJsonLines, 0, 0, 0};
  DocumentReader reader({.chat = true});
  const auto documents = [&](const std::string& lines) {
    TextBlock block;
    block.bytes = lines;
    std::vector<std::string> read;
    const Status status = reader.read(file, block, [&](const Document& document, std::uint64_t) {
      read.emplace_back(document.text);
      return ok_status();
    });
    return status.ok() ? read : std::vector{status.error().message};
  };

  const auto plain = documents("{" + chat + "}\n");
  const auto beside = documents("{\"score\": NaN, " + chat + ", \"n\": [1e400, -Infinity, 2]}\n");
  const auto wrong = documents("{\"score\": NaN, " + chat + "\n");

  QCOMPARE(plain.size(), 1u);
  QVERIFY2(beside == plain, beside.front().c_str());
  QVERIFY2(is_there(wrong.front(), "is no chat"), wrong.front().c_str());
}

void PrepareInputsTest::documents_without_text_are_left_out_and_counted() {
  const std::string lines = json_lines(300);
  write(path("whole.jsonl"), lines);
  write(path("holes.jsonl"), "{\"text\": null}\n" + lines + "{\"n\": NaN, \"text\": null}\n\n{\"text\": \"\"}\n");
  write(path("deep.jsonl"), "{\"doc\": null}\n{\"doc\": {\"body\": null, \"n\": NaN}}\n");

  const auto whole = prepare({path("whole.jsonl")});
  const auto holes = prepare({path("holes.jsonl")});
  const auto nothing = prepare({path("deep.jsonl")}, {.field = "doc.body"});

  QVERIFY2(holes.ok(), said(holes).c_str());
  QCOMPARE(shards_of(holes), shards_of(whole));
  QCOMPARE(holes->statistics->without_text, 3u);
  QCOMPARE(DatasetManifest::from_json(holes->to_json())->statistics->without_text, 3u);
  QVERIFY(!is_there(whole->to_json(), "without_text"));  // as it was before there was something to say
  QVERIFY2(is_there(said(nothing), "2 documents have none: the field \"doc.body\" is null or empty"),
           said(nothing).c_str());
}

void PrepareInputsTest::a_directory_gives_what_is_meant_and_says_what_it_leaves_out() {
  const Path in = path("directory");
  const char* const taken[] = {"A.TXT",       "b.JSONL",      "c.jsonl.zstd",  "d.json.gz",
                               "e.ndjson.GZ", "f.jsonl.gzip", "g.txt.bgz",     "h.Parquet",
                               "i.bin",       "linked.jsonl", "sub/j.jsonl.gz"};
  const std::pair<const char*, const char*> left_out[] = {{"._A.txt", "it is hidden"},
                                                          {".cache", "it is hidden"},
                                                          {"a.json", "more often about data"},
                                                          {"b.jsonl.xz", ".xz is not read"},
                                                          {"c.txt.bz2", ".bz2 is not read"},
                                                          {"d.md", "not a name of text"},
                                                          {"e.bin", "e.idx"},
                                                          {"f.txt", "a link to nothing"},
                                                          {"sub/link", "a link to a directory"}};
  for (const char* name : taken) write(in / name, "");
  write(in / "i.idx", "");
  for (const auto& [name, why] : left_out) {
    const std::string other = name;
    if (other != "f.txt" && other != "sub/link" && other != ".cache") write(in / name, "");
  }
  write(in / ".cache/k.jsonl", "");
  write(path("elsewhere.jsonl"), "");
  std::filesystem::remove(in / "linked.jsonl");
  std::filesystem::create_symlink(path("elsewhere.jsonl"), in / "linked.jsonl");
  std::filesystem::create_symlink(path("nowhere.txt"), in / "f.txt");
  std::filesystem::create_directory_symlink(in, in / "sub/link");

  const auto found = find_text({in});

  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QCOMPARE(found->files.size(), std::size(taken));
  for (std::size_t i = 0; i < std::size(taken); ++i) QCOMPARE(found->files[i].path, in / taken[i]);
  QCOMPARE(found->files[1].format, TextFormat::kJsonLines);
  QCOMPARE(found->files[2].format, TextFormat::kJsonLines);
  QCOMPARE(found->files[7].format, TextFormat::kParquet);
  QCOMPARE(found->left_out.size(), std::size(left_out));
  for (std::size_t i = 0; i < std::size(left_out); ++i) {
    QCOMPARE(found->left_out[i].path, in / left_out[i].first);
    QVERIFY2(is_there(found->left_out[i].why, left_out[i].second), found->left_out[i].why.c_str());
  }
  // What is named itself is read, whatever it is called.
  QCOMPARE(find_text({in / ".cache", in / "._A.txt"})->files.size(), 2u);
  const auto nowhere = find_text({in / "f.txt"});
  QVERIFY2(is_there(nowhere.error().message, "nowhere.txt, which does not exist"), nowhere.error().message.c_str());
  // Where nothing is left, what is there is named.
  write(path("others/x.jsonl.xz"), "");
  const auto none = find_text({path("others")});
  QCOMPARE(none.error().code, ErrorCode::kNotFound);
  QVERIFY2(is_there(none.error().message, "x.jsonl.xz (.xz is not read"), none.error().message.c_str());
}

void PrepareInputsTest::a_link_beside_its_file_is_left_out() {
  const Path in = path("links");
  write(in / "b.jsonl", json_lines(300));
  std::filesystem::create_symlink("b.jsonl", in / "a.jsonl");
  std::filesystem::create_symlink("b.jsonl", in / "c.jsonl");

  const auto found = find_text({in});
  const auto pattern = find_text({in / "*.jsonl"});
  const auto links_alone = find_text({in / "[ac].jsonl"});
  const auto made = prepare({in});
  const auto twice = find_text({in, in / "b.jsonl"});
  const auto link_named = find_text({in, in / "a.jsonl"});

  for (const auto* one : {&found, &pattern}) {
    QVERIFY(one->ok());
    QCOMPARE((*one)->files.size(), 1u);
    QCOMPARE((*one)->files[0].path, in / "b.jsonl");
    QCOMPARE((*one)->left_out.size(), 2u);
    QVERIFY(is_there((*one)->left_out[0].why, "b.jsonl, which is read"));
  }
  QVERIFY(links_alone.ok() && links_alone->files.size() == 1u && links_alone->left_out.size() == 1u);
  QVERIFY2(made.ok(), said(made).c_str());
  QCOMPARE(made->statistics->duplicates, 0u);
  for (const auto* one : {&twice, &link_named}) {
    QVERIFY(!one->ok());
    QVERIFY(is_there(one->error().message, "would be read twice"));
  }
}

void PrepareInputsTest::a_token_beyond_the_vocabulary_leaves_nothing_behind() {
  std::string tokens(400'000, '\0'), index;
  for (std::size_t i = 0; i < tokens.size(); i += 2) tokens[i] = static_cast<char>(i % 251);
  for (std::uint64_t end = 1000; end <= tokens.size() / 2; end += 1000) {
    index.append(reinterpret_cast<const char*>(&end), sizeof(end));
  }
  write(path("late.ds.index"), index);
  std::string late = tokens;
  late[late.size() - 1] = 2;  // 512 and more, of bytes 257
  write(path("late.ds"), late);
  const PrepareOptions options{.read = {.block_bytes = 20'000}};

  const auto wrong = prepare_dataset({path("late.ds")}, path("tokens"), options, {});
  const bool left = std::filesystem::exists(path("tokens.preparing"));
  write(path("late.ds"), tokens);
  const auto mended = prepare_dataset({path("late.ds")}, path("tokens"), options, {});

  QVERIFY2(is_there(said(wrong), "late.ds holds token"), said(wrong).c_str());
  QVERIFY(!left);
  QVERIFY2(mended.ok(), said(mended).c_str());
}

QTEST_APPLESS_MAIN(PrepareInputsTest)
#include "prepare_inputs_test.moc"
