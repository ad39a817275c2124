// Draws each [data-chart-url] from the figure that the address answers with. Ink and grid follow
// the page's theme. When a figure can't be fetched, the table beside it still has the numbers.
(() => {
  const OPTIONS = { displayModeBar: false, responsive: true };

  // A phone has no room for axis titles beside each other: the caption and the table say the same.
  const narrowed = (layout) => {
    const copy = { ...layout, font: { ...layout.font, size: 10 } };
    for (const name of Object.keys(layout)) {
      if (/^xaxis\d*$/.test(name)) copy[name] = { ...layout[name], nticks: 4, tickangle: 0 };
      if (name === "xaxis2") copy[name].title = { text: "" };
    }
    if (layout.xaxis2) copy.xaxis.title = { text: "speedup · right: without one" };
    if (layout.legend) copy.showlegend = false;
    return copy;
  };

  const isNarrow = () => window.innerWidth < 640;

  // Plotly's legend is as wide as the plot, which long names leave no room on a phone: there the
  // words stand as a list below.
  const listWords = (box) => {
    box.parentElement.querySelectorAll(".chart-words").forEach((old) => old.remove());
    if (!isNarrow() || !box.figure.layout.legend) return;
    const list = document.createElement("ul");
    list.className = "legend chart-words";
    const colours = new Map(box.figure.data
      .filter((trace) => trace.name && trace.showlegend !== false && typeof trace.marker?.color === "string")
      .map((trace) => [trace.name, trace.marker.color]));
    for (const [word, colour] of colours) {
      const item = document.createElement("li");
      const key = document.createElement("span");
      key.className = "key";
      key.style.background = colour;
      item.append(key, word);
      list.append(item);
    }
    box.after(list);
  };

  const themed = (layout) => {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    const axis = { gridcolor: value("--grid"), zerolinecolor: value("--grid"), linecolor: value("--line-strong") };
    const copy = { ...layout };
    copy.font = { ...layout.font, color: value("--ink"), family: getComputedStyle(document.body).fontFamily };
    copy.hoverlabel = { bgcolor: value("--raised"), font: { color: value("--ink") } };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) copy[name] = { ...axis, ...layout[name] };
    }
    return isNarrow() ? narrowed(copy) : copy;
  };

  const draw = async (box) => {
    if (box.dataset.drawn) return;
    box.dataset.drawn = "started";
    try {
      const answer = await fetch(box.dataset.chartUrl, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(`${answer.status}`);
      box.figure = await answer.json();
      box.replaceChildren();
      await window.Plotly.newPlot(box, box.figure.data, themed(box.figure.layout), OPTIONS);
      listWords(box);
      box.dataset.drawn = "yes";
    } catch (problem) {
      box.dataset.drawn = "no";
      box.textContent = `The chart could not be drawn (${problem.message}); the table has its numbers.`;
    }
  };

  const drawAll = (root) => root.querySelectorAll("[data-chart-url]").forEach(draw);
  const redraw = () => document.querySelectorAll("[data-chart-url]").forEach((box) => {
    if (box.figure) window.Plotly.react(box, box.figure.data, themed(box.figure.layout), OPTIONS);
  });

  document.addEventListener("DOMContentLoaded", () => drawAll(document));
  document.addEventListener("htmx:afterSettle", () => drawAll(document));
  document.addEventListener("themechange", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
