#include "app/cli/run_init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/agent/agent_config.h"
#include "app/cli/continued_run.h"
#include "app/cli/run_tokenizer.h"
#include "app/cli/text.h"
#include "app/cli/validate_run.h"
#include "app/cli/validators.h"
#include "net/base/json_reader.h"
#include "net/control/home.h"
#include "net/data/run_dataset.h"
#include "net/data/source_name.h"
#include "net/hub/evaluation_files.h"
#include "net/hub/hub.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/model_files/spectrum.h"
#include "net/store/state_download.h"
#include "net/store/store_settings.h"

namespace atl {

void add_run_options(CLI::App& sub, NewRun& run) {
  RunOverrides& overrides = run.overrides;
  sub.add_option("--preset", run.preset, fmt::format("{}, or a file", fmt::join(preset_names(), ", ")))
      ->default_str(kUsualPreset);
  sub.add_option("--model", overrides.model, "Model: a preset's name, or a HuggingFace config.json");
  sub.add_option(
         "--from", run.from,
         fmt::format(
             "Begin with a model, and its parameters: a HuggingFace directory (config.json, safetensors), an island's "
             "checkpoint directory, or a published state, s3://BUCKET/PREFIX[/outer-STEP]; momentum is left behind. "
             "Without --preset defaults are then those of a trained model: --lr {}, --sequence-length as the model, "
             "the data and the memory allow, at most {}, and a --batch of {} tokens",
             kContinuedLearningRate, kLongestContinued, kContinuedStepTokens))
      ->type_name("DIR|URL");
  sub.add_flag("--force", run.force, "Go on where the model of --from knows another tokenizer than the data's")
      ->needs("--from");
  sub.add_option("--inner-steps", overrides.inner_steps, "Inner steps a round (H)")->check(whole_number(1, 1'000'000));
  sub.add_option("--fragments", overrides.fragments,
                 "Parts of the model that are averaged in turn, one a round; with 2 or more islands train on meanwhile")
      ->check(whole_number(1, kMaxFragments));
  sub.add_option("--wire", overrides.wire, "How gradients travel")
      ->check(CLI::IsMember(std::vector<std::string>(kRunWireFormatNames.begin(), kRunWireFormatNames.end())));
  sub.add_option("--batch", overrides.sequences_per_step, "Sequences an inner step and island")
      ->check(whole_number(1, 1 << 20));
  sub.add_option("--sequence-length", overrides.sequence_length, "Tokens a sequence")->check(whole_number(1, 1 << 20));
  sub.add_option("--attention", overrides.attention,
                 "Over the packed sequence, or kept within a document, of which positions begin anew")
      ->check(attention_scope());
  sub.add_option("--lr", overrides.learning_rate, "Peak learning rate of the inner optimiser")
      ->check(positive_number());
  sub.add_option("--warmup-steps", overrides.warmup_steps, "Inner steps until the peak")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--decay-steps", overrides.decay_steps,
                 "Inner steps in which the learning rate falls to --final-lr; 0: it stays at its peak")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--decay-start", overrides.decay_start_step,
                 "Inner step of the run at which it begins to fall (default: so that it ends with --rounds)")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--decay-shape", overrides.decay_shape, "How it falls")
      ->check(CLI::IsMember(std::vector<std::string>(kDecayShapes.begin(), kDecayShapes.end())));
  sub.add_option("--final-lr", overrides.final_learning_rate, "Learning rate at the end of the decay, and after it")
      ->check(number_between(0, 10));
  sub.add_option("--outer-lr", overrides.outer_learning_rate, "Learning rate of the outer optimiser")
      ->check(positive_number());
  sub.add_option("--outer-momentum", overrides.outer_momentum, "Momentum of the outer optimiser")
      ->check(number_between(0, 0.999999));
  sub.add_option("--validate-every", overrides.validate_every, "Rounds between validations; 0: never")
      ->check(whole_number(0, UINT32_MAX));
  auto* evaluate =
      sub.add_option("--evaluate", run.evaluate,
                     "Task file (JSON Lines, as 'atoll eval' takes it) that is asked of the model while it "
                     "trains; several times: several tasks")
          ->take_all()
          ->allow_extra_args(false)
          ->type_name("FILE");
  sub.add_option("--evaluate-every", run.evaluate_every, "Rounds between two evaluations")
      ->check(whole_number(1, UINT32_MAX))
      ->capture_default_str()
      ->needs(evaluate);
  sub.add_option("--quorum", overrides.quorum,
                 "Islands that must have trained for a round to count; with 2 or more no island is ever believed alone")
      ->check(whole_number(1, 1024));
  sub.add_option(
         "--when-lost", overrides.when_lost,
         "When nobody holds the newest state: ask (atoll hub rollback), or roll back by itself, 10 rounds at most")
      ->check(CLI::IsMember({"ask", "rollback"}));
  sub.add_option("--keep-states", overrides.keep_states,
                 "Outer states that each island keeps, 8 bytes a parameter each")
      ->check(whole_number(1, 8));
  sub.add_option("--safe-copies", overrides.safe_copies,
                 "A round counts as safe when so many islands (all, where there are fewer) have it on their disks")
      ->check(whole_number(1, 1024));
  sub.add_option("--train-only", overrides.train_only,
                 "Train the parameters alone whose names match one of these patterns (* is any text), as in "
                 "'model.layers.2?.*'; the others stay as they are, and nobody averages them")
      ->type_name("PATTERN");
  sub.add_option("--train-top-snr", overrides.train_top_snr,
                 "Train of each kind of matrix this share, those with most signal for their noise (Spectrum, "
                 "arXiv:2406.06623), beside what --train-only names; with --from DIR")
      ->check(number_between(0.001, 1))
      ->type_name("SHARE");
  auto* store =
      sub.add_option("--upload-to", overrides.upload_store,
                     "Object store for outer states, s3://BUCKET/PREFIX; written by islands whose owners gave "
                     "them its credentials (store.bucket, store.credentials_file)");
  auto* every = sub.add_option("--upload-every", overrides.upload_every, "Rounds between two of them")
                    ->check(whole_number(1, UINT32_MAX));
  store->needs(every);
  every->needs(store);
  sub.add_option("--norm-bound", overrides.norm_bound,
                 "Work whose norm is so many times the others' is left out; 0: none is")
      ->check(number_between(0, 1e6));
  sub.add_option("--validation-rise", overrides.validation_rise,
                 "Nats above the best of late at which the run stops; 0: it does not")
      ->check(number_between(0, 1e6));
  sub.add_option("--seed", overrides.seed, "Of the initial parameters and the order of the data")
      ->check(whole_number(0, UINT64_MAX));
}

