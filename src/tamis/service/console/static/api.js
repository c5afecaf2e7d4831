// Requests to the service that has sent this page. The session is in a cookie; the header says that
// this page asks, which no page of another site can do.

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the service answered with ${status}`);
    this.status = status;
    this.body = body;
  }
}

let signedOut = () => {};
export function whenSignedOut(work) { signedOut = work; }

async function answer(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const problem = new Problem(response.status, body);
  if (response.status === 401) signedOut(problem);
  throw problem;
}

async function send(method, path, body, more = {}) {
  const headers = { "Tamis-Console": "1", ...more.headers };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const given = body === undefined ? undefined : more.raw ? body : JSON.stringify(body);
  return answer(await fetch(path, { method, headers, body: given, signal: more.signal,
    cache: "no-store" }).catch((why) => {
    if (why.name === "AbortError") throw why;
    throw new Problem(0, { detail: "the service does not answer" });
  }));
}

async function read(method, path, body, more) {
  const response = await send(method, path, body, more);
  return response.status === 204 ? null : response.json();
}

export const get = (path, more) => read("GET", path, undefined, more);
export const post = (path, body = {}, more = {}) => read("POST", path, body, more);
export const patch = (path, body) => read("PATCH", path, body);
export const remove = (path) => read("DELETE", path);

/** A path with parameters: those that are empty are left out. */
export function path(base, given) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return query.size ? `${base}?${query}` : base;
}

/** Read a stream of server-sent events until `signal`; comes back after it was cut off. */
export async function follow(where, take, state, signal) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const response = await send("GET", where, undefined, { signal, headers: { Accept: "text/event-stream" } });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      state(true);
      pause = 500;
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const messages = (rest + value).split("\n\n");
        rest = messages.pop();
        for (const message of messages) {
          const data = message.split("\n").filter((line) => line.startsWith("data: "))
            .map((line) => line.slice(6)).join("\n");
          if (data) take(JSON.parse(data));
        }
      }
    } catch (why) {
      if (signal.aborted) return;
      if (why instanceof Problem && why.status >= 400 && why.status < 500) throw why;
    }
    state(false);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(pause * 2, 8000);
  }
}
