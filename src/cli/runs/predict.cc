// `cosformer predict`: labels with probabilities for the user's inputs, or answers to them.
#include <memory>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/runs/predict_options.h"
#include "cli/runs/run_kinds.h"
#include "cli/terminal/numbers.h"
#include "cli/train/unread_options.h"
#include "runs/run_folder.h"

namespace cosformer::cli {
namespace {

// Options that say nothing about the inputs or the outputs of the run's task.
void require_read(const PredictOptions& o, const runs::RunConfig& config, const CLI::App& app) {
  const std::string& task = config.data.task;
  const std::string is = fmt::format("; '{}' is of the task '{}'", o.run, task);
  const bool sequences = task == "token_sequences" || task == "value_sequences";
  const bool text =
      task == "text_files" || task == "text_pairs" || task == "text" || task == "retrieval" || task == "text_to_text";
  if (task == "text_to_text") refuse_given(app, {"--top"}, "is for classifiers" + is);
  if (!sequences) refuse_given(app, {"--labelled"}, "is for sequences of numbers" + is);
  if (!text) refuse_given(app, {"--format"}, "is for texts" + is);
  if (!text && task != "listops") refuse_given(app, {"--echo"}, "is for texts" + is);
  if (text || sequences || task == "listops") refuse_given(app, {"--draw"}, "is for images" + is);
  if (o.output == "jsonl") refuse_given(app, {"--top"}, "is for TSV; with --output jsonl every label is told");
}

void run_predict(const PredictOptions& o, const CLI::App& app) {
  const runs::RunConfig config = runs::read_run(o.run);
  const RunKind& kind = kind_of_run(config);
  if (kind.kind != runs::Kind::kLanguageModel && kind.kind != runs::Kind::kRecall) require_read(o, config, app);
  kind.predict(o);
}

}  // namespace

void add_predict(CLI::App& app) {
  const auto o = std::make_shared<PredictOptions>();
  app.add_option("RUN", o->run, "The folder of a run, or its bundle.")->required();
  app.add_option("--input", o->input,
                 "Reads the inputs from this file (or folder of images), or from standard input: -.")
      ->required();
  app.add_option("--format", o->format,
                 "Reads text in this format: lines, tsv, csv or jsonl; auto: by the file's name.")
      ->capture_default_str();
  app.add_option("--output", o->output,
                 "Writes answers in this format: tsv or jsonl, of text-to-text runs also text, one answer a line, "
                 "which is their default; otherwise tsv.")
      ->check(CLI::IsMember({"tsv", "jsonl", "text"}));
  app.add_option("--top", o->top, "Writes this many of the likeliest labels of each input, in TSV.")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--first", o->first, "Stops after this many inputs.")->check(whole_number(1, 1000000000000));
  app.add_flag("--echo", o->echo, "Writes each text beside its answer, on one line as described below.");
  app.add_flag("--draw", o->draw, "Draws images in the terminal.");
  app.add_option("--device", o->device, "Computes on this device; auto takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--skip-bad-rows", o->skip_bad_rows,
               "Leaves out rows that cannot be read and counts them, instead of stopping.");
  app.add_flag("--labelled", o->labelled,
               "Says that rows of a CSV of numbers hold the label, in the column that the training data have it in.");
  app.footer(
      "Each answer is written as soon as its input has come; of inputs one a line, lines that are blank or left out\n"
      "keep their line in the output, with an empty label. Inputs are read as far as the model can, and those that\n"
      "were cut are counted. A label that the model does not know counts as none.\n\n"
      "Reads what the run's task reads: texts one a line (or TSV, CSV, JSONL with the columns of the training data),\n"
      "ListOps expressions one a line, PNG files or folders, IDX files, CIFAR binaries, CSV rows. Labels that come\n"
      "along are compared. A text-to-text run answers each text with the likeliest tokens; in lines and TSV a newline\n"
      "of a text is written \\n, a tab \\t, a backslash \\\\.\n\n"
      "examples:\n"
      "  echo '[MAX 2 9 [MIN 4 7 ] 0 ]' | cosformer predict runs/listops-cosformer-0 --input -\n"
      "  cosformer predict runs/mine --input new.tsv --output jsonl");
  app.callback([o, &app] { run_predict(*o, app); });
}

}  // namespace cosformer::cli