void add_rounds_option(CLI::App& sub, NewRun& run) {
  sub.add_option("--rounds", run.overrides.max_rounds, "The run ends after so many; 0: when stopped")
      ->check(whole_number(0, UINT32_MAX));
}

std::string describe_learning_rate(const InnerOptimizerConfig& inner) {
  const std::string warmup =
      inner.warmup_steps == 0 ? "" : fmt::format(" after {} of warm-up", format_number_of(inner.warmup_steps, "step"));
  if (inner.decay_steps == 0) return fmt::format("learning rate {}{}, no decay", inner.learning_rate, warmup);
  return fmt::format("learning rate {}{}, falls to {} from step {} to step {} ({})", inner.learning_rate, warmup,
                     inner.final_learning_rate, format_count(inner.decay_start_step),
                     format_count(inner.decay_start_step + inner.decay_steps), decay_shape_name(inner.decay_shape));
}

std::string describe_evaluation(const RunEvaluation& evaluation) {
  if (evaluation.tasks.empty()) return {};
  std::vector<std::string> tasks;
  for (const EvaluationTask& task : evaluation.tasks) {
    tasks.push_back(fmt::format("{} ({})", task.name, format_number_of(task.documents, "question")));
  }
  return fmt::format("every {} it is asked: {}", format_number_of(evaluation.every, "round"), fmt::join(tasks, ", "));
}

