// What the server says of events, without a gap. Runs in the page's head, before Gradio's own scripts, as no module.
//
// Gradio opens a stream when an event is accepted, unless one is open; the server ends it when no event is left. An event that is accepted
// after that end, and before the browser has read of it, would never be heard of. So Gradio is given one stream that doesn't end, and
// behind it one of the server's is read after the other, as long as an event is awaited.

(() => {
  const fetched = window.fetch.bind(window), awaited = new Set();
  let to = null, reading = false;

  window.fetch = async (what, how) => {
    const {pathname} = new URL(what.url ?? what, document.baseURI);
    if (pathname.endsWith('/queue/data')) return listen(new Request(what, how));
    const answer = await fetched(what, how);
    if (pathname.endsWith('/queue/join') && answer.ok) {
      awaited.add((await answer.clone().json()).event_id);
      read();
    }
    return answer;
  };

  function listen(request) {
    const body = new ReadableStream({start: controller => { to = {request, controller}; }, cancel: () => { to = null; }});
    read();
    return new Response(body, {headers: {'content-type': 'text/event-stream'}});
  }

  async function read() {
    if (reading || !to) return;
    reading = true;
    try {
      while (awaited.size && to) {
        const before = [...awaited];
        await pass(await fetched(to.request.clone()));
        for (const id of before) awaited.delete(id);   // the server ended the stream, so it has none of these
      }
    } catch (error) {
      awaited.clear();
      say({msg: 'broken_connection', message: String(error)});
    } finally { reading = false; }
  }

  // Pass on what one of the server's streams says, but not that it ends.
  async function pass({body}) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '', part = await reader.read(); !part.done; part = await reader.read()) {
      const blocks = (rest + part.value).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const said = JSON.parse(block.replace(/^data: /, ''));
        if (said.msg === 'process_completed') awaited.delete(said.event_id);
        if (said.msg !== 'close_stream') say(said);
      }
    }
  }

  function say(message) {
    to?.controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`));
  }
})();
