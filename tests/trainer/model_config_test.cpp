// A configuration is read in either spelling, and what Atoll cannot compute is refused by name.
#include "net/model/config.h"

#include <QtTest>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/model/layout.h"

namespace {

using namespace atl;

nlohmann::json llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", 509},
          {"hidden_size", 60},
          {"intermediate_size", 101},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 3},
          {"num_key_value_heads", 1},
          {"head_dim", 24},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", true}};
}

const nlohmann::json kScaling = {{"rope_type", "llama3"},
                                 {"factor", 32.0},
                                 {"low_freq_factor", 1.0},
                                 {"high_freq_factor", 4.0},
                                 {"original_max_position_embeddings", 8192}};

ModelConfig preset(const std::string& name) {
  const std::string text = read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value();
  return model_config_from_json(text).value();
}

}  // namespace

class ModelConfigTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void both_spellings_of_rope_mean_the_same();
  void head_dim_may_differ_from_hidden_over_heads();
  void what_is_written_reads_back();
  void unsupported_settings_are_refused_by_name_data();
  void unsupported_settings_are_refused_by_name();
  void text_that_is_no_configuration_is_refused();
  void what_is_not_read_may_be_nested();
  void every_preset_is_valid_and_of_its_size();
  void layout_is_embedding_blocks_norm_and_untied_head();
};

void ModelConfigTest::both_spellings_of_rope_mean_the_same() {
  auto four = llama();
  four["rope_theta"] = 500000.0;
  four["rope_scaling"] = kScaling;
  auto five = llama();
  five["rope_parameters"] = kScaling;
  five["rope_parameters"]["rope_theta"] = 500000.0;

  const ModelConfig from_four = model_config_from_json(four.dump()).value();
  const ModelConfig from_five = model_config_from_json(five.dump()).value();

  QVERIFY(from_four == from_five);
  QCOMPARE(from_five.rope_theta, 500000.0);
  QCOMPARE(from_five.rope_scaling.value().factor, 32.0);
}

void ModelConfigTest::head_dim_may_differ_from_hidden_over_heads() {
  auto without = llama();
  without.erase("head_dim");

  QCOMPARE(model_config_from_json(llama().dump()).value().head_dim, 24);
  QCOMPARE(model_config_from_json(without.dump()).value().head_dim, 20);
}

// With every member other than by default: what writer or reader forgets is missed. A new member does not compile here.
void ModelConfigTest::what_is_written_reads_back() {
  auto json = llama();
  json["max_position_embeddings"] = 4096;
  json["rms_norm_eps"] = 1e-6;
  json["rope_parameters"] = kScaling;
  json["rope_parameters"]["rope_theta"] = 500000.0;
  json["initializer_range"] = 0.03;
  json["bos_token_id"] = 3;
  json["eos_token_id"] = {5, 7};
  json["pad_token_id"] = 11;
  const ModelConfig config = model_config_from_json(json.dump()).value();
  const auto& [v, h, i, l, a, k, d, p, e, t, s, tie, r, bos, eos, pad] = config;
  const ModelConfig unset;
  const auto& [v0, h0, i0, l0, a0, k0, d0, p0, e0, t0, s0, tie0, r0, bos0, eos0, pad0] = unset;
  QVERIFY(v != v0 && h != h0 && i != i0 && l != l0 && a != a0 && k != k0 && d != d0 && p != p0 && e != e0 && t != t0);
  QVERIFY(s != s0 && tie != tie0 && r != r0 && bos != bos0 && eos != eos0 && pad != pad0);

  const ModelConfig again = model_config_from_json(to_json(config)).value();

  QVERIFY(again == config);
}