namespace {

// A mirror of all sources has a directory of each one's name; of a single source it is that source's.
Result<std::vector<HubDataSource>> sources_of(const NewRun& run) {
  std::vector<HubDataSource> sources;
  for (const std::string& text : run.data) {
    auto [name, directory] = split_name(text);
    if (name.empty()) name = source_name_of(directory);
    sources.push_back({directory, name});
  }
  for (const std::string& text : run.mirrors) {
    const auto [name, place] = split_name(text);
    ATOLL_RETURN_IF_ERROR(check_mirror(place));
    bool meant = false;
    for (HubDataSource& source : sources) {
      if (!name.empty() && name != source.name) continue;
      meant = true;
      const bool of_all = name.empty() && sources.size() > 1;
      source.mirrors.push_back(of_all ? fmt::format("{}{}{}", place, place.ends_with('/') ? "" : "/", source.name)
                                      : place);
    }
    if (meant) continue;
    return Error{ErrorCode::kInvalidArgument, fmt::format("--data-mirror {}: there is no source '{}'", text, name)};
  }
  return sources;
}

// The model that --model or --preset names is that of --from, or the two contradict each other. Tokens that begin, end
// and fill up a text, and how fresh parameters are drawn, are not of a shape.
Status check_model_is_named_right(const NewRun& run, const RunConfig& as_named, const ModelConfig& from) {
  if (!run.overrides.model && !run.preset) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(ModelConfig named, model_config_from_json(as_named.model_json));
  named.bos_token_ids = from.bos_token_ids;
  named.eos_token_ids = from.eos_token_ids;
  named.pad_token_id = from.pad_token_id;
  named.initializer_range = from.initializer_range;
  if (!run.overrides.model) named.vocab_size = from.vocab_size;  // a preset's is the dataset's
  if (named == from) return ok_status();
  const char* option = run.overrides.model ? "--model" : "--preset";
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--from {} brings its model with it, and {} {} names one of another shape; leave {} out",
                           run.from, option, run.overrides.model.value_or(run.preset.value_or("")), option)};
}

// Islands fetch the parameters from where they are published.
Status begin_from_store(const NewRun& run, PlannedRun& planned) {
  HubInitOptions& options = planned.options;
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(""));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  const StoreSettings settings = store_settings(config);
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(run.from));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_as_told(settings, url));
  ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access));
  const AbortSignal abort;
  ATOLL_ASSIGN_OR_RETURN(const PublishedState state, find_published_state(client, url.prefix, "", abort));
  ATOLL_RETURN_IF_ERROR(check_published_state(client, state, abort));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(state.manifest.model_json));
  ATOLL_RETURN_IF_ERROR(check_model_is_named_right(run, options.run, model));
  ATOLL_ASSIGN_OR_RETURN(planned.notes, check_published_tokenizer(state.manifest, options.data.front(), run.force));
  const auto numel = static_cast<std::uint64_t>(canonical_layout(model).numel);
  if (state.manifest.state.state_bytes != 2 * sizeof(float) * numel) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} names a model of another size than its state", run.from)};
  }
  options.run.model_json = state.manifest.model_json;
  if (!run.overrides.attention && state.manifest.attention) options.run.attention = *state.manifest.attention;
  options.run.initial_state = to_string(with_place({url.bucket, state.prefix, url.endpoint, url.region}, settings));
  options.run.initial_state_sha256 = state.manifest_sha256;
  options.initial_hash = state.manifest.initial_hash;
  return ok_status();
}

using OnMatrix = std::function<void(std::size_t done, std::size_t all)>;

// What has a scheme, or is no directory, was meant for a store.
bool is_directory(const std::string& from) {
  std::error_code failed;
  return std::filesystem::is_directory(from, failed);
}

Error neither_store_nor_directory(const std::string& from) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--from {} is no directory here, and a published state must be s3://BUCKET/PREFIX", from)};
}

