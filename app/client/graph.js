// A graph that Graphviz laid out, on the server or, where that has no `dot`, in a worker; as an SVG without anything that acts.

// Return a function that lays DOT text out off the main thread; null where that takes too long.
export function layouter(url) {
  let worker = null;
  return dot => {
    worker ??= new Worker(URL.createObjectURL(new Blob([`
      import {Graphviz} from ${JSON.stringify(new URL(url, document.baseURI).href)};
      const graphviz = Graphviz.load();
      onmessage = async event => { try { postMessage((await graphviz).dot(event.data)); } catch (error) { postMessage(null); } };`], {type: 'text/javascript'})), {type: 'module'});
    return new Promise(done => {
      const timer = setTimeout(() => { worker.terminate(); worker = null; done(null); }, 8000);
      worker.onmessage = event => { clearTimeout(timer); done(event.data); };
      worker.postMessage(dot);
    });
  };
}

// Parse an SVG and fit it to a width: as large as fits, while a state is 24 pixels across; what is larger scrolls.
export function parse(svg, room, most = 1.25) {
  const parsed = new DOMParser().parseFromString(svg.slice(svg.indexOf('<svg')), 'image/svg+xml').documentElement;
  parsed.querySelectorAll('script,foreignObject,image,style,title').forEach(n => n.remove());
  parsed.querySelectorAll('a').forEach(n => n.replaceWith(...n.childNodes));
  for (const n of [parsed, ...parsed.querySelectorAll('*')]) {
    for (const {name} of [...n.attributes]) if (/^on|href$/i.test(name)) n.removeAttribute(name);
    // Colours are the page's; what Graphviz wrote would not follow the theme.
    for (const name of ['stroke', 'fill']) if (n.tagName !== 'svg' && n.getAttribute(name) !== 'none') n.removeAttribute(name);
  }
  // A line is too thin to be pointed at.
  for (const line of parsed.querySelectorAll('g.edge > path')) { const reach = line.cloneNode(); reach.setAttribute('class', 'reach'); line.before(reach); }
  const graph = document.importNode(parsed, true);
  const [, , width, height] = (graph.getAttribute('viewBox') ?? '0 0 100 100').split(/\s+/).map(Number);
  graph.setAttribute('role', 'group');   // an image would hide its nodes from who can't see it
  graph.removeAttribute('width');
  graph.removeAttribute('height');
  graph.style.width = `${Math.round(width * (room > 0.94 * width ? Math.min(most, room / width) : 1.1))}px`;
  graph.style.aspectRatio = `${width} / ${height}`;
  return graph;
}

// Scroll a graph's frame, never the page, so that a node is in view; to its middle where asked.
export function reveal(scroll, node, centre) {
  if (!node) return;
  const at = node.getBoundingClientRect(), frame = scroll.getBoundingClientRect(), room = 40;
  if (centre || at.left < frame.left + room || at.right > frame.right - room) scroll.scrollLeft += at.left - frame.left - frame.width / 2;
  if (centre || at.top < frame.top || at.bottom > frame.bottom) fit(scroll, node);
}

// The frame takes the height of what it shows of a graph, and shows all of that, or as much around the node as it can.
function fit(scroll, node) {
  const {left, right} = scroll.getBoundingClientRect(), pad = 10;
  let top = Infinity, bottom = -Infinity;
  for (const part of scroll.querySelectorAll('g.node, g.edge text')) {
    const at = part.getBoundingClientRect();
    if (at.right > left && at.left < right) { top = Math.min(top, at.top - pad); bottom = Math.max(bottom, at.bottom + pad); }
  }
  scroll.style.minHeight = `${Math.max(parseFloat(scroll.style.minHeight) || 0, Math.min(bottom - top, parseFloat(getComputedStyle(scroll).maxHeight) || Infinity))}px`;
  scroll.style.height = '0';   // as high as that, and no higher
  const frame = scroll.getBoundingClientRect(), at = node.getBoundingClientRect(), middle = (at.top + at.bottom - frame.height) / 2;
  scroll.scrollTop += Math.min(Math.max(middle, top), Math.max(top, bottom - frame.height)) - frame.top;
}
