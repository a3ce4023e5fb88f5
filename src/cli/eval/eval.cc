// `cosformer eval`: how good the trained models of runs are.
#include <memory>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/eval/eval_options.h"
#include "cli/runs/run_kinds.h"
#include "cli/terminal/numbers.h"
#include "cli/train/unread_options.h"
#include "runs/run_folder.h"

namespace cosformer::cli {
namespace {

void run_eval(const EvalOptions& o, const CLI::App& app) {
  const std::string& run = o.runs.front();
  const runs::RunConfig config = runs::read_run(run);
  const RunKind& kind = kind_of_run(config);
  for (const UnreadOptions& unread : kind.unread_by_eval) {
    refuse_given(app, unread.options, fmt::format("is for {}, and '{}' is a {}", unread.read_by, run, kind.name));
  }
  if (config.data.task == "mlm") {
    refuse_given(app, {"--carry", "--context"},
                 fmt::format("is for autoregressive models, and '{}' is a masked one", run));
  }
  kind.evaluate(o);
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto o = std::make_shared<EvalOptions>();
  app.add_option("RUN", o->runs, "Folders of runs, or their bundles; several are compared on the data of the first.")
      ->required();
  app.add_option("--part", o->part, "Evaluates this part of the data.")
      ->check(CLI::IsMember({"test", "valid", "train"}))
      ->capture_default_str();
  app.add_option("--data", o->data_path,
                 "Reads the data of the training here, if they have moved; or labelled data of your own, all of which "
                 "is evaluated.");
  app.add_option("--device", o->device, "Computes on this device; auto takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option(
         "--batch-size", o->batch_size,
         "Reads this many examples (or stretches of text) at once; by default as in training. Fewer need less memory.")
      ->check(whole_number(1, 1LL << 30));
  app.add_option("--carry", o->carry,
                 "Language models carry their state over this many tokens before beginning anew; by default as far as "
                 "the model can look back.")
      ->check(whole_number(1, 1LL << 40));
  app.add_option("--context", o->context,
                 "Language models that carry no state read this many tokens of each window without predicting them, so "
                 "that all others have context.")
      ->check(whole_number(1, 1LL << 30));
  app.add_option("--write", o->write, "Text-to-text models write and compare at most this many answers; 0: none.")
      ->check(whole_number(0, 1LL << 40))
      ->capture_default_str();
  app.add_flag("--json", o->json, "Prints one JSON object in place of the tables.");
  app.footer(
      "Uses the run's best weights. The floors are what trivial rules reach on the same examples; ± is a standard\n"
      "error. Of one classifier it tells precision and recall of each class and the confusion matrix. Parts are\n"
      "evaluated while the data are those of the training: once they have changed, what is held out may hold what was\n"
      "trained on. --data FILE takes a labelled file instead, with the columns of the training data, and evaluates\n"
      "all of it. Of language models it tells loss, perplexity per token and per word, bits per byte, and how they\n"
      "fall with what was read before; the plot of that is RUN/context.svg. Of text to text it tells loss, perplexity\n"
      "and accuracy of the target's tokens, and the share of answers that are the target exactly. Of recall it tells\n"
      "accuracy by the number of pairs in a text and by the distance of a query; the plot of that is RUN/recall.svg.");
  app.callback([o, &app] {
    o->part_given = app.get_option("--part")->count() > 0;
    run_eval(*o, app);
  });
}

}  // namespace cosformer::cli
