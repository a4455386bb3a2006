#include "net/wire/contributors.h"

#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr int kMostDepth = 4;
constexpr const char* kList = "contributors";

template <class Archive>
void fields(Archive& archive, Contributor& contributor) {
  archive.text("name", contributor.name, kMaxPersonName);
  archive.field("rounds", contributor.rounds);
  archive.field("tokens", contributor.tokens);
  archive.field("islands", contributor.islands);
}

}  // namespace

std::string encode(const std::vector<Contributor>& contributors) {
  nlohmann::json list = nlohmann::json::array();
  for (const Contributor& contributor : contributors) {
    JsonWriter writer;
    fields(writer, const_cast<Contributor&>(contributor));
    list.push_back(std::move(writer.object));
  }
  return dump_json({{kList, std::move(list)}});
}

Result<std::vector<Contributor>> decode_contributors(std::string_view text) {
  const auto parsed = parse_bounded_json(text, kMaxContributorsBytes, kMostDepth);
  if (!parsed.ok()) return parsed.error().with_context("the run's contributors");
  JsonReader reader(*parsed);
  std::vector<Contributor> contributors;
  if (const nlohmann::json* list = reader.entries(kList, kMaxContributors)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      JsonReader one((*list)[i], reader.element_path(kList, i));
      fields(one, contributors.emplace_back());
      contributors.back().name = printable(contributors.back().name, kMaxPersonName);
      if (!one.status().ok()) return one.status().error().with_context("the run's contributors");
    }
  }
  if (!reader.status().ok()) return reader.status().error().with_context("the run's contributors");
  return contributors;
}

}  // namespace atl
