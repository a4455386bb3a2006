#include "net/wire/learning_rate.h"

#include "net/wire/decay_fields.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxDecayBytes = 1024;
constexpr int kDecayDepth = 1;

}  // namespace

std::string to_json(const DecidedDecay& decay) {
  JsonWriter writer;
  DecidedDecay copy = decay;
  fields(writer, copy);
  return dump_json(writer.object);
}

Result<DecidedDecay> parse_decided_decay(std::string_view json) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_bounded_json(json, kMaxDecayBytes, kDecayDepth));
  JsonReader reader(object);
  DecidedDecay decay;
  fields(reader, decay);
  ATOLL_RETURN_IF_ERROR(reader.status());
  return decay;
}

}  // namespace atl
