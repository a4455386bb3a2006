// Whether JSON that a command printed is as resources/schemas says.
#pragma once

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "net/base/file.h"

namespace atl::test {

// What is wrong with it; empty: it fits.
inline std::string defects(const std::string& name, const nlohmann::json& document) {
  const auto text = read_file(std::filesystem::path(ATOLL_SCHEMA_DIR) / (name + ".json"));
  if (!text.ok()) return text.error().message;
  const nlohmann::json source = nlohmann::json::parse(*text);
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(source), schema);
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results)) return "";
  std::string all;
  for (const auto& result : results) all += result.description + "\n";
  return all + document.dump();
}

}  // namespace atl::test
