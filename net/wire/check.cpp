#include "net/wire/check.h"

#include "net/wire/json_archive.h"

namespace atl {

template <class Archive>
void fields(Archive& archive, CheckIsland& island) {
  archive.field("id", island.id);
  archive.text("display_name", island.display_name);
  archive.field("address", island.address);
  archive.field("dialable", island.dialable);
}

namespace {

constexpr std::size_t kMaxAboutBytes = 1u << 20;
constexpr int kMaxDepth = 8;

template <class Archive>
void fields(Archive& archive, CheckAbout& about) {
  archive.field("time", about.time);
  archive.field("inner_seconds", about.inner_seconds);
  archive.field("islands", about.islands);
  if constexpr (Archive::kReads) {
    const nlohmann::json* run = archive.find("run");
    if (run == nullptr) return;
    Result<RunConfig> config = RunConfig::from_json(dump_json(*run));
    if (!config.ok()) return archive.fail(config.error());  // of another version: its code says so
    about.run = std::move(config).value();
  } else {
    archive.object["run"] = about.run.to_json();
  }
}

template <class Archive>
void fields(Archive& archive, CheckDialled& dialled) {
  archive.field("address", dialled.address);
  archive.field("answered", dialled.answered);
}

template <class T>
std::string write(const T& value) {
  JsonWriter writer;
  fields(writer, const_cast<T&>(value));
  return dump_json(writer.object);
}

template <class T>
Result<T> read(std::string_view text, std::string_view what) {
  const auto parsed = parse_bounded_json(text, kMaxAboutBytes, kMaxDepth);
  if (!parsed.ok()) return parsed.error().with_context(what);
  JsonReader reader(*parsed);
  T value;
  fields(reader, value);
  if (!reader.status().ok()) return reader.status().error().with_context(what);
  return value;
}

}  // namespace

std::string encode(const CheckAbout& about) { return write(about); }
Result<CheckAbout> decode_check_about(std::string_view text) {
  return read<CheckAbout>(text, "what the hub says of its run");
}
std::string encode(const CheckDialled& dialled) { return write(dialled); }
Result<CheckDialled> decode_check_dialled(std::string_view text) {
  return read<CheckDialled>(text, "what the hub says of dialling back");
}

}  // namespace atl
