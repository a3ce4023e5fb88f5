// The page: which models there are, which one is shown, and the key that the server may ask for.
import {ApiError, get, whenKeyIsWanted} from "/modules/api.js";
import {AnsweringView} from "/modules/answering.js";
import {ClassifierView} from "/modules/classifier.js";
import {byId, clearError, element, showError} from "/modules/elements.js";
import {FillingView} from "/modules/filling.js";
import {LanguageView} from "/modules/language.js";
import {counted, parameters} from "/modules/numbers.js";

const KINDS = {
  lm: {name: "language model", view: LanguageView},
  mlm: {name: "masked language model", view: FillingView},
  classifier: {name: "classifier", view: ClassifierView},
  text_to_text: {name: "text to text", view: AnsweringView},
};

let models = [];
let view = null;

function facts(model) {
  const words = [KINDS[model.kind].name, model.attention, `${parameters(model.parameters)} parameters`];
  if (model.classes) words.push(counted(model.classes.length, "class", "classes"));
  if (model.tokenizer) words.push(`tokens: ${model.tokenizer}`);
  words.push(model.context_length ? `reads ${counted(model.context_length, "token")}` : "reads any length");
  return words.join(" · ");
}

async function show(model) {
  view?.leave();
  sessionStorage.setItem("cosformer.model", model.id);
  byId("facts").textContent = facts(model);
  document.title = `${model.id} · cosformer`;
  byId("main").replaceChildren(byId(`view-${model.kind}`).content.cloneNode(true));
  view = new KINDS[model.kind].view(model);
  await view.start();
}

function askForKey(refused) {
  const form = byId("key-form");
  form.hidden = false;
  if (refused) byId("key-note").textContent = "The server did not accept that key.";
  byId("key").value = "";
  byId("key").focus();
  return new Promise((done) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.hidden = true;
      byId("model").focus();
      done(byId("key").value.trim());
    }, {once: true});
  });
}

// A server that is still loading its models is asked again.
async function list() {
  for (;;) {
    try {
      const {data} = await get("/v1/models");
      clearError(byId("page-error"));
      return data.filter((model) => KINDS[model.kind]);
    } catch (error) {
      showError(byId("page-error"), error);
      if (error.status && error.status !== 503) throw error;
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

async function start() {
  whenKeyIsWanted(askForKey);
  models = await list();
  if (!models.length) throw new ApiError("The server has no models that this page can show.");
  byId("model").replaceChildren(...models.map((model) => element("option", {value: model.id}, model.id)));
  const last = sessionStorage.getItem("cosformer.model");
  const first = models.find((model) => model.id === last) ?? models[0];
  byId("model").value = first.id;
  byId("model").addEventListener("change", () => show(models.find((model) => model.id === byId("model").value)));
  await show(first);
}

start().catch((error) => showError(byId("page-error"), error));