void ModelConfigTest::unsupported_settings_are_refused_by_name_data() {
  QTest::addColumn<QString>("change");
  QTest::addColumn<QString>("key");
  QTest::newRow("bias") << R"({"attention_bias": true})"
                        << "attention_bias";
  QTest::newRow("mlp bias") << R"({"mlp_bias": true})"
                            << "mlp_bias";
  QTest::newRow("activation") << R"({"hidden_act": "gelu"})"
                              << "hidden_act";
  QTest::newRow("architecture") << R"({"architectures": ["MistralForCausalLM"]})"
                                << "architectures";
  QTest::newRow("model type") << R"({"model_type": "mistral"})"
                              << "model_type";
  QTest::newRow("rope type") << R"({"rope_scaling": {"type": "linear", "factor": 2.0}})"
                             << "rope_scaling.rope_type";
  QTest::newRow("rope type, new") << R"({"rope_parameters": {"rope_type": "yarn"}})"
                                  << "rope_parameters.rope_type";
  QTest::newRow("heads that do not divide the width") << R"({"hidden_size": 64})"
                                                      << "num_attention_heads";
  QTest::newRow("quantised") << R"({"quantization_config": {"bits": 4}})"
                             << "quantization_config";
  QTest::newRow("heads") << R"({"num_key_value_heads": 2})"
                         << "num_key_value_heads";
  QTest::newRow("negative") << R"({"vocab_size": -1})"
                            << "vocab_size";
  QTest::newRow("huge") << R"({"hidden_size": 18446744073709551615})"
                        << "hidden_size";
  QTest::newRow("wrong type") << R"({"num_hidden_layers": "two"})"
                              << "num_hidden_layers";
  QTest::newRow("odd head") << R"({"head_dim": 7})"
                            << "head_dim";
}

void ModelConfigTest::unsupported_settings_are_refused_by_name() {
  QFETCH(QString, change);
  QFETCH(QString, key);
  auto json = llama();
  json.update(nlohmann::json::parse(change.toStdString()));

  const auto config = model_config_from_json(json.dump());

  QVERIFY(!config.ok());
  QVERIFY2(config.error().message.find(key.toStdString()) != std::string::npos, config.error().message.c_str());
}

void ModelConfigTest::text_that_is_no_configuration_is_refused() {
  for (const std::string& text : {std::string(), std::string("[1, 2]"), std::string("{\"vocab_size\": 3"),
                                  std::string(100000, '['), std::string(2 << 20, ' ')}) {
    QVERIFY(!model_config_from_json(text).ok());
  }
}

// Configurations of parts that are not ours, and of tools.
void ModelConfigTest::what_is_not_read_may_be_nested() {
  nlohmann::json deep = 1;
  for (int i = 0; i < 100; ++i) deep = {{"more", deep}};
  auto nested = llama(), endless = llama();
  nested["auto_map"] = deep;
  for (int i = 0; i < 200; ++i) deep = {{"more", deep}};
  endless["auto_map"] = deep;

  const auto config = model_config_from_json(nested.dump()), none = model_config_from_json(endless.dump());

  QVERIFY2(config.ok(), config.ok() ? "" : config.error().message.c_str());
  QVERIFY(none.error().message.find("nested deeper than 256") != std::string::npos);
}

void ModelConfigTest::every_preset_is_valid_and_of_its_size() {
  const std::pair<const char*, double> sizes[] = {{"demo", 0.82e6}, {"150m", 149e6}, {"1b", 1.236e9}, {"10b", 10.2e9}};
  for (const auto& [name, size] : sizes) {
    const ModelConfig config = preset(name);
    QVERIFY(config.validate().ok());
    const auto numel = static_cast<double>(canonical_layout(config).numel);
    QVERIFY2(std::abs(numel - size) < 0.02 * size, qPrintable(QString("%1 %2").arg(name).arg(numel)));
  }
}

void ModelConfigTest::layout_is_embedding_blocks_norm_and_untied_head() {
  ModelConfig config = model_config_from_json(llama().dump()).value();
  config.tie_word_embeddings = false;

  const ParameterLayout layout = canonical_layout(config);

  QCOMPARE(layout.parameters.front().name, std::string("model.embed_tokens.weight"));
  QCOMPARE(layout.parameters[1].name, std::string("model.layers.0.self_attn.q_proj.weight"));
  QCOMPARE(layout.parameters[layout.parameters.size() - 2].name, std::string("model.norm.weight"));
  QCOMPARE(layout.parameters.back().name, std::string("lm_head.weight"));
  std::int64_t offset = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    QCOMPARE(parameter.offset, offset);
    offset += parameter.numel;
  }
  QCOMPARE(layout.numel, offset);
  QCOMPARE(layout.units.size(), std::size_t{4});
  QCOMPARE(layout.units.back().numel, 60 + 509 * 60);
}

QTEST_GUILESS_MAIN(ModelConfigTest)
#include "model_config_test.moc"
