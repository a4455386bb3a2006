// The names and bytes of an outer state in an object store: frozen, read back, and refused where they are not those.
#include <QtTest/QTest>

#include "net/store/published_state.h"
#include "tests/net/store/published_parts.h"

using namespace atl;
using namespace atl::test;

namespace {

StateManifest manifest_of_two_chunks() {
  StateManifest manifest{OuterStep{12}, kStateChunkBytes + 8, {Digest{}, Digest{}}};
  manifest.chunk_sha256[1].fill(std::byte{0xab});
  return manifest;
}

}  // namespace

class PublishedFormatTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_state_is_cut_into_objects_of_two_gibibytes();
  void a_manifest_is_read_back_as_it_was_written();
  void how_it_attends_is_said_but_by_those_of_before();
  void what_is_no_manifest_is_refused();
  void what_others_wrote_before_is_read();
};

void PublishedFormatTest::a_state_is_cut_into_objects_of_two_gibibytes() {
  StateManifest state{OuterStep{1}, 2 * sizeof(float) * 10'000'000'000u, {}};  // ten billion parameters
  state.chunk_sha256.resize(state_chunks(10'000'000'000));

  QCOMPARE(state.chunk_sha256.size(), std::size_t{4769});
  QCOMPARE(chunk_objects(state), std::uint64_t{38});
  std::uint64_t bytes = 0, chunks = 0;
  for (std::uint64_t object = 0; object < chunk_objects(state); ++object) {
    QCOMPARE(first_chunk_of(object), chunks);
    chunks += chunks_of_object(state, object);
    bytes += bytes_of_object(state, object);
  }
  QCOMPARE(chunks, std::uint64_t{4769});
  QCOMPARE(bytes, state.state_bytes);
  QCOMPARE(bytes_of_object(state, 0), std::uint64_t{2} << 30);
  QCOMPARE(chunk_object(37), std::string("chunks.00037"));
  QCOMPARE(published_name(OuterStep{12}), std::string("outer-12"));
  QCOMPARE(published_step("outer-12"), std::optional(OuterStep{12}));
  for (const char* other : {"outer-", "outer-012", "outer--1", "outer-1x", "outer-99999999999", "inner-1"}) {
    QVERIFY(!published_step(other));
  }
}

void PublishedFormatTest::a_manifest_is_read_back_as_it_was_written() {
  const PublishedManifest manifest{"0123456789abcdef", "first run", kTestModel, manifest_of_two_chunks(),
                                   std::string(64, 'a')};

  const PublishedManifest read = take(PublishedManifest::from_json(manifest.to_json()));

  QCOMPARE(read.run_id, manifest.run_id);
  QCOMPARE(read.run_name, manifest.run_name);
  QCOMPARE(read.model_json, manifest.model_json);
  QCOMPARE(read.initial_hash, manifest.initial_hash);
  QVERIFY(read.state.tree_hash() == manifest.state.tree_hash());
  QCOMPARE(read.to_json(), manifest.to_json());
}

void PublishedFormatTest::how_it_attends_is_said_but_by_those_of_before() {
  PublishedManifest manifest{"0123456789abcdef", "r", kTestModel, manifest_of_two_chunks(), std::string(64, 'a')};
  QVERIFY(!take(PublishedManifest::from_json(manifest.to_json())).attention);

  QVERIFY(take(PublishedManifest::from_json(manifest.to_json())).tokenizer.empty());

  manifest.tokenizer = "llama3";
  manifest.tokenizer_sha256 = std::string(64, 'b');
  QCOMPARE(take(PublishedManifest::from_json(manifest.to_json())).tokenizer, manifest.tokenizer);
  QCOMPARE(take(PublishedManifest::from_json(manifest.to_json())).tokenizer_sha256, manifest.tokenizer_sha256);
  manifest.attention = AttentionScope::kDocument;

  std::string text = manifest.to_json();
  QVERIFY(take(PublishedManifest::from_json(text)).attention == AttentionScope::kDocument);
  text.replace(text.find("\"document\""), 10, "\"sideways\"");
  QVERIFY(!PublishedManifest::from_json(text).ok());
}

void PublishedFormatTest::what_is_no_manifest_is_refused() {
  const std::string good =
      PublishedManifest{"0123456789abcdef", "r", kTestModel, manifest_of_two_chunks(), std::string(64, 'a')}.to_json();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    if (at == std::string::npos) qFatal("nothing to change");
    return text.replace(at, from.size(), to);
  };

  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                 changed("\"state_hash\":\"", "\"state_hash\":\"0"),
                                 changed("\"state\":{", "\"stale\":{"), changed("\"version\":12", "\"version\":13")}) {
    const auto manifest = PublishedManifest::from_json(bad);
    QVERIFY(!manifest.ok());
    QCOMPARE(manifest.error().code, ErrorCode::kCorrupt);
  }
  // Keys are in the alphabet's order: the last version is the manifest's own.
  std::string newer = good;
  newer.replace(newer.rfind("\"version\":1"), 11, "\"version\":2");
  QCOMPARE(PublishedManifest::from_json(newer).error().code, ErrorCode::kVersionUnsupported);
}

// Frozen: a store keeps them for longer than programs stay the same.
void PublishedFormatTest::what_others_wrote_before_is_read() {
  const std::string zeros(64, '0');
  const std::string manifest =
      R"({"initial_hash":"@0","model_json":"{}","run_id":"0123456789abcdef","run_name":"first","state":{"chunks":["@0"],)"
      R"("state_bytes":8,"version":3},"state_hash":"@1","version":1})";
  const auto filled = [&](std::string text) {
    for (auto at = text.find("@0"); at != std::string::npos; at = text.find("@0")) text.replace(at, 2, zeros);
    return text.replace(text.find("@1"), 2, "9421024cc34bd8f21f7b61541a5229fb751ba685ebe382dbc165160f92c40dfc");
  };

  const PublishedManifest read = take(PublishedManifest::from_json(filled(manifest)));
  const LatestState latest = take(LatestState::from_json(
      R"({"manifest_sha256":")" + zeros + R"(","outer_step":3,"state_hash":")" + zeros + R"(","version":1})"));

  QCOMPARE(read.state.version, OuterStep{3});
  QCOMPARE(read.to_json(), filled(manifest));
  QCOMPARE(latest.outer_step, OuterStep{3});
  QCOMPARE(latest.manifest_sha256, zeros);
  QCOMPARE(take(LatestState::from_json(latest.to_json())).state_hash, zeros);
  for (const char* bad :
       {"", "[]", "{}", R"({"version":1})", R"({"version":1,"outer_step":-1,"state_hash":"","manifest_sha256":""})"}) {
    QCOMPARE(LatestState::from_json(bad).error().code, ErrorCode::kCorrupt);
  }
}

QTEST_GUILESS_MAIN(PublishedFormatTest)
#include "published_format_test.moc"
