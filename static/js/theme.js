// Light, dark or the system's: kept in localStorage, applied before the page is drawn.
(() => {
  const KEY = "kbx-theme";  // the admin keeps "auto" under "theme", which is no theme here
  const root = document.documentElement;
  const stored = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

  apply(stored());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-toggle]");
    if (!button) return;
    const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.hidden = false;
    button.title = "Switch between the light and the dark theme";
    name();
    button.addEventListener("click", () => {
      const theme = dark() ? "light" : "dark";
      apply(theme);
      try { localStorage.setItem(KEY, theme); } catch { /* private mode: this page only */ }
      name();
      document.dispatchEvent(new Event("themechange"));
    });
  });
})();
