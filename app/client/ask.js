// What the server is asked: where it gives no answer, for which Gradio returns nothing, that is one too, so that a panel says so in its
// place and can be asked again.

export const UNANSWERED = 'no answer';

export const answering = server => new Proxy(server, {get(target, name) {
  if (typeof target[name] !== 'function') return target[name];
  return async asked => (await target[name](asked).catch(() => null)) ?? {error: UNANSWERED, problem: 'The server gave no answer.', remedy: 'See whether it still runs, and try again.'};
}});
