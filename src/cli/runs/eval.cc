// `cosformer eval`: how good the trained models of runs are.
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/runs/eval_classifier.h"
#include "cli/runs/eval_language.h"
#include "cli/runs/eval_text_to_text.h"
#include "cli/terminal/numbers.h"
#include "cli/train/unread_options.h"
#include "runs/run_folder.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  long long batch_size = 0, carry = 0, context = 0, write = 1000;
  bool json = false;
};

void run_eval(const Options& o, const CLI::App& app) {
  const std::string& run = o.runs.front();
  const runs::RunConfig first = runs::read_run(run);
  const bool part_given = app.get_option("--part")->count() > 0;
  if (runs::is_language(first)) {
    const bool masked = first.data.task == "mlm";
    refuse_given(app, {"--write"}, "is for text-to-text runs, and '" + run + "' is a language model");
    if (masked)
      refuse_given(app, {"--carry", "--context"}, "is for autoregressive models, and '" + run + "' is a masked one");
    eval_language({o.runs, o.part, o.data_path, o.device, part_given, o.batch_size, o.carry, o.context, o.json});
    return;
  }
  const bool answers = runs::is_text_to_text(first);
  refuse_given(app, {"--carry", "--context"},
               "is for language models, and '" + run + "' is a " + (answers ? "text-to-text model" : "classifier"));
  if (answers) {
    eval_text_to_text({o.runs, o.part, o.data_path, o.device, part_given, o.batch_size, o.write, o.json});
    return;
  }
  refuse_given(app, {"--write"}, "is for text-to-text runs, and '" + run + "' is a classifier");
  eval_classifier({o.runs, o.part, o.data_path, o.device, part_given, o.batch_size, o.json});
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->runs, "folders of runs, or their bundles; several are compared on the data of the first")
      ->required();
  app.add_option("--part", o->part, "test, valid or train")
      ->check(CLI::IsMember({"test", "valid", "train"}))
      ->capture_default_str();
  app.add_option(
      "--data", o->data_path,
      "where the data of the training are now, if they have moved; or labelled data of your own, all of which is "
      "evaluated");
  app.add_option("--device", o->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--batch-size", o->batch_size, "by default as in training")->check(whole_number(1, 1LL << 30));
  app.add_option("--carry", o->carry,
                 "language models: carry the state over so many tokens before beginning anew; by default as far as the "
                 "model can look back")
      ->check(whole_number(1, 1LL << 40));
  app.add_option("--context", o->context,
                 "language models that carry no state: tokens of each window that are only read, not predicted")
      ->check(whole_number(1, 1LL << 30));
  app.add_option("--write", o->write, "text to text: answers that are written and compared, at most; 0: none")
      ->check(whole_number(0, 1LL << 40))
      ->capture_default_str();
  app.add_flag("--json", o->json, "for machines");
  app.footer(
      "Uses the run's best weights. The floors are what trivial rules reach on the same examples; ± is a standard "
      "error.\n"
      "Of one classifier it tells precision and recall of each class and the confusion matrix. Parts are evaluated "
      "while\n"
      "the data are those of the training: once they have changed, what is held out may hold what was trained on.\n"
      "--data FILE takes a labelled file instead, with the columns of the training data, and evaluates all of it.\n"
      "Of language models it\n"
      "tells loss, perplexity per token and per word, bits per byte, and how they fall with what was read before; the\n"
      "plot of that is RUN/context.svg. Of text to text it tells loss, perplexity and accuracy of the target's "
      "tokens,\n"
      "and the share of answers that are the target exactly.");
  app.callback([o, &app] { run_eval(*o, app); });
}

}  // namespace cosformer::cli
