// A link that holds the form: `#recipe=…`, its values deflated, in the part of the address that no server sees.

const MOST = 8192;   // characters of a link that mail and chats leave whole

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

export async function write(names, values) {
  const words = new TextEncoder().encode(JSON.stringify(Object.fromEntries(names.map((name, k) => [name, values[k]]))));
  const packed = await through(words, new CompressionStream('deflate-raw'));
  return btoa(Array.from(packed, byte => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

// The values of a link where it has them, of the form where not; null where it can't be read. Values of another type are left.
export async function read(text, names, values) {
  try {
    const packed = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0));
    const words = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream('deflate-raw'))));
    return names.map((name, k) => name in words && typeof words[name] === typeof (values[k] ?? words[name]) && Object(words[name]) !== words[name] ? words[name] : values[k]);
  } catch { return null; }
}

// When the page opens: the form as the link has it.
export async function open(names, values) {
  const text = new URLSearchParams((window.denoiscopeFragment ?? location.hash).slice(1)).get('recipe');
  window.denoiscopeFragment = '';
  if (!text) return values;
  const found = await read(text, names, values);
  if (!found) say('The link that this page was opened with can not be read. Ask for it again; the form is as it opens.');
  return found ?? values;
}

// What the link is: how long, and what is in it, before it is copied.
export async function copy(names, values) {
  const url = `${location.href.split('#')[0]}#recipe=${await write(names, values)}`;
  const long = url.length > MOST ? ' It is too long for some mail and chat programs: save the trace of a run instead.' : '';
  say(`${url.length.toLocaleString('en')} characters, with your prompt and constraint in them.${long}`, url);
}

function say(text, url = null) {
  const note = document.querySelector('#recipe-note');
  if (!note) return;
  const line = document.createElement('p'), parts = [line];
  line.textContent = text;
  line.setAttribute('role', 'status');
  if (url) {
    const box = document.createElement('input');
    Object.assign(box, {readOnly: true, value: url});
    box.setAttribute('aria-label', 'Link to these settings');
    const button = document.createElement('button');
    Object.assign(button, {type: 'button', className: 'ds-button', textContent: 'Copy it'});
    button.addEventListener('click', async () => {
      try { await navigator.clipboard.writeText(url); button.textContent = 'Copied'; } catch { box.select(); button.textContent = 'Press Ctrl C'; }
    });
    parts.push(box, button);
  }
  note.replaceChildren(...parts);
}