Status begin_from(const NewRun& run, const AbortSignal& abort, const OnMatrix& on_matrix, PlannedRun& planned) {
  if (run.from.find("://") != std::string::npos) return begin_from_store(run, planned);
  if (!is_directory(run.from)) return neither_store_nor_directory(run.from);
  ATOLL_ASSIGN_OR_RETURN(BaseModel model, BaseModel::open(run.from, abort));
  ATOLL_RETURN_IF_ERROR(check_model_is_named_right(run, planned.options.run, model.config()));
  ATOLL_ASSIGN_OR_RETURN(planned.notes, check_run_tokenizer(model, planned.options.data.front(), run.force));
  if (!model.note().empty()) planned.notes.push_back(model.note());
  planned.options.run.model_json = to_json(model.config());
  // It goes on as it was trained, unless its organiser says otherwise.
  if (!run.overrides.attention && model.attention()) planned.options.run.attention = *model.attention();
  if (run.overrides.train_top_snr) {
    const auto read = [&](std::int64_t offset, std::span<float> values) { return model.read_values(offset, values); };
    ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> best,
                           best_by_signal_to_noise(model.layout(), *run.overrides.train_top_snr, read, on_matrix));
    auto& train_only = planned.options.run.train_only;
    train_only.insert(train_only.end(), best.begin(), best.end());
  }
  planned.base_model.emplace(std::move(model));
  return ok_status();
}

Result<std::vector<DatasetManifest>> manifests_of(const std::vector<HubDataSource>& sources) {
  std::vector<DatasetManifest> manifests;
  for (const HubDataSource& source : sources) {
    ATOLL_ASSIGN_OR_RETURN(DatasetManifest manifest, DatasetManifest::load(source.directory));
    manifests.push_back(std::move(manifest));
  }
  return manifests;
}

// Of each source, in their order.
Status check_data(const HubInitOptions& options, const std::vector<DatasetManifest>& manifests) {
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(validate_run(options.run, manifests[i].vocab_size));
    if (manifests[i].tokens(Split::kTrain) > options.run.sequence_length) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset in {} is shorter than one sequence of {} tokens; prepare more text, or choose a "
                    "shorter --sequence-length",
                    options.data[i].directory.string(), options.run.sequence_length)};
  }
  return ok_status();
}

}  // namespace

Result<PlannedRun> plan_run(const NewRun& run, const AbortSignal& abort, const OnMatrix& on_matrix) {
  ATOLL_RETURN_IF_ERROR(validate_run_name(run.name));
  // Before anything is made: is there data that this run can use?
  PlannedRun planned;
  HubInitOptions& options = planned.options;
  ATOLL_ASSIGN_OR_RETURN(options.data, sources_of(run));
  ATOLL_ASSIGN_OR_RETURN(options.weights, parse_named_shares(run.weights));
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest first, DatasetManifest::load(options.data.front().directory));
  options.operator_name = run.operator_name;
  ATOLL_ASSIGN_OR_RETURN(options.evaluation, read_evaluation_files({run.evaluate.begin(), run.evaluate.end()}));
  options.evaluate_every = run.evaluate_every;
  ATOLL_ASSIGN_OR_RETURN(options.run,
                         make_run(run.preset.value_or(kUsualPreset), run.name, run.overrides, tokens_of(first)));
  if (!options.run.upload_store.empty()) ATOLL_RETURN_IF_ERROR(parse_store_url(options.run.upload_store));
  if (run.overrides.train_top_snr && (run.from.empty() || !is_directory(run.from))) {
    return Error{ErrorCode::kInvalidArgument,
                 "--train-top-snr looks at the weights of a model that was trained: name its directory, --from DIR"};
  }
  if (!run.from.empty()) ATOLL_RETURN_IF_ERROR(begin_from(run, abort, on_matrix, planned));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<DatasetManifest> manifests, manifests_of(options.data));
  if (!run.from.empty() && !run.preset) {
    ATOLL_ASSIGN_OR_RETURN(const std::string chosen,
                           continue_gently(run.overrides, manifests, run.memory_bytes, options.run));
    if (!chosen.empty()) planned.notes.push_back("for a model that goes on: " + chosen);
  }
  ATOLL_RETURN_IF_ERROR(check_data(options, manifests));
  return planned;
}

void tell_notes(const PlannedRun& planned, Console& console) {
  for (const std::string& note : planned.notes) console.err << fmt::format("note: {}\n", note) << std::flush;
}

Result<RunConfig> init_run(const PlannedRun& planned, const std::filesystem::path& hub_directory) {
  HubInitOptions options = planned.options;
  options.directory = hub_directory;
  options.base_model = planned.base_model ? &*planned.base_model : nullptr;
  return hub_init(options);
}

}  // namespace atl
