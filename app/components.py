"""The components that a module of the client draws: Gradio holds their values, and the browser does the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CLIENT = Path(__file__).parent / "client"

ON_LOAD = """
import(new URL(props.module, document.baseURI).href)
  .then(module => module.mount({element, props, server, watch, trigger}))
  .catch(error => { element.textContent = 'This part of the page could not start: ' + error; });
"""


def component(
    module: str, value: Any, elem_id: str, events: Iterable[str], functions: Iterable[Callable[..., Any]], **props: Any
) -> gr.HTML:
    """Return a component that a module of the client draws.

    Not a subclass of Gradio's: it would write a stub file beside this module for one.

    Args:
        module: file of the client, whose `mount` is given the element.
        value: what Python tells it, as data for JSON.
        elem_id: id of the element.
        events: that it raises; Gradio looks for their names in the code.
        functions: of the server that it may ask.
        props: further facts that the module reads.
    """
    return gr.HTML(
        value=value,
        apply_default_css=False,
        elem_id=elem_id,
        html_template='<div class="ds"></div>',  # templates hold no data
        js_on_load=ON_LOAD + "".join(f"// trigger({json.dumps(event)})\n" for event in events),
        server_functions=list(functions),
        module=f"gradio_api/file={CLIENT / module}",
        graphviz=f"gradio_api/file={CLIENT / 'vendor' / 'graphviz.js'}",
        **props,
    )
