/** Light or dark: as the system says, until one chooses. */

const KEY = "weft-viz-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a frame without an origin has no memory
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // as above: the choice lasts as long as the page
  }
}

const current = () => document.documentElement.dataset.theme;

/** Follow the system, or what was chosen last. */
export function startTheme() {
  const follow = () => {
    document.documentElement.dataset.theme = kept() ?? (dark.matches ? "dark" : "light");
  };
  follow();
  dark.addEventListener("change", follow);
}

/** The other one, from now on. */
export function nextTheme() {
  const theme = current() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  keep(theme);
}
