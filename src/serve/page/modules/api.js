// Requests to the server that this page came from: the key, errors in words, answers that stream.
import {events} from "/modules/sse.js";

const KEY = "cosformer.key";

// An error whose message is for the person at the page.
export class ApiError extends Error {
  constructor(message, {status = 0, type = null, param = null, retryAfter = null} = {}) {
    super(message);
    Object.assign(this, {name: "ApiError", spoken: true, status, type, param, retryAfter});
  }
}

let askForKey = async () => { throw new ApiError("This server asks for an API key.", {status: 401}); };
let asking = null;  // requests that are refused at the same time wait for one answer

// `ask(refused)` shows the field and resolves to the key; `refused` says that a key was sent and was wrong.
export function whenKeyIsWanted(ask) {
  askForKey = ask;
}

function inWords(status, body, response) {
  const error = body?.error ?? {};
  const seconds = Number(response.headers.get("Retry-After")) || null;
  let message = error.message || `The server answered with status ${status}.`;
  if (status === 429 && !/again/i.test(message)) {
    message += seconds ? ` Try again in ${seconds === 1 ? "a second" : `${seconds} seconds`}.` : " Try again soon.";
  }
  return new ApiError(message, {status, type: error.type, param: error.param, retryAfter: seconds});
}

async function send(method, path, body, signal) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (key) headers.Authorization = `Bearer ${key}`;
    let response;
    try {
      response = await fetch(path, {method, headers, signal, body: body && JSON.stringify(body)});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached. Is it still running?");
    }
    if (response.ok) return response;
    if (response.status === 401) {
      if (sessionStorage.getItem(KEY) === key) {  // else another request has a new key by now
        asking ??= askForKey(Boolean(key)).finally(() => { asking = null; });
        sessionStorage.setItem(KEY, await asking);
      }
      continue;
    }
    throw inWords(response.status, await response.json().catch(() => null), response);
  }
}

export async function get(path, signal) {
  return (await send("GET", path, undefined, signal)).json();
}

export async function post(path, body, signal) {
  return (await send("POST", path, body, signal)).json();
}

export async function remove(path) {
  await send("DELETE", path);
}

// The chunks of a streamed answer. An error that comes in the middle is thrown as any other.
export async function* stream(path, body, signal) {
  const request = {...body, stream: true, stream_options: {include_usage: true}};
  const response = await send("POST", path, request, signal);
  let whole = false;
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") {
        whole = true;
        break;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(chunk.error.message, {status: 500, ...chunk.error});
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError("The connection broke before the answer was complete.");
  }
  if (!whole) throw new ApiError("The connection ended before the answer was complete.");
}

// Does it again when the server is full, after the time that it asks for.
export async function patiently(request, signal, waiting = () => {}) {
  for (let tries = 0; ; ++tries) {
    try {
      return await request();
    } catch (error) {
      if (error.status !== 429 || tries === 20) throw error;
      const seconds = error.retryAfter ?? 1;
      waiting(seconds);
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      signal?.throwIfAborted();
    }
  }
}
