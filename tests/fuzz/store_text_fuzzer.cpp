// What an object store answers, and what lies in it, whoever wrote it: XML, the manifest of a published state, the word
// of the newest, names. What is read says itself again to the same.
//
// Input: which of the four u8, then the text.
#include <string>

#include "net/store/published_state.h"
#include "net/store/s3_xml.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

void read_xml(const std::string& text) {
  for (const char* name : {"Key", "UploadId", "Part", "ETag", "Code", "Message", "a"}) {
    for (const std::string_view element : xml_elements(text, name)) {
      ATOLL_FUZZ_CHECK(element.data() >= text.data() && element.data() + element.size() <= text.data() + text.size());
    }
    ATOLL_FUZZ_CHECK(xml_text(text, name).size() <= text.size());
  }
  // Whatever it is, between two tags it comes back.
  ATOLL_FUZZ_CHECK(xml_text("<a>" + xml_escaped(text) + "</a>", "a") == text);
}

void read_manifest(const std::string& text) {
  const auto read = PublishedManifest::from_json(text);
  if (!read.ok()) return;
  const auto again = PublishedManifest::from_json(read->to_json());
  ATOLL_FUZZ_CHECK(again.ok() && again->to_json() == read->to_json());
  std::uint64_t chunks = 0, bytes = 0;
  for (std::uint64_t object = 0; object < chunk_objects(read->state); ++object) {
    ATOLL_FUZZ_CHECK(first_chunk_of(object) == chunks);
    chunks += chunks_of_object(read->state, object);
    bytes += bytes_of_object(read->state, object);
  }
  ATOLL_FUZZ_CHECK(chunks == read->state.chunk_sha256.size() && bytes == read->state.state_bytes);
}

void read_latest(const std::string& text) {
  const auto read = LatestState::from_json(text);
  if (!read.ok()) return;
  const auto again = LatestState::from_json(read->to_json());
  ATOLL_FUZZ_CHECK(again.ok() && again->to_json() == read->to_json());
}

void read_name(const std::string& text) {
  const auto step = published_step(text);
  if (step) ATOLL_FUZZ_CHECK(published_step(published_name(*step)) == *step);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  using namespace atl::fuzz;
  Input input(data, size);
  const auto which = input.get<std::uint8_t>() % 4;
  const std::string text = to_string(input.rest());
  if (which == 0) read_xml(text);
  if (which == 1) read_manifest(text);
  if (which == 2) read_latest(text);
  if (which == 3) read_name(text);
  return 0;
}
