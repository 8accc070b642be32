/** The state of the page stands in its address: `#kernel=…&view=…`, `#pass=17`, `#memory`. */

/** The tab that a key alone tells: `#pass=3` needs no word more. */
const TAB_OF_KEY = { pass: "passes", schedule: "passes", kernel: "kernels", graph: "graph" };
/** Tabs whose states name a kernel, too: they write their own name. */
const TABS = ["graph", "passes", "kernels", "memory", "time", "report"];

function decoded(piece) {
  try {
    return decodeURIComponent(piece.replace(/\+/g, " "));
  } catch {
    return piece; // a lone % that somebody typed
  }
}

/** The state of an address, {} for an empty one. */
export function parse(hash) {
  const state = {};
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    if (at < 0) {
      const word = decoded(part).toLowerCase();
      if (TABS.includes(word)) state.tab = word;
    } else {
      state[decoded(part.slice(0, at))] = decoded(part.slice(at + 1));
    }
  }
  if (!state.tab) {
    const key = Object.keys(TAB_OF_KEY).find((name) => name in state);
    if (key) state.tab = TAB_OF_KEY[key];
  }
  return state;
}

const escaped = (value) => encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":");

/** The address of a state; keys without a value are left out. */
export function format(state) {
  const { tab, ...rest } = state;
  const pairs = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  const told = Object.keys(TAB_OF_KEY).find((name) => pairs.some(([key]) => key === name));
  const parts = pairs.map(([key, value]) => `${escaped(key)}=${escaped(String(value))}`);
  if (tab && TAB_OF_KEY[told] !== tab) parts.unshift(tab);
  return `#${parts.join("&")}`;
}

/** Follow the address: `show` is called with every state that it takes. */
export class Router {
  constructor(show) {
    this.show = show;
    this.state = {};
    window.addEventListener("hashchange", () => this.#apply(parse(location.hash)));
  }

  start() {
    this.#apply(parse(location.hash));
  }

  /** A step that the back button takes back. */
  go(state) {
    const address = format(state);
    if (address === format(this.state)) return;
    this.#apply(state);
    location.hash = address;
  }

  /** A small change within a step: the address follows, the history does not grow. */
  replace(state) {
    this.state = state;
    try {
      history.replaceState(null, "", format(state));
    } catch {
      // A frame made of a text (a notebook) has no address of its own: the page works without.
    }
  }

  #apply(state) {
    if (format(state) === format(this.state) && this.state.tab) return;
    this.state = state;
    this.show(state);
  }
}
