#include "net/recovery/chunk_answers.h"

#include <algorithm>
#include <memory>

namespace atl {
namespace {

namespace http = boost::beast::http;

Answer holders_as_text(const std::vector<IslandId>& holders) {
  const std::string text = encode_holders(holders);
  Answer answer;
  answer.type = "text/plain";
  answer.content.assign(as_bytes(text).begin(), as_bytes(text).end());
  answer.bytes = answer.content.size();
  return answer;
}

}  // namespace

Answer answer_data(std::string_view text, const IslandId& asker, ServedChunks* chunks, const AbortSignal& abort) {
  const auto target = parse_data_target(text);
  if (!target) return refuse(http::status::not_found, "there is /data/TREE/CHUNK and /data/TREE/CHUNK/holders");
  if (chunks == nullptr) return refuse(http::status::not_found, "this island gives none of the run's data");
  if (target->asks_for_holders) return holders_as_text(chunks->holders(target->id, asker));
  auto held = chunks->chunk(target->id, abort);
  if (!held.ok()) return refuse(http::status::not_found, held.error().message);
  const auto file = std::make_shared<const MappedFile>(std::move(*held));
  Answer answer;
  answer.bytes = file->bytes().size();
  answer.part_bytes = kServedPartBytes;
  answer.read = [file](std::uint64_t offset, std::span<std::byte> part) {
    std::ranges::copy(file->bytes().subspan(offset, part.size()), part.begin());
    return ok_status();
  };
  return answer;
}

}  // namespace atl
